"""
What all commands share: grouped options, help with examples, a variable for every option, and exit codes.

It does not know the commands.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from bayplan.cli import configuration
from bayplan.cli.console import Console
from bayplan.errors import ArgumentError, BayplanError, ClusterError

PREFIX = "BAYPLAN"
CONSOLE_KEY = "bayplan.console"
REDACTED = "REDACTED"  # as kubectl prints a secret

EXIT_YES = 0
EXIT_NO = 1
EXIT_BAD_INPUT = 2
EXIT_NO_ACCESS = 3
EXIT_BUG = 70  # EX_SOFTWARE: 1 would read as "the answer is no"
EXIT_INTERRUPTED = 130  # 128 and SIGINT, as a shell reports it
EXIT_BROKEN_PIPE = 141  # 128 and SIGPIPE

_OPTION_OF_ARGUMENT = {  # others have the name
    "label_keys": "--label-key",
    "require_stages": "--require-stage",
    "selector": "-l",
    "switches": "--switch",
    "workload": "KIND/NAME",
}
_PASSWORD = re.compile(r"(?<=://)[^/\s]*@")  # user name and password before the host of a URL


class Option(click.Option):
    """
    An option, listed under a heading in the help.

    Its value can come from `BAYPLAN_PLACE_OUTPUT`, which sets it for one command, or from `BAYPLAN_OUTPUT`, which sets
    it for all commands. The value of a `secret` option is never printed: see `redacted_value`.
    """

    def __init__(self, *declarations: str, heading: str = "Options", secret: bool = False, **settings: Any) -> None:
        super().__init__(declarations, **settings)
        self.heading, self.secret = heading, secret

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The value of the command's own variable, else of the variable for all commands; None if both are empty."""
        name = str(self.name).upper()
        return os.environ.get(f"{ctx.auto_envvar_prefix}_{name}") or os.environ.get(f"{PREFIX}_{name}") or None

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option, and the source of its value if that is not the command line."""
        hint = super().get_error_hint(ctx)
        if ctx is None:
            return hint
        match ctx.get_parameter_source(str(self.name)):
            case ParameterSource.ENVIRONMENT:
                own, shared = (f"{prefix}_{str(self.name).upper()}" for prefix in (ctx.auto_envvar_prefix, PREFIX))
                return f"{hint} (from the variable {own if os.environ.get(own) else shared})"
            case ParameterSource.DEFAULT_MAP:
                return f"{hint} (from {configuration.current(ctx).file})"
        return hint


class Argument(click.Argument):
    """A positional argument with a line of its own in the help."""

    heading = "Arguments"

    def __init__(self, name: str, *, explained: str, **settings: Any) -> None:
        super().__init__([name], **settings)
        self.explained = explained

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """The argument as it is typed, and what it means."""
        return self.make_metavar(ctx), self.explained


def was_typed(name: str) -> bool:
    """Whether a parameter of the current command was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


class OptionGroup(msgspec.Struct, frozen=True):
    """Options that a command function takes as one value: `build` makes the value, `name` is its parameter."""

    name: str
    build: Callable[..., Any]
    options: tuple[Option, ...]


class Command(click.Command):
    """A command whose help shows a summary, examples, details and grouped options. `invoke` returns the exit code."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), details: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples, self.details = examples, details

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Summary, examples, details."""
        super().format_help_text(ctx, formatter)
        format_examples(self.examples, ctx, formatter)
        if self.details:
            formatter.write_paragraph()
            formatter.write_text(self.details)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Options under their headings, click's own `--help` last."""
        headings: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                headings.setdefault(getattr(param, "heading", "Help"), []).append(record)
        for heading, records in headings.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        """The exit code; errors of the input or of a server are reported with the command's own console."""
        try:
            return super().invoke(ctx)
        except BayplanError as error:
            ctx.meta.get(CONSOLE_KEY, Console()).error(error)
            return exit_code_of_error(error)


def report_bug() -> None:
    """Write the traceback of the current exception to standard error."""
    import traceback

    from bayplan.writing import tables

    # The exception may quote the input.
    sys.stderr.write(tables.printable_lines(traceback.format_exc()))
    sys.stderr.write("This is a bug in bayplan. Please report it with the lines above.\n")


def format_examples(examples: Sequence[str], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the examples as they are typed, never wrapped."""
    if not examples:
        return
    program = ctx.find_root().info_name or ""
    with formatter.section("Examples"):
        for example in examples:
            formatter.write(f"{'':{formatter.current_indent}}{example.replace('bayplan', program, 1)}\n")


def command(
    name: str,
    *,
    summary: str,
    examples: Sequence[str] = (),
    details: str = "",
    groups: Sequence[OptionGroup] = (),
    params: Sequence[click.Parameter] = (),
) -> Callable[[Callable[..., int]], Command]:
    """A decorator: makes a command of a function that takes the params and one value per group, and returns a code."""

    def decorate(function: Callable[..., int]) -> Command:
        @functools.wraps(function)
        def call(**given: Any) -> int:
            values = {str(param.name): given[str(param.name)] for param in params if param.expose_value}
            for group in groups:
                names = [str(option.name) for option in group.options if option.expose_value]
                values[group.name] = group.build(**{name: given[name] for name in names})
            if "console" in values:
                click.get_current_context().meta[CONSOLE_KEY] = values["console"]
            try:
                return function(**values)
            except ArgumentError as error:
                raise usage_error(error) from None

        options = [option for group in groups for option in group.options]
        return Command(
            name,
            callback=call,
            params=[*params, *options],
            help=summary,
            short_help=summary,
            examples=examples,
            details=details,
        )

    return decorate


def usage_error(error: ArgumentError) -> click.UsageError:
    """The error of an argument of the library, as one of the option that it was given with."""
    if not error.argument:
        return click.UsageError(error.message)
    option = _OPTION_OF_ARGUMENT.get(error.argument, f"--{error.argument.replace('_', '-')}")
    if error.value:
        return click.UsageError(f"{option} {error.value}: {error.message}")
    return click.BadParameter(error.message, param_hint=option)


def exit_code(answer: bool, *, exit_zero: bool = False) -> int:
    """The exit code for a yes or a no; with `exit_zero` always 0."""
    return EXIT_YES if answer or exit_zero else EXIT_NO


def exit_code_of_error(error: BayplanError) -> int:
    """The exit code for an error of the input or of a server."""
    return EXIT_NO_ACCESS if isinstance(error, ClusterError) else EXIT_BAD_INPUT


def is_secret(param: click.Parameter) -> bool:
    """Whether the value of the parameter is a secret."""
    return bool(getattr(param, "secret", False))


def redacted_value(param: click.Parameter, given: Any) -> Any:
    """The value of an option without secrets."""
    if given and is_secret(param):
        return REDACTED
    return _PASSWORD.sub(f"{REDACTED}@", given) if isinstance(given, str) else given


def redacted_arguments(command: click.Command, given: Sequence[str]) -> list[str]:
    """The words of a command line without secrets."""
    secret = {name for param in command.params if is_secret(param) for name in param.opts}
    shown: list[str] = []
    for word in given:
        name, equals, _ = word.partition("=")
        if shown and shown[-1] in secret:
            shown.append(REDACTED)
        elif equals and name in secret:
            shown.append(f"{name}={REDACTED}")
        else:
            shown.append(_PASSWORD.sub(f"{REDACTED}@", word))
    return shown
