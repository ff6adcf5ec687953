"""The cluster or the fleet of the options, opened with the library; notes and warnings go to the console."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from bayplan.cli.console import Console
from bayplan.cli.options import DecisionOptions, InputOptions, ScopeOptions
from bayplan.cli.what_if_options import NOTHING_SUPPOSED, WhatIfOptions

if TYPE_CHECKING:
    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.errors import Fault
    from bayplan.library.cluster import Cluster
    from bayplan.library.fleet import Fleet
    from bayplan.library.inputs import InputSpec, Materials
    from bayplan.library.settings import Settings
    from bayplan.library.state import State
    from bayplan.library.watched import WatchedState
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.reading.fleet import LoadedFleet

MAX_RULES_WARNED_OF = 10
Asked = TypeVar("Asked", bound="State")


def load(
    sources: InputOptions,
    scope: ScopeOptions,
    decisions: DecisionOptions,
    console: Console,
    *,
    assumed_load: AssumedLoad = "current",
    what_if: WhatIfOptions = NOTHING_SUPPOSED,
    is_asked_once: bool = True,
) -> Cluster | Fleet:
    """
    The cluster of the input, or the fleet if the input has Cluster objects; prints notes on what was left out or added.

    `assumed_load` says how many replicas autoscalers ask for, and `what_if` what is supposed to happen before. Unless
    it is asked once, the input is read as often as it is asked.
    """
    from bayplan.library import fleet

    wanted = scope.scope()
    wanted.includes()  # reports a bad selector before any input is read
    spec = spec_of(sources, scope.namespace, decisions.settings(assumed_load), is_asked_once=is_asked_once)
    if sources.is_live:
        spec = _of_served_version(spec, console)
    with console.progress() as show:
        found = fleet.opened(spec, wanted, what_if.supposed(), show)
    what_if.check(is_fleet=isinstance(found, fleet.Fleet))
    for note in found.notes:
        console.note(note)
    return found


def watched(
    sources: InputOptions,
    scope: ScopeOptions,
    decisions: DecisionOptions,
    console: Console,
    *,
    assumed_load: AssumedLoad = "current",
    what_if: WhatIfOptions = NOTHING_SUPPOSED,
) -> WatchedState:
    """What `load` reads, again whenever it changes; raises a usage error for what can be read only once."""
    from bayplan.library.watched import WatchedState

    given = (*sources.filename, *sources.state)
    once = [path for path in given if path != "-" and pathlib.Path(path).exists() and not _is_read_again(path)]
    if once or (set(given) == {"-"} and not sources.is_live):
        raise click.UsageError(f"--watch reads its input again: {(*once, '-')[0]} can be read only once")
    spec = spec_of(sources, scope.namespace, decisions.settings(assumed_load), is_asked_once=False)
    return WatchedState(_of_served_version(spec, console), what_if.supposed(), console.note)


def followed_spec(
    sources: InputOptions, decisions: DecisionOptions, console: Console, *, assumed_load: AssumedLoad = "current"
) -> InputSpec:
    """What the options say is read, as often as it is asked for, of the version of the API server if there is one."""
    return _of_served_version(spec_of(sources, None, decisions.settings(assumed_load), is_asked_once=False), console)


def _is_read_again(path: str) -> bool:
    return pathlib.Path(path).is_file() or pathlib.Path(path).is_dir()


def spec_of(
    sources: InputOptions, namespace: str | None, settings: Settings, *, is_asked_once: bool = True
) -> InputSpec:
    """What the options say is read; raises a usage error if there is nothing to read."""
    sources.check()
    from bayplan.library.arguments import Given
    from bayplan.library.inputs import InputSpec

    return InputSpec(
        state=Given(sources.state, recursive=frozenset(sources.state if sources.recursive else ())),
        change=Given(sources.filename, recursive=frozenset(sources.filename if sources.recursive else ())),
        connect=sources.open if sources.is_live else None,
        live_name=(sources.context or "the current context") if sources.is_live else "",
        namespace=namespace or "default",
        warns_of_namespace=namespace is not None,
        settings=settings,
        is_asked_once=is_asked_once,
    )


def _of_served_version(spec: InputSpec, console: Console) -> InputSpec:
    """The same with the version of the API server, if a live cluster is read and no version is given."""
    if spec.connect is None:
        return spec
    from bayplan.cli import server_version
    from bayplan.library import settings as deciding

    deciding.semantics_of(spec.settings)  # reports a bad switch before any server is asked
    connection = spec.connect()
    version = server_version.adopted(connection, spec.settings.kubernetes_version, console.note)
    settings = msgspec.structs.replace(spec.settings, kubernetes_version=version)
    opened = [connection]  # with the credentials that it has obtained
    connect = spec.connect
    return msgspec.structs.replace(spec, settings=settings, connect=lambda: opened.pop() if opened else connect())


def read(
    sources: InputOptions, scope: ScopeOptions, decisions: DecisionOptions, console: Console
) -> LoadedCluster | LoadedFleet:
    """The state itself, for what changes it on a live cluster; prints notes on what was left out or added."""
    from bayplan.library.reading import Reading

    reading = Reading(_of_served_version(spec_of(sources, scope.namespace, decisions.settings()), console))
    with console.progress() as show:
        found = reading.loaded(show)
    for note in reading.notes:
        console.note(note)
    return found


def materials(sources: InputOptions, decisions: DecisionOptions, console: Console, *, is_asked_once: bool) -> Materials:
    """What the options say is read, for what reads it as it is written."""
    from bayplan.library.inputs import Materials

    spec = spec_of(sources, None, decisions.settings(), is_asked_once=is_asked_once)
    return Materials(_of_served_version(spec, console) if sources.is_live else spec)


def signed(text: str, sources: InputOptions, further: Iterable[str] = ()) -> str:
    """A report as a page with what it was made from: command, date, version, inputs and their hashes."""
    import hashlib
    import shlex
    import sys
    from datetime import UTC, datetime

    import bayplan
    from bayplan.cli import commands
    from bayplan.reading import files
    from bayplan.writing import html_report

    words = commands.redacted_arguments(click.get_current_context().command, sys.argv[1:])
    named = [path for path in (*sources.filename, *sources.state, *further) if path != "-"]
    lines = [
        f"command: bayplan {shlex.join(words)}",
        f"date: {datetime.now(UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}",
        f"version: Bayplan {bayplan.__version__}",
    ]
    for path in files.find_files(named, recursive=frozenset(named if sources.recursive else ())).files:
        digest = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest() if pathlib.Path(path).is_file() else ""
        lines.append(f"input: {path} sha256:{digest}" if digest else f"input: {path}")
    if "-" in (*sources.filename, *sources.state):
        lines.append("input: standard input")
    if sources.is_live:
        lines.append(f"input: {sources.context or 'the current context'} (live)")
    return html_report.with_provenance(text, lines)


def warn(warnings: Iterable[Fault], console: Console) -> None:
    """Print a warning for each rule that has no effect in the cluster."""
    found = tuple(warnings)
    for fault in found[:MAX_RULES_WARNED_OF]:
        console.warning(str(fault), fault)
    if len(found) > MAX_RULES_WARNED_OF:
        console.warning(f"{len(found) - MAX_RULES_WARNED_OF} more rules have no effect")


@contextlib.contextmanager
def in_progress(found: Asked, console: Console) -> Iterator[Asked]:
    """The same, showing its progress while the block runs."""
    with console.progress() as show:
        yield found.reporting(lambda text: show(lambda: text))
