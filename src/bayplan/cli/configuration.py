"""
The configuration file: defaults for options, and the configuration of the scheduler.

    apiVersion: bayplan.io/v1alpha1
    kind: BayplanConfiguration
    options:   {color: never}          # for all commands
    commands:  {place: {output: wide}} # for one command
    scheduler: {profiles: […]}         # a KubeSchedulerConfiguration
    guard:     {restrict: all}         # limits on required anti-affinity, and who is exempt

A plain KubeSchedulerConfiguration is accepted too. This module does not know what the options mean.
"""

from __future__ import annotations

import difflib
import os
import pathlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from bayplan.reading.documents import Document

KIND, API_VERSION = "BayplanConfiguration", "bayplan.io/v1alpha1"
SCHEDULER_KIND, SCHEDULER_GROUP = "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/"
META_KEY = "bayplan.configuration"
_FIELDS = ("apiVersion", "kind", "metadata", "options", "commands", "scheduler", "guard")


class Configuration(msgspec.Struct, frozen=True):
    """The content of the file; `scheduler` and `guard` are None if they are not set."""

    file: str = ""
    options: dict[str, Any] = {}
    commands: dict[str, dict[str, Any]] = {}
    scheduler: dict[str, Any] | None = None
    guard: dict[str, Any] | None = None

    def defaults(self, command: str) -> dict[str, Any]:
        """Parameter → value for one command."""
        named = {**self.options, **self.commands.get(command, {})}
        return {parameter_name(name): value for name, value in named.items()}


def current(ctx: click.Context | None = None) -> Configuration:
    """The configuration of the current run, or of the run of a context."""
    found = (ctx or click.get_current_context()).meta.get(META_KEY)
    return found if isinstance(found, Configuration) else Configuration()


def apply(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """
    The callback of --config: use the file's values as defaults of the command's options.

    Variables and flags override them. Without --config the file is $XDG_CONFIG_HOME/bayplan/config.yaml, if it exists.
    """
    if ctx.resilient_parsing:  # completion must not fail because of a bad file
        return
    if not path:
        folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        path = str(pathlib.Path(folder, "bayplan", "config.yaml").expanduser())
        if not os.path.isfile(path):  # noqa: PTH113 - returns False where permission is denied
            return
    configuration = load(path, known_options(ctx.find_root()))
    ctx.meta[META_KEY] = configuration
    ctx.default_map = configuration.defaults(command_name(ctx))


def command_name(ctx: click.Context) -> str:
    """The full name of the command, as in the file: `place`, `config view`."""
    names = []
    while ctx.parent is not None:
        names.append(ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(reversed(names))


def known_options(root: click.Context) -> dict[str, list[str]]:
    """Command → the names of its options as in the file."""
    return {name: [option_name(param) for param in command.params] for name, command in all_commands(root.command)}


def all_commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that can be run, with its full name; groups are left out."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for part, child in command.commands.items():
        yield from all_commands(child, f"{name} {part}".strip())


def option_name(param: click.Parameter) -> str:
    """The name of an option in the file: `output_file` is `outputFile`."""
    head, *rest = str(param.name).split("_")
    return head + "".join(word.capitalize() for word in rest)


def parameter_name(name: str) -> str:
    """The name of an option in click: `outputFile` is `output_file`."""
    return re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def load(path: str, known: dict[str, list[str]]) -> Configuration:
    """The content of the file; raises InputError with all faults in it."""
    document = _document(path)
    if document.kind == SCHEDULER_KIND and document.api_version.startswith(SCHEDULER_GROUP):
        return Configuration(path, scheduler=document.locate().root)
    faults = [document.fault(message, where) for where, message in _problems(document, known)]
    if faults:
        raise InputError(faults)
    root = document.locate().root
    return Configuration(
        path, root.get("options") or {}, root.get("commands") or {}, root.get("scheduler"), root.get("guard")
    )


def _document(path: str) -> Document:
    import io

    from bayplan.reading import files

    source = files.open_source(path, io.BytesIO())
    if isinstance(source, Fault):
        raise InputError(source)
    found = list(files.documents_of(source))
    faults = [item for item in found if isinstance(item, Fault)]
    documents = [item for item in found if not isinstance(item, Fault)]
    if faults or len(documents) != 1:
        raise InputError(faults or Fault(f"expected one {KIND}, got {len(documents)} objects", file=path))
    return documents[0]


def _problems(document: Document, known: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Field path and message of each fault."""
    if document.kind != KIND:
        yield "kind", f"expected {KIND} or {SCHEDULER_KIND}, got {document.kind or 'nothing'}"
        return
    if document.api_version != API_VERSION:
        yield "apiVersion", f"expected {API_VERSION}, got {document.api_version or 'nothing'}"
    root = document.locate().root
    yield from _unknown_names(root, _FIELDS, "", "field")
    every = sorted({option for options in known.values() for option in options})
    yield from _unknown_names(root.get("options"), every, "options", "option")
    commands = root.get("commands")
    yield from _unknown_names(commands, sorted(known), "commands", "command")
    for name, given in commands.items() if isinstance(commands, dict) else ():
        if name in known:
            yield from _unknown_names(given, known[name], f"commands[{name}]", "option")
    if not isinstance(root.get("scheduler") or {}, dict):
        yield "scheduler", f"expected a {SCHEDULER_KIND}"
    yield from _guard_problem(root.get("guard"))


def _guard_problem(guard: Any) -> Iterator[tuple[str, str]]:
    """Field path and message of the first fault in the guard's settings."""
    from bayplan.validating.guard import GuardSettings

    try:
        msgspec.convert({} if guard is None else guard, GuardSettings)
    except msgspec.ValidationError as error:
        message, _, path = str(error).replace("`", "").partition(" - at $")
        yield f"guard{path}", message


def _unknown_names(value: Any, names: list[str] | tuple[str, ...], path: str, what: str) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield path, "expected a mapping"
        return
    for name in value:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            advice = f", did you mean {near[0]}?" if near else ""
            yield f"{path}.{name}".lstrip("."), f"unknown {what}{advice}"
