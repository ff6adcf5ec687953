"""As a kubectl plugin: options before the command, and the current context by default."""

import pytest
from click.testing import CliRunner

from bayplan.cli import main

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.mark.parametrize(
    "words",
    [
        ("-f", ".", "explain", "web-2"),
        ("-f.", "explain", "web-2"),
        ("--filename=.", "-R", "explain", "web-2"),
        ("--color", "never", "-f", ".", "explain", "pod", "web-2"),
        ("-n", "shop", "explain", "web-2", "-f", "."),
    ],
)
def test_options_may_be_before_the_command(words, run, scene):
    assert run(*words).stdout == run("explain", "web-2", "-f", ".", "-n", "shop").stdout


def test_a_value_before_the_command_may_be_a_command_name(run, scene):
    (scene / "place").mkdir()
    (scene / "nodes.yaml").rename(scene / "place" / "nodes.yaml") if (scene / "nodes.yaml").exists() else None
    assert (
        run("-n", "place", "explain", "web-2", "-f", ".").stdout
        == run("explain", "web-2", "-f", ".", "-n", "place").stdout
    )


@pytest.mark.parametrize(
    "words", [("--nonsense", "place"), ("-f",), ("-f", "place"), ("--replicas", "3", "explain", "x")]
)
def test_what_is_no_option_of_the_command_is_a_usage_error(words, run, scene):
    assert run(*words).exit_code == 2


@pytest.mark.parametrize("program, code, message", [
    ("kubectl bayplan", 3, "127.0.0.1:1"),
    ("bayplan", 2, "nothing to read"),
])  # fmt: skip
def test_only_a_plugin_uses_the_current_context_without_files(program, code, message, tmp_path, monkeypatch):
    (tmp_path / "config").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    result = CliRunner().invoke(main.cli, ["place"], prog_name=program)
    assert (result.exit_code, message in result.stderr) == (code, True)


def test_a_plugin_with_files_reads_no_cluster(scene, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")
    result = CliRunner().invoke(main.cli, ["place", "-f", "."], prog_name="kubectl bayplan")
    assert result.exit_code == 1
    assert "web-2" in result.stdout


def test_moves_are_never_applied_to_a_cluster_that_is_not_named(tmp_path, monkeypatch):
    (tmp_path / "config").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    result = CliRunner().invoke(main.cli, ["rebalance", "--apply"], prog_name="kubectl bayplan")
    assert result.exit_code == 2
