"""The pages that are made from the code: the help of every command, as `--help` prints it."""

import functools

import click

from bayplan.cli import main

WIDTH = 100


@functools.cache
def pages():
    """The text of each page by its source URI."""
    return {"reference/commands.md": _commands_page()}


def _commands_page():
    lines = [
        "# Help of every command",
        "",
        "This page is made from the code. It has what `--help` prints. [Command line](command-line.md) is the summary.",
        "",
    ]
    for words, command in _commands(("bayplan",), main.cli):
        name = " ".join(words)
        context = click.Context(command, info_name=name, max_content_width=WIDTH, terminal_width=WIDTH)
        lines += [f"## {name}", "", "~~~~text", command.get_help(context), "~~~~", ""]
    return "\n".join(lines)


def _commands(words, command):
    yield words, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            if not command.commands[name].hidden:
                yield from _commands((*words, name), command.commands[name])
