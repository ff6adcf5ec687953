"""
What our commands have in common: options in groups, examples before options, variables for every option.

Knows none of the commands.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from bayplan.cli import configuration, outcomes
from bayplan.cli.console import Console
from bayplan.errors import BayplanError

PREFIX = "BAYPLAN"
CONSOLE_KEY = "bayplan.console"


class Option(click.Option):
    """
    An option that stands under a heading in the help.

    Besides `BAYPLAN_PLACE_OUTPUT`, which is for one command, `BAYPLAN_OUTPUT` is for all of them. The value of a
    `secret` one is shown to nobody: see `masking`.
    """

    def __init__(self, *declarations: str, heading: str = "Options", secret: bool = False, **settings: Any) -> None:
        super().__init__(declarations, **settings)
        self.heading, self.secret = heading, secret

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The value of the command's own variable, else of the one for all commands."""
        return os.environ.get(self._variable(ctx)) or None

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option, and where its value comes from if not from the command line."""
        hint = super().get_error_hint(ctx)
        if ctx is None:
            return hint
        match ctx.get_parameter_source(str(self.name)):
            case ParameterSource.ENVIRONMENT:
                return f"{hint} (from the variable {self._variable(ctx)})"
            case ParameterSource.DEFAULT_MAP:
                return f"{hint} (from {configuration.of(ctx).file})"
        return hint

    def _variable(self, ctx: click.Context) -> str:
        own, shared = (f"{prefix}_{str(self.name).upper()}" for prefix in (ctx.auto_envvar_prefix, PREFIX))
        return own if os.environ.get(own) else shared


class Argument(click.Argument):
    """A positional argument that the help explains, each choice included."""

    heading = "Arguments"

    def __init__(self, name: str, *, explained: str, **settings: Any) -> None:
        super().__init__([name], **settings)
        self.explained = explained

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """Its place in the command line, and what it means."""
        return self.make_metavar(ctx), self.explained


def was_typed(name: str) -> bool:
    """Whether a parameter of the command under way stands on its command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


class OptionGroup(msgspec.Struct, frozen=True):
    """Options that a command takes as one value: `build` makes it from them, `name` is its parameter."""

    name: str
    build: Callable[..., Any]
    options: tuple[Option, ...]

    def of(self, given: dict[str, Any]) -> Any:
        """The value of the group, out of all that was given."""
        return self.build(**_own(self.options, given))


class Command(click.Command):
    """A command whose help has a summary, examples, then the rest; what goes wrong outside of us is its exit code."""

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
        """The exit code; errors of the input or of a server are told here, where it is known how to talk."""
        try:
            return super().invoke(ctx)
        except BayplanError as error:
            ctx.meta.get(CONSOLE_KEY, Console()).error(error)
            return outcomes.of_error(error)


def format_examples(examples: Sequence[str], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Examples as they would be typed, never wrapped."""
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
    """A decorator that makes a function, which takes the groups' values and returns an exit code, a command."""

    def decorate(function: Callable[..., int]) -> Command:
        @functools.wraps(function)
        def call(**given: Any) -> int:
            values = {group.name: group.of(given) for group in groups}
            if "console" in values:
                click.get_current_context().meta[CONSOLE_KEY] = values["console"]
            return function(**_own(params, given), **values)

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


def _own(params: Sequence[click.Parameter], given: dict[str, Any]) -> dict[str, Any]:
    return {str(param.name): given[str(param.name)] for param in params if param.expose_value}
