"""Where servers are searched for, and what happens if they are unavailable, with a substitute for Go."""

import os
import pathlib
import subprocess
import sys

import pytest

from live import kube_binaries

ROOT = pathlib.Path(__file__).parents[2]
OFFLINE = "dial tcp: lookup proxy: no such host"
GO = """
echo "$@" >> "$GO_CALLS"
case "$1" in
  version) echo "go version go1.26.8 linux/amd64" ;;
  build | test) while [ "$1" != -o ]; do shift; done; /bin/mkdir -p "${2%/*}"; echo built > "$2"; $GO_BUILD ;;
esac
"""
GO_OFFLINE = f'[ "$1" = version ] && echo go1.26 || {{ echo "{OFFLINE}" >&2; exit 1; }}'


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with an empty cache and only our substitute for Go on PATH."""
    program(tmp_path / "path" / "go", GO)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("GO_BUILD", "true")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path


def calls(machine):
    """Return the subcommands that Go was run with, except for its version."""
    file = machine / "calls"
    found = file.read_text(encoding="utf-8").split("\n")[:-1] if file.exists() else []
    return [line.split()[0] for line in found if line != "version"]


def test_the_configured_folder_comes_first(machine, monkeypatch):
    named = program(machine / "named" / "kube-apiserver", 'echo "Kubernetes v1.36.1"')
    program(machine / "path" / "kube-apiserver", 'echo "Kubernetes v1.36.4"')
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(named.parent))
    assert kube_binaries.find("kube-apiserver") == named


def test_then_the_path(machine):
    found = program(machine / "path" / "kube-apiserver", 'echo "Kubernetes v1.36.4"')
    assert kube_binaries.find("kube-apiserver") == found
    assert not calls(machine)


def test_another_minor_version_is_skipped_with_a_message(machine, capsys):
    program(machine / "path" / "kube-scheduler", 'echo "Kubernetes v1.29.3"')
    assert kube_binaries.find("kube-scheduler").is_relative_to(machine / "cache")
    assert "is passed over: it is Kubernetes v1.29.3, not v1.36" in capsys.readouterr().err


def test_any_etcd_is_accepted(machine):
    found = program(machine / "path" / "etcd", 'echo "etcd Version: 3.4.23"')
    assert kube_binaries.find("etcd") == found


def test_a_missing_server_is_built_once(machine):
    found = [kube_binaries.find(name) for name in kube_binaries.PACKAGES]
    assert [path.read_text(encoding="utf-8") for path in found] == ["built\n"] * len(kube_binaries.PACKAGES)
    assert calls(machine) == ["list", *(["build"] * len(kube_binaries.PACKAGES))]
    assert {path.parent for path in found} == {kube_binaries.cache() / kube_binaries._key(kube_binaries.MODULE)}


def test_the_end_to_end_tests_are_built_from_the_tests_of_their_package(machine):
    folder = kube_binaries.end_to_end()
    assert sorted(path.name for path in folder.iterdir()) == ["e2e.test", "kwok"]
    with (machine / "calls").open(encoding="utf-8") as lines:
        commands = [line.split() for line in lines if not line.startswith("version")]
    assert commands[0][:3] == ["list", "-deps", "-test"]
    assert commands[1][:2] == ["test", "-c"]
    assert commands[2][0] == "build"


def test_another_module_file_is_another_build(tmp_path):
    keys = set()
    for text in ("k8s.io/kubernetes v1.36.4", "k8s.io/kubernetes v1.36.5"):
        (tmp_path / "go.mod").write_text(text, encoding="utf-8")
        (tmp_path / "go.sum").touch()
        keys.add(kube_binaries._key(tmp_path))
    assert len(keys) == 2


def test_a_build_that_fails_is_an_error_and_leaves_nothing(machine, monkeypatch):
    monkeypatch.setenv("GO_BUILD", "false")
    with pytest.raises(RuntimeError, match=r"go build go\.etcd\.io"):
        kube_binaries.find("etcd")
    assert [path.suffix for path in kube_binaries.cache().iterdir()] == [".lock"]


def test_without_modules_there_is_no_server(machine, capsys):
    program(machine / "path" / "go", GO_OFFLINE)
    with pytest.raises(kube_binaries.UnavailableError, match=OFFLINE):
        kube_binaries.find("etcd")
    assert kube_binaries.main() == kube_binaries.UNAVAILABLE
    assert OFFLINE in capsys.readouterr().err


@pytest.mark.parametrize("required, code, outcome", [("0", 0, "skipped"), ("1", 1, "error")])
def test_live_tests_skip_with_a_reason_unless_required(machine, required, code, outcome):
    program(machine / "path" / "go", GO_OFFLINE)
    command = [sys.executable, "-m", "pytest", "-m", "live", "-p", "no:cacheprovider", "tests/live/test_karmada.py"]
    environment = {**os.environ, "REQUIRE_APISERVER": required}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert f"no real API server: Go modules cannot be fetched: {OFFLINE}" in done.stdout
    assert f"3 {outcome}" in done.stdout
