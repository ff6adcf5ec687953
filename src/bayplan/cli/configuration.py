"""
The configuration file: defaults for options, and the configuration of the scheduler.

    apiVersion: bayplan.io/v1alpha1
    kind: BayplanConfiguration
    options:   {color: never}          # for all commands
    commands:  {place: {output: wide}} # for one command
    scheduler: {profiles: […]}         # a KubeSchedulerConfiguration
    guard:     {restrict: all}         # limits on required anti-affinity, and who is exempt
    customKinds: [{group: example.com, kind: Farm, templates: […]}]   # what else makes pods

A plain KubeSchedulerConfiguration is accepted too. This module does not know what the options mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from bayplan.controllers.custom_kinds import CustomKind
    from bayplan.reading.documents import Document
    from bayplan.validating import structure

KIND, API_VERSION = "BayplanConfiguration", "bayplan.io/v1alpha1"
SCHEDULER_KIND, SCHEDULER_GROUP = "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/"
META_KEY = "bayplan.configuration"


class Configuration(msgspec.Struct, frozen=True):
    """The content of the file; `scheduler`, `guard` and `custom_kinds` are None if they are not set."""

    file: str = ""
    options: dict[str, Any] = {}
    commands: dict[str, dict[str, Any] | None] = {}
    scheduler: dict[str, Any] | None = None
    guard: dict[str, Any] | None = None
    custom_kinds: list[Any] | None = None

    def defaults(self, command: str) -> dict[str, Any]:
        """Parameter → value for one command."""
        named = {**self.options, **(self.commands.get(command) or {})}
        return {parameter_name(name): value for name, value in named.items()}


def current(ctx: click.Context | None = None) -> Configuration:
    """The configuration of the current run, or of the run of a context."""
    found = (ctx or click.get_current_context()).meta.get(META_KEY)
    return found if isinstance(found, Configuration) else Configuration()


def custom_kinds() -> list[CustomKind]:
    """The custom kinds that the file of the current run adds; none outside of a run."""
    ctx = click.get_current_context(silent=True)
    written = None if ctx is None else current(ctx).custom_kinds
    if not written:
        return []
    from bayplan.controllers.custom_kinds import CustomKind

    return msgspec.convert(written, list[CustomKind])


def apply(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """
    The callback of --config: use the file's values as defaults of the command's options.

    Variables and flags override them. Without --config the file is $XDG_CONFIG_HOME/bayplan/config.yaml, if it exists.
    """
    if ctx.resilient_parsing:  # completion must not fail because of a bad file
        return
    if not path:
        import pathlib

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


def known_options(root: click.Context) -> dict[str, dict[str, bool]]:
    """Command → the names of its options as in the file, and whether an option takes a list."""
    return {
        name: {option_name(param): param.multiple or param.nargs != 1 for param in command.params}
        for name, command in all_commands(root.command)
    }


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


def load(path: str, known: dict[str, dict[str, bool]]) -> Configuration:
    """The content of the file; raises InputError with all faults in it."""
    document = _document(path)
    root = document.locate().root
    is_scheduler = document.kind == SCHEDULER_KIND and document.api_version.startswith(SCHEDULER_GROUP)
    problems = _scheduler_problems(root) if is_scheduler else _problems(document, known)
    faults = [document.fault(message, where) for where, message in problems]
    if faults:
        raise InputError(faults)
    if is_scheduler:
        return Configuration(path, scheduler=root)
    return Configuration(
        path,
        root.get("options") or {},
        root.get("commands") or {},
        root.get("scheduler"),
        root.get("guard"),
        root.get("customKinds"),
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


def _problems(document: Document, known: dict[str, dict[str, bool]]) -> Iterator[tuple[str, str]]:
    """Field path and message of each fault."""
    from bayplan.controllers.custom_kinds import CustomKind
    from bayplan.validating import structure, structure_faults
    from bayplan.validating.guard import GuardSettings

    if document.kind != KIND:
        yield "kind", f"expected {KIND} or {SCHEDULER_KIND}, got {document.kind or 'nothing'}"
        return
    if document.api_version != API_VERSION:
        yield "apiVersion", f"expected {API_VERSION}, got {document.api_version or 'nothing'}"
    root = document.locate().root
    for one in structure.walk(root, _shape(known), nulls=structure.Nulls.FIELDS):
        yield one.path, structure_faults.message(one)
    if root.get("scheduler") is not None:
        yield from _scheduler_problems(root["scheduler"], "scheduler")
    if root.get("guard") is not None:
        for fault in structure_faults.faults(root["guard"], GuardSettings, "guard"):
            yield fault.path, fault.message
    if root.get("customKinds") is not None:
        for fault in structure_faults.faults(root["customKinds"], list[CustomKind], "customKinds"):
            yield fault.path, fault.message


def _scheduler_problems(scheduler: Any, path: str = "") -> Iterator[tuple[str, str]]:
    from bayplan.reading import scheduler_config
    from bayplan.validating import structure_faults

    for one in scheduler_config.check_structure(scheduler, path):
        yield one.path, structure_faults.message(one)


def _shape(known: dict[str, dict[str, bool]]) -> structure.Shape:
    """The shape of the file; the scheduler and the guard have types of their own."""
    from bayplan.validating.structure import ANYTHING, ListOf, Record, Scalar

    def options(named: dict[str, bool]) -> Record:
        shapes: dict[str, structure.Shape] = {name: several if many else single for name, many in named.items()}
        return Record(shapes, closed=True, noun="option")

    single, several = Scalar(), ListOf(Scalar())

    every = {name: many for named in known.values() for name, many in named.items()}
    commands = {name: options(named) for name, named in known.items()}
    fields = {
        **dict.fromkeys(("apiVersion", "kind", "metadata", "scheduler", "guard", "customKinds"), ANYTHING),
        "options": options(every),
        "commands": Record({**commands}, closed=True, noun="command", bracketed=True),
    }
    return Record(fields, closed=True)
