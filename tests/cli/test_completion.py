import pytest

from bayplan.cli import completion


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
    (["explain-rule", "too"], "too-many-pods\n:4\n"),
    (["config", ""], "view\tPrint the effective settings.\n:4\n"),
    (["nothing-of-ours"], ":4\n"),
    (["place", "--switch", "groupsMove"], "groupsMoveTogether=\n:4\n"),
    (["audit", "--require", "fd-room-z"], "fd-room-zone\n:4\n"),
])  # fmt: skip
def test_candidates_have_the_format_of_kubectl(typed, expected):
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
