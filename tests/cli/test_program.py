"""The program as a process: exit codes, streams and help."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys

import click
import pytest

import interrupts
from bayplan.cli import configuration, main

COMMANDS = dict(configuration.all_commands(main.cli))
QUESTION = '{"nodes":[],"pod":{}}\n'


@pytest.fixture
def command(source_folder):
    """The arguments and environment to start the program with."""
    variables = {**os.environ, "PYTHONPATH": str(source_folder)}
    return {"args": [sys.executable, "-m", "bayplan"], "env": variables}


def test_a_closed_pipe_ends_with_141_and_no_message(command):
    process = subprocess.Popen(
        [*command["args"], "decide", "pods"],
        env=command["env"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    process.stdin.write(QUESTION.encode())
    process.stdin.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 141


def test_answers_do_not_wait_for_the_next_question(command):
    with subprocess.Popen(
        [*command["args"], "decide", "pods"], env=command["env"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(QUESTION.encode())
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["best"] == []
        process.stdin.close()


def test_an_interrupt_ends_with_130_and_no_traceback(command):
    with subprocess.Popen(
        [*command["args"], "decide", "pods"],
        env=command["env"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=interrupts.restore,  # noqa: PLW1509 (no threads here)
    ) as process:
        process.stdin.write(QUESTION.encode())
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert b"Traceback" not in process.stderr.read()
        assert process.wait(timeout=60) == 130


def test_a_bug_ends_with_70_and_a_traceback(monkeypatch, capsys):
    def broken(**_):
        raise ZeroDivisionError

    monkeypatch.setattr(main.cli, "main", broken)
    monkeypatch.setattr(main.console, "install_streams", lambda: None)  # the test has its own streams
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("path, name", [
    ("/usr/bin/bayplan", "bayplan"),
    ("/usr/bin/kubectl-bayplan", "kubectl bayplan"),
    ("/lib/bayplan/__main__.py", "bayplan"),
])  # fmt: skip
def test_the_name_of_the_program_is_as_it_is_typed(path, name):
    assert main.program_name(path) == name


def test_help_has_a_summary_and_examples_first(run):
    lines = [line.strip() for line in run("place", "--help").stdout.splitlines() if line.strip()]
    assert lines[1] == "Show where pending pods would be placed, one after another."
    assert lines[2] == "Examples:"
    assert lines[3] == "bayplan place --state cluster.json -f app.yaml"


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_the_help_can_be_typed(name, monkeypatch):
    monkeypatch.setattr(configuration, "load", lambda *_: configuration.Configuration())  # its file does not exist
    command = COMMANDS[name]
    for example in command.examples:
        for line in re.split(r"[|<>]", example):
            program, *words = shlex.split(line.strip()) or [""]
            if program == "bayplan" and words[: len(name.split())] == name.split():
                with click.Context(main.cli, info_name="bayplan", **main.SETTINGS) as root:
                    command.make_context(name, words[len(name.split()) :], parent=root)


@pytest.mark.parametrize("name", COMMANDS)
def test_arguments_are_explained_in_the_help(name, run):
    arguments = [param for param in COMMANDS[name].params if isinstance(param, click.Argument)]
    text = run(*name.split(), "--help").stdout
    assert ("Arguments:" in text) is bool(arguments)
    for argument in arguments:
        assert argument.explained.split()[0] in text.partition("Arguments:")[2]


@pytest.mark.parametrize("words, choices", [
    (["decide", "pods"], ["pods:", "preemption:", "fleet:", "admission:"]),
    (["audit", "labels"], ["kubectl label"]),
])  # fmt: skip
def test_choices_are_explained_in_the_help(words, choices, run):
    text = " ".join(run(*words, "--help").stdout.split())
    assert [choice for choice in choices if choice not in text] == []


def test_every_command_has_help(run):
    for name in main.cli.commands:
        result = run(name, "-h")
        assert result.exit_code == 0
        assert name == "config" or "Examples:" in result.stdout


def test_version_names_the_supported_schedulers(run):
    assert run("version").stdout == "bayplan 0.1.0 (Kubernetes 1.36, Karmada 1.18)\n"
    found = json.loads(run("version", "-o", "json").stdout)
    assert found["supported"] == {"kubernetes": "1.36", "karmada": "1.18"}
