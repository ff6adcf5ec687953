"""The CI kit on the examples: the scripts that GitHub and GitLab would run, hooks, and plugins, as far as they run here."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
import yaml

import test_examples
from test_package import tracked

ROOT = pathlib.Path(__file__).parent.parent
GATE = ROOT / "examples" / "06-gate-in-ci"
CLUSTER = str(GATE / "cluster")
NODES, SERVERS = ROOT / "examples" / "12-audit" / "nodes.yaml", ROOT / "examples" / "12-audit" / "servers.json"


@pytest.fixture
def environment(tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "bayplan"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bayplan "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BAYPLAN_")}
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)}


def run(words, folder, environment, **more):
    return subprocess.run(words, cwd=folder, env={**environment, **more}, capture_output=True, text=True, check=False)


def gate(folder, environment, *words):
    return run([ROOT / "ci" / "gate.sh", *words, "--reports", folder / "reports"], folder, environment)


def test_a_change_that_fits_passes_with_all_reports(tmp_path, environment):
    words = ("--manifests", GATE / "good", "--state", CLUSTER, "--audit", NODES, "--inventory", SERVERS)
    done = gate(tmp_path, environment, *words)
    assert done.returncode == 0, done.stderr
    reports = tmp_path / "reports"
    names = {path.name for path in reports.iterdir()}
    assert names == {
        "summary.md", "validate.sarif", "validate.junit.xml", "plan.html", "audit.sarif", "audit.junit.xml"
    }  # fmt: skip
    for name in ("validate", "audit"):
        assert json.loads((reports / f"{name}.sarif").read_text())["version"] == "2.1.0"
        assert ET.parse(reports / f"{name}.junit.xml").getroot().tag == "testsuites"
    summary = (reports / "summary.md").read_text()
    assert "### Placement" in summary
    assert "note: 2 of 2 placed of the change" in summary
    assert done.stdout == summary


@pytest.mark.parametrize("words, code, said", [
    (("--manifests", GATE / "too-many", "--state", CLUSTER), 1, "2 node(s) didn't match pod anti-affinity rules"),
    (("--manifests", GATE / "invalid"), 1, "unknown field, did you mean labelSelector?"),
    (("--manifests", GATE / "good", "--state", CLUSTER, "--lose", "node/node-1"), 1, "### Without node/node-1"),
    (("--manifests", GATE / "good", "--state", CLUSTER, "--lose", "node/none"), 2, "node/none"),
    (("--manifests", GATE / "absent"), 2, ""),
    (("--audit", NODES), 1, "scs-0214-cp-machines"),
])  # fmt: skip
def test_the_exit_code_is_that_of_the_worst_answer(words, code, said, tmp_path, environment):
    done = gate(tmp_path, environment, *words)
    assert done.returncode == code, done.stderr
    assert said in done.stdout


@pytest.mark.parametrize("words", [(), ("--manifests",), ("--manifest", "x"), ("--state", "x")])
def test_a_usage_error_is_not_a_yes(words, tmp_path, environment):
    done = run([ROOT / "ci" / "gate.sh", *words], tmp_path, environment)
    assert done.returncode == 2
    assert "--manifests PATH" in done.stderr


def test_a_timeline_is_simulated_with_its_expectations(tmp_path, environment):
    timeline = tmp_path / "timeline.yaml"
    words = ("--manifests", GATE / "good", "--state", CLUSTER, "--timeline", timeline)
    for expected, code in ((2, 0), (3, 1)):
        expect = {"ready": {"of": "web", "exactly": expected}}
        timeline.write_text(yaml.safe_dump({"lasts": "5m", "steps": [{"at": "3m", "expect": expect}]}))
        done = gate(tmp_path, environment, *words)
        assert done.returncode == code, done.stdout
        assert f"### Timeline {timeline}" in done.stdout
        assert ET.parse(tmp_path / "reports" / "timeline-1.junit.xml").getroot().tag == "testsuites"


def test_paths_may_have_spaces_and_are_no_code(tmp_path, environment):
    odd = tmp_path / "a b $(touch code) `touch code`"
    odd.mkdir()
    (odd / "web.yaml").write_text((GATE / "good" / "web.yaml").read_text())
    done = gate(tmp_path, environment, "--manifests", odd, "--state", CLUSTER)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "code").exists()


# GitHub


ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def step(action, name):
    return next(one for one in action["runs"]["steps"] if one.get("id", one.get("name")) == name)


@pytest.mark.parametrize("given, code", [
    ({"manifests": "good\n\n"}, 0),
    ({"manifests": "too-many", "fail": "false"}, 0),
    ({"manifests": "absent", "fail": "false"}, 2),
    ({"manifests": "good", "lose": "node/node-1\n"}, 1),
    ({"manifests": "$(exit 3)"}, 2),
])  # fmt: skip
def test_the_action_does_what_its_inputs_say(given, code, tmp_path, environment):
    gate_step = step(ACTION, "gate")
    inputs = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | {"state": CLUSTER} | given
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value).replace(
            "${{ github.action_path }}", str(ROOT)
        )
        for name, value in gate_step["env"].items()
    }
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("good", "too-many"):
        (folder / name).symlink_to(GATE / name)
    outputs = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    done = run(["bash", "-e", "-o", "pipefail", "-c", gate_step["run"]], folder, environment, **variables, **outputs)
    assert done.returncode == code, done.stderr
    if code < 2:
        assert (tmp_path / "summary").read_text() == (folder / "bayplan-reports" / "summary.md").read_text()
    assert re.fullmatch(r"code=\d\n", (tmp_path / "output").read_text())


def test_inputs_are_never_part_of_a_script():
    for one in ACTION["runs"]["steps"]:
        assert "${{" not in one.get("run", "")
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text("utf-8")))
    assert used == set(ACTION["inputs"])


def test_what_the_action_installs_is_there():
    names = set(tracked())
    for path in re.findall(r'"\$ACTION/([^"]+)"', step(ACTION, "Install")["run"] + step(ACTION, "gate")["run"]):
        assert path in names


# GitLab


def test_the_job_of_gitlab_runs_the_gate(tmp_path, environment):
    head, job = yaml.safe_load_all((ROOT / "ci" / "gitlab" / "bayplan.yml").read_text("utf-8"))
    given = {
        "image": "bayplan",
        "gate": str(ROOT / "ci" / "gate.sh"),
        "manifests": str(GATE / "too-many"),
        "state": CLUSTER,
    }
    values = {name: given.get(name, one.get("default")) for name, one in head["spec"]["inputs"].items()}
    named = set(re.findall(r"\$\[\[ inputs\.(\w+) \]\]", json.dumps(job)))
    assert named == set(values)
    variables = {
        name: values[value[len("$[[ inputs.") : -len(" ]]")]] for name, value in job["bayplan"]["variables"].items()
    }
    done = run(["sh", "-ec", "\n".join(job["bayplan"]["script"])], tmp_path, environment, **variables)
    assert done.returncode == 1, done.stderr
    assert list(tmp_path.glob(job["bayplan"]["artifacts"]["reports"]["junit"]))


# Hooks and plugins


@pytest.mark.parametrize(
    "hook", yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")), ids=lambda hook: hook["id"]
)
def test_the_hooks_run(hook, environment):
    words = [*shlex.split(hook["entry"]), *hook["args"]]
    assert words[0] == "bayplan"
    assert hook["pass_filenames"] is False
    state = ["--state", CLUSTER] if "place" in words else []
    assert run([*words, *state], GATE / "good", environment).returncode == 0
    assert run([*words, *state], GATE / ("too-many" if state else "invalid"), environment).returncode == 1


def test_the_plugins_of_k9s_are_commands():
    plugins = yaml.safe_load((ROOT / "ci" / "k9s" / "plugins.yaml").read_text("utf-8"))["plugins"]
    for plugin in plugins.values():
        assert {"shortCut", "description", "scopes", "command"} <= set(plugin)
        assert plugin["args"][0] == "-c"
        command, pager = plugin["args"][1].split(" 2>&1 | ")
        assert pager == "less -R"
        assert all(f'"{name}"' in command or f'/{name}"' in command for name in re.findall(r"\$\w+", command))
        test_examples.check(shlex.split(command)[1:])


def test_the_launcher_of_krew_starts_bayplan_or_says_what_is_missing(tmp_path, environment):
    launcher = ROOT / "ci" / "krew" / "kubectl-bayplan"
    assert run([launcher, "version"], tmp_path, environment).stdout.startswith("bayplan ")
    done = run([launcher, "version"], tmp_path, {"PATH": "/usr/bin:/bin"})
    assert done.returncode == 127
    assert "pipx install bayplan" in done.stderr
