"""The pages about the command line name every command and option."""

import pathlib
import re

import click
import pytest

from bayplan.cli import configuration, main

REFERENCE = pathlib.Path(__file__).parents[2] / "docs" / "reference"
COMMANDS = dict(configuration.all_commands(main.cli))
CHOICES = ("kind", "what")


def page(name):
    return (REFERENCE / name).read_text(encoding="utf-8")


def typed(name, command):
    """The command as it is typed, once for each choice that it has."""
    choices = [
        choice
        for param in command.params
        if param.name in CHOICES and isinstance(param.type, click.Choice)
        for choice in param.type.choices
    ]
    return [f"bayplan {name} {choice}" for choice in choices] or [f"bayplan {name}"]


def having(option):
    return {name for name, command in COMMANDS.items() if any(option in param.opts for param in command.params)}


def named_in(text):
    return set(re.findall(r"`([a-z-]+)`", text)) & COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_row(name):
    first_cells = "\n".join(
        line.split("|")[1] for line in page("command-line.md").splitlines() if line.startswith("| `")
    )
    for words in typed(name, COMMANDS[name]):
        assert f"`{words}" in first_cells


@pytest.mark.parametrize("option, line", [
    ("--exit-zero", r"^\| `--exit-zero` \|.*$"),
    ("--filename", r"^## Input .*$"),
    ("--seed", r"^## Scheduling options .*$"),
    ("--all-namespaces", r"^\| `-A`, .*$"),
    ("--selector", r"^\| `-l`, .*$"),
])  # fmt: skip
def test_the_commands_with_an_option_are_listed(option, line):
    (found,) = re.findall(line, page("command-line.md"), re.MULTILINE)
    assert named_in(found) == having(option)


def test_the_commands_with_exit_zero_are_listed():
    (found,) = re.findall(r"^`--exit-zero` turns (.*?)\. ", page("exit-codes.md"), re.MULTILINE | re.DOTALL)
    assert named_in(found) == having("--exit-zero")
