"""
The configuration file: defaults for options, and the settings of the scheduler whose decisions are foretold.

    apiVersion: bayplan.io/v1alpha1
    kind: BayplanConfiguration
    options:   {color: never}          # for every command
    commands:  {place: {output: wide}} # for one
    scheduler: {profiles: […]}         # a KubeSchedulerConfiguration
    guard:     {restrict: all}         # who may use hard anti-affinity, and how far it may reach

A KubeSchedulerConfiguration alone is taken too. Knows nothing of what options mean.
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
    """What the file says; `scheduler` and `guard` are None if it says nothing of them."""

    file: str = ""
    options: dict[str, Any] = {}
    commands: dict[str, dict[str, Any]] = {}
    scheduler: dict[str, Any] | None = None
    guard: dict[str, Any] | None = None

    def defaults(self, command: str) -> dict[str, Any]:
        """Parameter → value, for one command."""
        named = {**self.options, **self.commands.get(command, {})}
        return {parameter_name(name): value for name, value in named.items()}


def current() -> Configuration:
    """The configuration of this run."""
    return of(click.get_current_context())


def of(ctx: click.Context) -> Configuration:
    """The configuration of the run that the context is of."""
    found = ctx.meta.get(META_KEY)
    return found if isinstance(found, Configuration) else Configuration()


def apply(ctx: click.Context, path: str | None) -> None:
    """Take the file's values as defaults of the command's options: below variables, below flags."""
    if ctx.resilient_parsing:  # completion must not fail over a file
        return
    found = path or usual_place()
    if found is None:
        return
    configuration = load(found, known_options(ctx.find_root()))
    ctx.meta[META_KEY] = configuration
    ctx.default_map = configuration.defaults(command_name(ctx))


def usual_place() -> str | None:
    """Where the file is if nobody says; None if it is not there."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    path = pathlib.Path(folder, "bayplan", "config.yaml").expanduser()
    return str(path) if os.path.isfile(path) else None  # noqa: PTH113 - which says no where we may not look


def command_name(ctx: click.Context) -> str:
    """The command as the file names it: `place`, `config view`."""
    names = []
    while ctx.parent is not None:
        names.append(ctx.info_name or "")
        ctx = ctx.parent
    return " ".join(reversed(names))


def known_options(root: click.Context) -> dict[str, list[str]]:
    """Command → the names of its options in the file."""
    return {name: [option_name(param) for param in command.params] for name, command in all_commands(root.command)}


def all_commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that can be run, with its full name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for part, child in command.commands.items():
        yield from all_commands(child, f"{name} {part}".strip())


def option_name(param: click.Parameter) -> str:
    """`output_file` as it stands in the file: `outputFile`."""
    head, *rest = str(param.name).split("_")
    return head + "".join(word.capitalize() for word in rest)


def parameter_name(name: str) -> str:
    """`outputFile` as click knows it: `output_file`."""
    return re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def load(path: str, known: dict[str, list[str]]) -> Configuration:
    """The file's content; raises InputError with everything wrong with it."""
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
    """Path and message of each thing wrong."""
    if document.kind != KIND:
        yield "kind", f"expected {KIND} or {SCHEDULER_KIND}, got {document.kind or 'nothing'}"
        return
    if document.api_version != API_VERSION:
        yield "apiVersion", f"expected {API_VERSION}, got {document.api_version or 'nothing'}"
    root = document.locate().root
    yield from _unknown(root, _FIELDS, "", "field")
    every = sorted({option for options in known.values() for option in options})
    yield from _unknown(root.get("options"), every, "options", "option")
    commands = root.get("commands")
    yield from _unknown(commands, sorted(known), "commands", "command")
    for name, given in commands.items() if isinstance(commands, dict) else ():
        if name in known:
            yield from _unknown(given, known[name], f"commands[{name}]", "option")
    if not isinstance(root.get("scheduler") or {}, dict):
        yield "scheduler", f"expected a {SCHEDULER_KIND}"
    yield from _misshapen(root.get("guard"))


def _misshapen(guard: Any) -> Iterator[tuple[str, str]]:
    """What keeps the guard's settings from being read; only the first thing, as they are few."""
    from bayplan.validating.guard import GuardSettings

    try:
        msgspec.convert({} if guard is None else guard, GuardSettings)
    except msgspec.ValidationError as error:
        message, _, path = str(error).replace("`", "").partition(" - at $")
        yield f"guard{path}", message


def _unknown(value: Any, names: list[str] | tuple[str, ...], path: str, what: str) -> Iterator[tuple[str, str]]:
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
