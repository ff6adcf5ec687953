"""Secrets on the command line are never printed: not in settings, reports or messages."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

from bayplan.cli import commands, configuration, main

SECRET = "s3cr3t-t0k3n"
# What a secret is likely called. Files that hold one are named openly; what is in them is never shown.
SOUNDS_SECRET = re.compile(r"token|password|passphrase|secret|credential")
COMMANDS = dict(configuration.all_commands(main.cli))
WITH_SECRETS = {name: command for name, command in COMMANDS.items() if any(map(commands.is_secret, command.params))}
TIMELINE = pathlib.Path(__file__).parents[2] / "examples" / "23-lose-a-zone" / "timeline.yaml"
ARGUMENTS = {
    "explain": ["pod/web-2"],
    "simulate": [str(TIMELINE)],
    "run": ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"],
}


def secret_words(command):
    return [[f"{param.opts[-1]}={SECRET}"] for param in command.params if commands.is_secret(param)]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_with_secret_names_are_marked_secret(name):
    unmarked = [
        param.opts[-1]
        for param in COMMANDS[name].params
        if SOUNDS_SECRET.search(str(param.name)) and not commands.is_secret(param) and not param.is_flag
    ]
    assert unmarked == []


def test_tokens_are_secrets():
    assert {"place", "explain", "violations", "rebalance", "quota", "audit", "run", "snapshot"} <= WITH_SECRETS.keys()


@pytest.mark.parametrize("form", [["-o", "yaml"], ["-o", "json"], ["--origins"]])
@pytest.mark.parametrize("name", WITH_SECRETS)
def test_settings_of_a_command_hide_secrets(name, form, run):
    for words in secret_words(COMMANDS[name]):
        shown = run("config", "view", *form, *name.split(), *words)
        assert shown.exit_code == 0, shown.stderr
        assert commands.REDACTED in shown.stdout
        assert SECRET not in shown.output


def test_settings_from_a_variable_or_a_file_hide_secrets(run, tmp_path):
    by_variable = run("config", "view", BAYPLAN_TOKEN=SECRET)
    path = tmp_path / "settings.yaml"
    path.write_text(f"apiVersion: bayplan.io/v1alpha1\nkind: BayplanConfiguration\noptions: {{token: {SECRET}}}\n")
    by_file = run("config", "view", "--config", path)
    for shown in (by_variable, by_file):
        assert yaml.safe_load(shown.stdout)["commands"]["place"]["token"] == commands.REDACTED
        assert SECRET not in shown.output


@pytest.mark.parametrize("given, shown", [
    (["--token", SECRET, "-v"], ["--token", commands.REDACTED, "-v"]),
    ([f"--token={SECRET}", "-v"], [f"--token={commands.REDACTED}", "-v"]),
    (["--token"], ["--token"]),
    (["--server", f"https://me:{SECRET}@host:6443/x"], ["--server", f"https://{commands.REDACTED}@host:6443/x"]),
    (["-f", "a=b.yaml", "--as", "me@home"], ["-f", "a=b.yaml", "--as", "me@home"]),
])  # fmt: skip
def test_secrets_in_command_lines_are_redacted(given, shown):
    assert commands.redacted_arguments(COMMANDS["audit"], given) == shown


@pytest.mark.parametrize("words", [("--token", SECRET), (f"--token={SECRET}",)])
def test_the_scs_report_hides_secrets(words, run, scene, monkeypatch):
    command_line = ("audit", "-f", "nodes.yaml", "-o", "scs-report", "--subject", "mine", *words)
    monkeypatch.setattr("sys.argv", ["bayplan", *command_line])
    done = run(*command_line)
    assert SECRET not in done.output
    report = yaml.safe_load(done.stdout)
    (invocation,) = report["run"]["invocations"].values()
    assert commands.REDACTED in " ".join(report["run"]["argv"])
    assert commands.REDACTED in invocation["cmd"]


@pytest.mark.parametrize("name", WITH_SECRETS)
def test_messages_hide_secrets(name, source_folder):
    """The server does not exist, and the command reports that in detail."""
    words = [*name.split(), *ARGUMENTS.get(name, []), "-vv", "--server", "https://127.0.0.1:1", "--token", SECRET]
    done = subprocess.run(
        [sys.executable, "-m", "bayplan", *words],
        env={**os.environ, "PYTHONPATH": str(source_folder), "HOME": "/nonexistent", "KUBECONFIG": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_an_address_with_a_password_is_rejected_without_printing_it(run):
    done = run("place", "--server", f"https://me:{SECRET}@127.0.0.1:1", HOME="/nonexistent", KUBECONFIG="")
    assert done.exit_code == 2
    assert "--server: expected an address without a user name and password" in done.stderr
    assert SECRET not in done.output
