"""
One state as it is asked about again and again: read when it is first needed, and put back after every answer.

An answer changes the index: it places, evicts, supposes. The next question finds the state as it was read, because the
changes are undone, or because it is read again where undoing is not enough. One thread at a time asks.
"""

from __future__ import annotations

import contextlib
import difflib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import BayplanError
from bayplan.library import settings as deciding
from bayplan.library.inputs import InputSpec, Materials, Show, Supposed, shows_nothing

if TYPE_CHECKING:
    from bayplan.engine.engine import EngineOf
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.reading.fleet import LoadedFleet

NOTHING_SUPPOSED = Supposed()


class Reading:
    """The state of one specification. It is asked inside `asked`, one question after another."""

    def __init__(self, spec: InputSpec, materials: Materials | None = None) -> None:
        self.spec, self.materials = spec, materials or Materials(spec)
        self._lock = threading.RLock()
        self._is_asked = False
        self.notes: tuple[str, ...] = ()
        self._loaded: LoadedCluster | LoadedFleet | None = None
        self._engines: EngineOf | None = None
        self._supposed = NOTHING_SUPPOSED  # of a fleet, that it was loaded with
        self._mark: int | None = None
        self._is_spent = False
        self._position: object = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Reading, (self.spec, self.materials)

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Hold off other threads until the answer is there. After an error or an interrupt the state is read again."""
        with self._lock:
            if self._is_asked:
                raise BayplanError("a function that receives progress cannot ask the state that reports it")
            self._is_asked = True
            try:
                yield
            except BayplanError:
                raise  # an argument or an input that cannot be used; what has changed is undone by the next question
            except BaseException:
                self._loaded = None
                raise
            finally:
                self._is_asked = False

    def loaded(self, show: Show = shows_nothing, supposed: Supposed = NOTHING_SUPPOSED) -> LoadedCluster | LoadedFleet:
        """The state as it is; whatever an answer has changed is undone. What is supposed is part of a fleet only."""
        from bayplan.reading.cluster import LoadedCluster

        if self._loaded is not None and self._is_spent:
            self._loaded = None
        is_cluster = isinstance(self._loaded, LoadedCluster)
        if self._loaded is None or (not is_cluster and supposed != self._supposed):
            self._load(show, supposed)
        elif self._position is not None:
            assert self._mark is not None
            self._loaded.index.undo_to(self._mark)
            self._mark = self._loaded.index.mark()
        self._position = None
        assert self._loaded is not None
        return self._loaded

    def notes_of(self, show: Show, supposed: Supposed) -> tuple[str, ...]:
        """What was said when the state was read; reads it only if it never was."""
        from bayplan.reading.cluster import LoadedCluster

        if not (isinstance(self._loaded, LoadedCluster) or (self._loaded is not None and supposed == self._supposed)):
            self.loaded(show, supposed)
        return self.notes

    def engine_of(self) -> EngineOf:
        """The engines over the index of the state."""
        assert self._engines is not None
        return self._engines

    def moved_to(self, position: object, *, undoable: bool = True) -> None:
        """An answer has changed the index, as far as this position; not `undoable` if it has changed more."""
        self._position = position
        self._is_spent |= not undoable or self._mark is None

    def is_at(self, position: object) -> bool:
        """Whether the index is as an answer has left it."""
        return self._position is position

    def _load(self, show: Show, supposed: Supposed) -> None:
        from bayplan.reading import cluster

        spec = self.spec
        engines = deciding.engines(spec.settings)  # reports a bad configuration before any input is read
        inputs, sink, notes = self.materials.read(show)
        notes = list(notes)
        if spec.warns_of_namespace:
            notes += empty_namespace(spec.namespace, inputs.namespace_names())

        semantics, seed = deciding.semantics_of(spec.settings), spec.settings.seed
        if inputs.clusters:
            from datetime import UTC, datetime

            from bayplan.library import what_if
            from bayplan.reading import fleet

            found: LoadedCluster | LoadedFleet = fleet.fleet_of(
                inputs,
                semantics=semantics,
                seed=seed,
                keys=deciding.label_keys(spec.settings),
                pods=sink.pending,
                now=datetime.now(UTC),
                events=what_if.cluster_events(supposed),
                progress=lambda text: show(lambda: text),
            )
        else:
            found = cluster.cluster_of(
                inputs,
                semantics=semantics,
                seed=seed,
                sink=sink,
                load=spec.settings.hpa,
                schedulers=deciding.schedulers(spec.settings),
                progress=lambda text: show(lambda: text),
            )
            found.parallel_sets = cluster.parallel_sets(inputs.controllers.get("StatefulSet", ()))
        self.notes = (*notes, *found.notes, *self._no_nodes(found))
        self._loaded, self._engines, self._supposed, self._is_spent = found, engines(found.index), supposed, False
        self._mark = None if spec.is_asked_once else found.index.mark()

    def _no_nodes(self, found: LoadedCluster | LoadedFleet) -> tuple[str, ...]:
        if found.index.slots.by_name or self.spec.connect is not None:
            return ()
        option = "--state" if self.spec.state else "-f"
        return (f"the input has no nodes; add them: kubectl get nodes -o json > nodes.json, then {option} nodes.json",)


def empty_namespace(namespace: str, known: set[str]) -> list[str]:
    """A note if nothing in the input is in the namespace: an empty answer would look like a good one."""
    if namespace in known:
        return []
    near = difflib.get_close_matches(namespace, sorted(known), n=1)
    advice = f", did you mean {near[0]}?" if near else ""
    return [f"nothing in the input is in namespace {namespace}{advice}"]


def supposing(cluster: LoadedCluster, supposed: Supposed, engine_of: EngineOf) -> LoadedCluster:
    """The cluster after what is supposed to happen: a copy but for the index, which is changed."""
    cluster = msgspec.structs.replace(
        cluster, pending=list(cluster.pending), displaced=dict(cluster.displaced), gone=list(cluster.gone)
    )
    if supposed != NOTHING_SUPPOSED:
        from bayplan.library import what_if  # few questions suppose anything

        what_if.apply(supposed, cluster, engine_of)
    return cluster
