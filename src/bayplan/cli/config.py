"""`bayplan config view`: the effective settings of flags, variables and the configuration file."""

from __future__ import annotations

from typing import Any

import click

from bayplan.cli import commands, configuration, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

_ORIGINS = {
    click.core.ParameterSource.COMMANDLINE: "flag",
    click.core.ParameterSource.ENVIRONMENT: "variable",
    click.core.ParameterSource.DEFAULT_MAP: "file",
    click.core.ParameterSource.DEFAULT: "default",
}


@click.group("config", help=SUMMARIES["config"], short_help=SUMMARIES["config"])
def config() -> None:
    """The group of the configuration commands."""


@commands.command(
    "view",
    summary="Print the effective settings.",
    examples=(
        "bayplan config view",
        "bayplan config view --config team.yaml",
        "bayplan config view --origins place -f app.yaml -o wide",
    ),
    details=(
        "Flags override variables, and variables override the configuration file. Without a command, prints every "
        "option that a variable or the file sets, and the scheduler configuration of the file. With a command, prints "
        "all its options as set by the arguments that follow. Secrets are never printed."
    ),
    groups=(options.CONSOLE,),
    params=(
        commands.Argument(
            "arguments",
            nargs=-1,
            type=click.UNPROCESSED,
            metavar="[COMMAND [ARGUMENTS]...]",
            explained="Print the settings of this command with these arguments.",
        ),
        commands.Option("--origins", is_flag=True, help="Show for each setting where it comes from."),
        options.output("yaml", "json"),
    ),
)
def view(arguments: tuple[str, ...], origins: bool, output: str, console: Console) -> int:
    """Write the settings as a configuration file."""
    from bayplan.writing import versioned

    root = click.get_current_context().find_root()
    if arguments:
        name, settings = _of_command(list(arguments), root)
        content: dict[str, Any] = {"commands": {name: _shown(settings, origins=origins)}}
    else:
        every = configuration.all_commands(root.command)
        changed = {}
        for name, command in every:
            settings = _settings(_context(command, name, [], root))
            changed[name] = {option: pair for option, pair in settings.items() if pair[1] != "default"}
        content = _shared_first({name: _shown(settings, origins=origins) for name, settings in changed.items()})
    loaded = configuration.current()
    if loaded.file:
        content = {"metadata": {"name": loaded.file}, **content}
    if loaded.scheduler is not None:
        content["scheduler"] = loaded.scheduler
    if loaded.guard is not None:
        content["guard"] = loaded.guard
    if loaded.custom_kinds is not None:
        content["customKinds"] = loaded.custom_kinds
    console.answer(versioned.written(versioned.document(configuration.KIND, content), output))
    return commands.EXIT_YES


# Options after the name of a command belong to that command.
view.allow_interspersed_args = False
config.add_command(view)

Settings = dict[str, tuple[Any, str]]


def _of_command(arguments: list[str], root: click.Context) -> tuple[str, Settings]:
    """The command that the first words name, and all its settings with the arguments that follow."""
    command: click.Command = root.command
    words: list[str] = []
    while isinstance(command, click.Group):
        if not arguments:
            raise click.UsageError(f"{' '.join(words)} needs a subcommand")
        name = arguments.pop(0)
        child = command.get_command(root, name)
        if child is None:
            raise click.exceptions.NoSuchCommand(name, possibilities=command.commands, ctx=root)
        words.append(name)
        command = child
    return " ".join(words), _settings(_context(command, " ".join(words), arguments, root))


def _context(command: click.Command, name: str, arguments: list[str], root: click.Context) -> click.Context:
    """The context of the command with its parameters resolved; missing arguments are not an error."""
    bare = click.Context(root.command, info_name=root.info_name, **root.command.context_settings)
    bare.meta.update(root.meta)
    defaults = configuration.current().defaults(name)
    prefix = f"{commands.PREFIX}_{name.upper().replace(' ', '_')}"
    return command.make_context(
        name, arguments, parent=bare, resilient_parsing=True, default_map=defaults, auto_envvar_prefix=prefix
    )


def _settings(context: click.Context) -> Settings:
    """Option → value and origin."""
    found: Settings = {}
    for param in context.command.params:
        if isinstance(param, commands.Option) and param.expose_value:
            name = str(param.name)
            origin = context.get_parameter_source(name)
            value = commands.redacted_value(param, context.params.get(name))
            found[configuration.option_name(param)] = value, _ORIGINS.get(origin, "default")  # type: ignore[arg-type]
    return found


def _shared_first(shown: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The settings that all commands share, and the other settings by command."""
    first, *others = shown.values()
    shared = {name: value for name, value in first.items() if all(o.get(name) == value for o in others)}
    own = {name: {k: v for k, v in settings.items() if k not in shared} for name, settings in shown.items()}
    return {"options": shared, "commands": {name: settings for name, settings in own.items() if settings}}


def _shown(settings: Settings, *, origins: bool) -> dict[str, Any]:
    if origins:
        return {name: {"value": value, "origin": origin} for name, (value, origin) in settings.items()}
    return {name: value for name, (value, _) in settings.items() if value not in (None, (), "")}
