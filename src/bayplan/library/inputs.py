"""
What a cluster or a fleet is read from, and reading it: files, objects in memory, a live cluster.

Everything is read once and kept, so that every answer is about the same state. A command, which asks once, keeps
nothing.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
from _thread import LockType
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import settings as deciding
from bayplan.library.arguments import Given
from bayplan.library.settings import Settings

if TYPE_CHECKING:
    from bayplan.auditing.audit_input import AuditInput, Unlisted
    from bayplan.controllers.desired_state import ObjectKey
    from bayplan.explaining.explanation import Explanation
    from bayplan.explaining.patches import ManifestSource
    from bayplan.kube_api.connection import Connection
    from bayplan.model.labels import Requirement, Selector
    from bayplan.reading.audit_files import PlaceableObjects
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.reading.collecting import Inputs, Sink
    from bayplan.reading.documents import Source
    from bayplan.reading.files import Disk, ReadProgress
    from bayplan.reading.kept_files import KeptFiles
    from bayplan.reading.manifests import Lookup
    from bayplan.reading.pod_sink import PodSink
    from bayplan.watching.audit_fetching import AuditFetcher
    from bayplan.watching.fetching import ClusterFetcher, ObjectToFetch
    from bayplan.wire.kinds import GroupKind

Show = Callable[[Callable[[], str]], None]  # is handed a function that makes a line of progress, which it may call
Includes = Callable[[str, Mapping[str, str]], bool]  # by namespace and labels
STANDARD_INPUT = "-"
_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
# Compiled on first use: a selector is rare.
_SET_BASED = rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)"
_EQUALITY = rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})"
_EXISTENCE = rf"(!?)\s*({_KEY})"
_COMMA = r",(?![^()]*\))"  # between requirements, not between the values in parentheses


def shows_nothing(_: Callable[[], str]) -> None:
    """Show no progress."""


class Scope(msgspec.Struct, frozen=True):
    """Which workloads are placed and shown, of a namespace and by a label selector in kubectl's grammar."""

    namespace: str | None = None
    selector: str | None = None

    def includes(self) -> Includes:
        """Whether a workload is in scope; raises ArgumentError for a bad selector."""
        wanted, selector = self.namespace, None if self.selector is None else parse_selector(self.selector)
        return lambda namespace, labels: (
            wanted in (None, namespace) and (selector is None or selector.matches(dict(labels)))
        )


class Supposed(msgspec.Struct, frozen=True):
    """What is supposed to happen before anything is placed, as written."""

    lose: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    add_node: tuple[str | bytes, ...] = ()
    taint: tuple[str, ...] = ()
    recover: tuple[str, ...] = ()


class InputSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    What is read, and how.

    `state` and the cluster of `connect` are what runs: it is read, not validated. `change` is what is about to be
    applied, and what there is if nothing runs. Objects that name no namespace are in `namespace`, those of the state in
    `state_namespace` if there is one. `warns_of_namespace`: nothing being in it is worth a note. `is_asked_once`:
    nothing is kept for a second question. `live_name` is what reports call the cluster of `connect`.
    """

    state: Given = Given()
    change: Given = Given()
    connect: Callable[[], Connection] | None = None
    live_name: str = ""
    namespace: str = "default"
    state_namespace: str = ""
    warns_of_namespace: bool = False
    settings: Settings = Settings()
    is_asked_once: bool = False

    @property
    def has_state(self) -> bool:
        return bool(self.state) or self.connect is not None


class Kept(msgspec.Struct, eq=False):
    """What was read, shared by all that is derived from it: a second look would be at another state."""

    lock: LockType = msgspec.field(default_factory=threading.Lock)
    files: KeptFiles | None = None
    stdin: bytes | None = None
    live: FetchedLists | None = None
    audited: FetchedLists | None = None
    objects: dict[ObjectToFetch, FetchedLists] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _kept, (self.files, self.stdin, self.live, self.audited, dict(self.objects))


def _kept(*fields: Any) -> Kept:
    return Kept(threading.Lock(), *fields)


class FetchedLists(msgspec.Struct, frozen=True):
    """Lists of a live cluster by name, the kinds that cannot be listed, and notes on them."""

    lists: Sequence[tuple[str, bytes]] = ()
    unlisted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def sources(self) -> list[Source]:
        from bayplan.reading.documents import Source

        return [Source(name, data) for name, data in self.lists]


class Materials:
    """Reads what a specification names, as often as it is asked; unless it is asked once, as it was the first time."""

    def __init__(self, spec: InputSpec, kept: Kept | None = None) -> None:
        self.spec, self._kept = spec, kept or Kept()

    def about(self, spec: InputSpec) -> Materials:
        """The same for another specification, with everything that was read already as it was."""
        return Materials(spec, self._kept)

    def stdin(self) -> BinaryIO:
        """Standard input; in memory, if it is part of the input and may be read again."""
        found: BinaryIO | None = getattr(sys.stdin, "buffer", None)  # a notebook may have another one, or none
        if found is None:
            return io.BytesIO()
        if self.spec.is_asked_once or STANDARD_INPUT not in (*self.spec.change.paths, *self.spec.state.paths):
            return found
        with self._kept.lock:
            if self._kept.stdin is None:
                self._kept.stdin = found.read()
        return io.BytesIO(self._kept.stdin)

    def disk(self) -> Disk:
        """Where files are found and opened."""
        from bayplan.reading import files

        if self.spec.is_asked_once:
            return files.DISK
        with self._kept.lock:
            if self._kept.files is None:
                from bayplan.reading.kept_files import KeptFiles

                self._kept.files = KeptFiles()
        return self._kept.files.disk()

    def read(
        self,
        show: Show = shows_nothing,
        sinks: Mapping[GroupKind, Sink] | None = None,
        objects: Sequence[ObjectToFetch] = (),
        semantics: Any = None,
    ) -> tuple[Inputs, PodSink, list[str]]:
        """
        All objects, and notes on what cannot be listed.

        A sink receives the objects of its kind. `objects` are single objects to fetch from the cluster in addition.
        """
        from bayplan.reading import cluster
        from bayplan.reading.files import ReadOptions

        spec = self.spec
        fetched, unlisted, notes = self._fetched(objects)

        def progress(step: ReadProgress) -> None:
            done = f"{100 * step.bytes_read // max(step.bytes_total, 1)} %"
            show(lambda: f"reading {step.file}: {step.objects_read} objects, {done}")

        inputs, sink = cluster.read(
            ReadOptions(
                spec.change.paths,
                sources_of(spec.change.lists),
                recursive=spec.change.recursive | spec.state.recursive,
                namespace=spec.namespace,
                state_namespace=spec.state_namespace,
                semantics=semantics or deciding.semantics_of(spec.settings),
                stdin=self.stdin(),
                progress=progress,
                sinks=sinks or {},
                state=spec.state.paths,
                live=[*sources_of(spec.state.lists), *fetched] if isinstance(fetched, list) else fetched,
                custom_kinds=deciding.custom_kinds(spec.settings),
                disk=self.disk(),
            )
        )
        if spec.connect is not None:
            inputs.context_complete = True
            inputs.unlisted |= unlisted
        return inputs, sink, notes

    def read_audited(
        self,
        show: Show = shows_nothing,
        *,
        scenario: str = "",
        placeable: PlaceableObjects | None = None,
        on_open: Callable[[Source], None] | None = None,
    ) -> AuditInput:
        """All objects that an audit can use; of a live cluster everything that it lists, which is more than usual."""
        from bayplan.auditing.audit_input import Unlisted
        from bayplan.reading import audit_files
        from bayplan.reading.files import ReadOptions

        spec = self.spec
        live: Iterable[Source] = ()
        unlisted: Sequence[Unlisted] = ()
        if spec.connect is not None:
            from bayplan.watching.audit_fetching import AuditFetcher  # files need no client

            if spec.is_asked_once:
                fetcher = AuditFetcher(spec.connect())
                live, unlisted = fetcher.sources(), fetcher.unlisted  # complete once the sources were read
            else:
                with self._kept.lock:
                    listed = self._kept.audited = self._kept.audited or _listed(AuditFetcher(spec.connect()))
                live, unlisted = listed.sources(), [Unlisted(name) for name in listed.unlisted]
        return audit_files.load(
            ReadOptions(
                spec.change.paths,
                sources_of(spec.change.lists),
                recursive=spec.change.recursive | spec.state.recursive,
                stdin=self.stdin(),
                progress=lambda step: show(lambda: f"reading {step.file}: {step.objects_read} objects"),
                state=spec.state.paths,
                live=[*sources_of(spec.state.lists), *live] if spec.state.lists else live,
                disk=self.disk(),
            ),
            scenario=scenario,
            placeable=placeable,
            unlisted=unlisted,
            **({} if on_open is None else {"on_open": on_open}),
        )

    def _fetched(self, objects: Sequence[ObjectToFetch]) -> tuple[Iterable[Source], set[str], list[str]]:
        """The lists of the live cluster; the rest is complete once they were read."""
        if self.spec.connect is None:
            return [], set(), []
        from bayplan.watching.fetching import ClusterFetcher, ObjectFetcher

        if self.spec.is_asked_once:
            fetcher = ClusterFetcher(self.spec.connect(), tuple(objects))
            return fetcher.sources(), fetcher.kinds_not_listed, fetcher.notes
        with self._kept.lock:
            live = self._kept.live = self._kept.live or _listed(ClusterFetcher(self.spec.connect()))
            for one in objects:
                if one not in self._kept.objects:
                    self._kept.objects[one] = _listed(ObjectFetcher(self.spec.connect(), (one,)))
            every = (live, *(self._kept.objects[one] for one in objects))
        notes = [note for found in every for note in found.notes]
        return [source for found in every for source in found.sources()], set(live.unlisted), notes

    @contextlib.contextmanager
    def manifests(self, explanation: Explanation, cluster: LoadedCluster) -> Iterator[ManifestSource]:
        """Where the manifests that fixes change are found while the block runs: in the input, then in the cluster."""
        from bayplan.reading import manifests

        remaker = cluster.remaker()
        assert remaker is not None, "what is read has an admission"
        revised = [one for fix in explanation.fixes for one in fix.revisions or ()]
        wanted = {("", name) for one in revised for name in (one.node, one.like)}
        keys = [one.pod or explanation.revised_workload for one in revised]
        wanted |= {(namespace, name) for namespace, _, name in (key.partition("/") for key in keys)}
        with self._looked_up(wanted) as (lookup, is_of_state):
            yield manifests.source_from(lookup, cluster.makers(), remaker.completed, is_of_state)

    @contextlib.contextmanager
    def manifests_of_binding(
        self, explanation: Explanation, placed_by: ObjectKey, template: ObjectKey
    ) -> Iterator[ManifestSource]:
        """Where the policy and the template that fixes for a binding change are found while the block runs."""
        from bayplan.reading import manifests

        if not any(fix.revisions for fix in explanation.fixes):
            yield manifests.source_of_binding(lambda *_: None, placed_by, template)
            return
        with self._looked_up({(placed_by.namespace, placed_by.name)}) as (lookup, is_of_state):
            yield manifests.source_of_binding(lookup, placed_by, template, is_of_state)

    @contextlib.contextmanager
    def _looked_up(self, wanted: set[tuple[str, str]]) -> Iterator[tuple[Lookup, Callable[[Any], bool]]]:
        """Finds objects in the input, then in the cluster, while the block runs; and whether one is of the state."""
        in_input, is_of_state = self._lookup(wanted)
        connect = self.spec.connect
        if connect is None:
            yield in_input, is_of_state
            return
        from bayplan.watching import fetching

        with outside_of_event_loops() as run, contextlib.ExitStack() as opened:
            session = fetching.object_lookup(connect())
            live = run(session.__enter__)
            opened.callback(run, lambda: session.__exit__(None, None, None))

            def lookup(*key: Any) -> Any:
                found = in_input(*key)
                return run(lambda: live(*key)) if found is None else found

            yield lookup, is_of_state

    def _lookup(self, wanted: set[tuple[str, str]]) -> tuple[Lookup, Callable[[Any], bool]]:
        """Finds objects as written in the change, then in the state; and whether one was found in the latter."""
        from bayplan.reading import manifests

        spec, live = self.spec, self._kept.live
        listed = [] if live is None else live.sources()

        def found_in(given: Given, namespace: str, further: Sequence[Source]) -> Lookup:
            return manifests.in_files(
                given.paths,
                wanted,
                recursive=given.recursive,
                namespace=namespace,
                stdin=self.stdin(),
                written=(*sources_of(given.lists), *further),
                disk=self.disk(),
            )

        first = found_in(spec.change, spec.namespace, ())
        then = found_in(spec.state, spec.state_namespace or spec.namespace, listed)
        of_state: set[int] = set()

        def lookup(*key: Any) -> Any:
            if (found := first(*key)) is None and (found := then(*key)) is not None:
                of_state.add(id(found))
            return found

        return lookup, lambda one: id(one) in of_state


def _listed(fetcher: ClusterFetcher | AuditFetcher) -> FetchedLists:
    """Everything that a fetcher lists, in memory."""
    with outside_of_event_loops() as run:
        listed = run(lambda: [(one.name, bytes(one.data)) for one in fetcher.sources()])
    unlisted = [one.resource for one in getattr(fetcher, "unlisted", ())] or sorted(fetcher.kinds_not_listed)
    return FetchedLists(listed, tuple(unlisted), tuple(fetcher.notes))


@contextlib.contextmanager
def outside_of_event_loops() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """A function: the result of a call that runs an event loop. If one runs here, as in notebooks, in a thread."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        yield lambda call: call()
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as executor:
        yield lambda call: executor.submit(call).result()


def sources_of(lists: Iterable[bytes]) -> list[Source]:
    """The Lists in memory as sources."""
    from bayplan.reading.documents import IN_MEMORY, Source

    return [Source(IN_MEMORY, one) for one in lists]


def parse_selector(text: str) -> Selector:
    """
    A label selector in kubectl's grammar: `app=web,tier!=db,env in (a,b),!old`.

    Raises ArgumentError for the first part that is not a requirement.
    """
    from bayplan.model import labels

    parts = [part.strip() for part in re.split(_COMMA, text)] if text.strip() else []
    return labels.selector_of(_requirement(part) for part in parts)


def _requirement(part: str) -> Requirement:
    from bayplan.model import labels

    if found := re.fullmatch(_SET_BASED, part):
        values = [value.strip() for value in found[3].split(",")]
        if all(re.fullmatch(_VALUE, value) for value in values):
            return labels.requirement(found[1], labels.IN if found[2] == "in" else labels.NOT_IN, values)
    if found := re.fullmatch(_EQUALITY, part):
        return labels.requirement(found[1], labels.NOT_IN if found[2] == "!=" else labels.IN, [found[3]])
    if found := re.fullmatch(_EXISTENCE, part):
        return labels.requirement(found[2], labels.DOES_NOT_EXIST if found[1] else labels.EXISTS)
    message = f"expected requirements such as app=web, tier!=db, env in (a,b), key or !key, got {part!r}"
    raise ArgumentError(message, argument="selector")
