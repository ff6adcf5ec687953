import json
import pathlib

import pytest

from bayplan.cli import completion

FIRST = str(pathlib.Path(__file__).parents[2] / "examples" / "01-first-pod")


@pytest.mark.parametrize("shell, mark", [
    ("bash", "complete -o nosort"),
    ("zsh", "#compdef bayplan"),
    ("fish", "complete --no-files --command bayplan"),
    ("powershell", "Register-ArgumentCompleter"),
])  # fmt: skip
def test_every_shell_has_its_script(shell, mark, run):
    result = run("completion", shell)
    assert mark in result.stdout
    assert "_BAYPLAN_COMPLETE" in result.stdout


@pytest.mark.parametrize("typed, expected", [
    (["pl"], "place\tShow where pending pods would be placed, one after another.\n:4\n"),
    (["place", "-o", "w"], "wide\n:4\n"),
    (["place", "-f", ""], ":0\n"),  # the shell completes files
    (["explain-rule", "too-many"], "too-many-pods\n:4\n"),
    (["config", ""], "view\tPrint the effective settings.\n:4\n"),
    (["nothing-of-ours"], ":4\n"),
    (["place", "--switch", "groupsMove"], "groupsMoveTogether=\n:4\n"),
    (["audit", "--require", "fd-room-z"], "fd-room-zone\n:4\n"),
])  # fmt: skip
def test_candidates_have_the_format_of_kubectl(typed, expected):
    assert completion.candidates(typed) == expected


@pytest.mark.parametrize("typed, expected", [
    (["--output", "wi"], "wide\n:4\n"),
    (["-q", "--output", "wi"], "wide\n:4\n"),
    (["-f", ""], ":0\n"),
    (["--output", "wide", "pl"], "place\tShow where pending pods would be placed, one after another.\n:4\n"),
    (["-q", "pl"], "place\tShow where pending pods would be placed, one after another.\n:4\n"),
    (["-f", FIRST, "explain", "sts/"], "sts/web\n:4\n"),
    (["-f", FIRST, "explain", "-n", ""], "shop\n:4\n"),
    (["--no-such-option", "wi"], ":4\n"),
])  # fmt: skip
def test_options_before_the_command_are_completed_as_behind_it(typed, expected):
    assert completion.candidates(typed) == expected


def test_without_a_word_the_commands_are_listed():
    lines = completion.candidates([]).splitlines()
    assert {line.split("\t")[0] for line in lines} >= {"place", "explain", "validate", ":4"}


def test_kubectl_calls_its_own_entry_point(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["kubectl_complete-bayplan", "vers"])
    completion.kubectl_complete()
    assert capsys.readouterr().out.startswith("version\t")


KUBECONFIG = """\
apiVersion: v1
kind: Config
contexts: [{name: prod, context: {cluster: a}}, {name: play, context: {cluster: b}}, {name: test, context: {cluster: c}}]
"""


@pytest.mark.parametrize("kubeconfig, expected", [
    (KUBECONFIG, "play\nprod\n:4\n"),
    ("contexts: [", ":4\n"),  # completion reports no errors
    (None, ":4\n"),
])  # fmt: skip
def test_contexts_come_from_the_kubeconfig(kubeconfig, expected, tmp_path, monkeypatch):
    path = tmp_path / "kubeconfig"
    if kubeconfig is not None:
        path.write_text(kubeconfig)
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert completion.candidates(["place", "--context", "p"]) == expected
    monkeypatch.delenv("KUBECONFIG")
    assert completion.candidates(["run", "--kubeconfig", str(path), "--context", "p"]) == expected


OBJECTS = """\
apiVersion: v1
kind: Pod
metadata:
  labels:
    name: not-this-one
  name: web-1
  namespace: shop
spec: {}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
---
kind: Namespace
apiVersion: v1
metadata:
  name: empty
"""
LISTED = {
    "apiVersion": "v1", "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "namespace": "store"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("typed, expected", [
    (["explain", "-f", "a.yaml", ""], ["deployment/web", "pod/web-1"]),
    (["explain", "-f", "a.yaml", "po/w"], ["po/web-1"]),
    (["explain", "-f", "a.yaml", "deploy", "w"], ["web"]),
    (["explain", "-f", ".", "-n", "store", "p"], ["pod/db-0"]),
    (["place", "-f", ".", "-n", ""], ["empty", "shop", "store"]),
    (["place", "--state", "b.json", "-n", "s"], ["store"]),
    (["place", "-f", "dump.yaml", "-n", ""], ["shop"]),
    (["explain", "-f", "nowhere.yaml", ""], []),
    (["explain", "-f", "broken.json", ""], []),
])  # fmt: skip
def test_names_come_from_the_files(typed, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(OBJECTS)
    (tmp_path / "b.json").write_text(json.dumps(LISTED))
    folder = tmp_path / "other"
    folder.mkdir()
    dump = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: x\n    namespace: shop\n"
    (folder / "dump.yaml").write_text(dump)
    (folder / "broken.json").write_text('{"kind": ')
    typed = [f"other/{word}" if word in ("dump.yaml", "broken.json") else word for word in typed]
    assert completion.candidates(typed).splitlines()[:-1] == expected
