"""The tutorial of the operator, followed literally on a real API server: every command succeeds, and prints what the page shows."""

import asyncio
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

from live.admin import Admin

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "run-a-scheduler.md"
FENCED = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def kubernetes(new_kube_server):
    """An API server without Karmada's kinds, which tests before may have left on the shared one: `run` finds out what to schedule."""
    return new_kube_server()


@pytest.fixture
def environment(kubernetes, tmp_path):
    """A shell of a user with a kubeconfig and both programs on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    for name, command in (("bayplan", f"{shlex.quote(sys.executable)} -m bayplan"), ("kubectl", kubectl)):
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (folder / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BAYPLAN_")}
    search = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    return {**kept, **search, "HOME": str(tmp_path), "KUBECONFIG": kubernetes.kubeconfig(), "COLUMNS": "200"}


def without_columns(text):
    return re.sub(r" +", " ", text.strip())


async def test_the_tutorial_of_the_operator_is_followed_literally(kubernetes, environment, tmp_path):
    async with Admin.of(kubernetes) as admin:
        await _follow(admin, environment, tmp_path)


async def _follow(admin, environment, tmp_path):
    await admin.create_nodes(2, labels=lambda n: {"kubernetes.io/hostname": f"node-{n}"})
    await admin.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bayplan-tutorial"}}, dryRun="All"
    )
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "tutorial", tmp_path / "docs" / "tutorial")
    said, shown = "", 0
    try:
        for kind, block in FENCED.findall(PAGE.read_text(encoding="utf-8")):
            if kind == "text":
                assert without_columns(block) in without_columns(said)
                shown += 1
                continue
            if "create namespace" in block:
                await _service_account(admin, environment, block, tmp_path)
                continue
            said = await asyncio.to_thread(_run, block, environment, tmp_path)
    finally:
        pid = tmp_path / "bayplan.pid"
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert shown == 4


async def _service_account(admin, environment, block, folder):
    """The first block, with what the controllers of a complete cluster do in between."""
    first, _, rest = block.partition("\n")
    await asyncio.to_thread(_run, first, environment, folder)
    account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "bayplan-tutorial"},
    }
    await admin.create(account)
    await asyncio.to_thread(_run, rest, environment, folder)


def _run(script, environment, folder):
    done = subprocess.run(
        ["sh", "-ec", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    log = folder / "bayplan.log"
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}{log.read_text() if log.exists() else ''}"
    return done.stdout
