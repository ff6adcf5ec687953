"""
Places what waits in a state, and can come back to the end of it: explanations of the answer are about that.

Does not know how the answer is shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import reading as states
from bayplan.library.inputs import Scope, Show, Supposed
from bayplan.library.reading import Reading

if TYPE_CHECKING:
    from bayplan.errors import Fault
    from bayplan.explaining.explanation import Explanation
    from bayplan.explaining.patches import ManifestSource
    from bayplan.placing.place_cluster import ClusterPlacement
    from bayplan.placing.place_pods import PodPlacement
    from bayplan.reading.cluster import LoadedCluster


class PlaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is placed, and how; `in_steps`: rollouts are stepped through, else only their end is placed."""

    scope: Scope = Scope()
    supposed: Supposed = Supposed()
    preempts: bool = True
    in_steps: bool = True
    group_by_owner: bool = False
    optimises: bool = False
    max_moves: int = 0


class PlaceRun:
    """One answer of `place` for pods. The caller holds the lock of the reading."""

    def __init__(self, reading: Reading, request: PlaceRequest) -> None:
        self.reading, self._request = reading, request
        self.notes: tuple[str, ...] = ()
        self.warnings: list[Fault] = []
        self.n_left_out = 0
        self._explained: dict[Hashable, Explanation] = {}  # by what equal pods have in common

    def __reduce__(self) -> tuple[Any, ...]:
        return PlaceRun, (self.reading, self._request)

    def manifests(self) -> Callable[[Explanation], AbstractContextManager[ManifestSource]]:
        """A function: where the manifests are found that fixes change."""
        return functools.partial(self.reading.materials.manifests, cluster=self.cluster)

    def begin(self, show: Show) -> LoadedCluster:
        """The state before anything is placed, reduced to what is in scope. Sets the notes."""
        from bayplan.reading.cluster import LoadedCluster

        includes = self._request.scope.includes()
        loaded = self.reading.loaded(show)
        assert isinstance(loaded, LoadedCluster), "the caller has looked"
        # Rollouts are used up by stepping through them: another answer needs them as they were read.
        self.reading.moved_to(self, undoable=not loaded.rollouts)
        cluster = states.supposing(loaded, self._request.supposed, self.reading.engine_of())
        pending = [
            one for one in cluster.pending if one.key in cluster.displaced or includes(one.namespace, one.labels)
        ]
        notes = list(self.reading.notes)
        if not pending and not cluster.rollouts and not cluster.draining:
            notes.append("there is nothing to place")
        if len(pending) < len(cluster.pending) or cluster.rollouts:
            rollouts = [one for one in cluster.rollouts if includes(one.key.namespace, one.pod_labels)]
            n_pods = len(
                {one.key for one in cluster.pending} & (cluster.change or set()) - {one.key for one in pending}
            )
            n_rollouts = len(cluster.rollouts) - len(rollouts)
            cluster.pending, cluster.rollouts = pending, rollouts
            self.n_left_out = n_pods + n_rollouts
            notes += _left_out(n_pods, n_rollouts)
        self.notes = tuple(notes)
        return cluster

    def place(self, cluster: LoadedCluster, show: Show) -> ClusterPlacement:
        """Where everything is in the end; the state is left there."""
        from bayplan.placing import place_cluster
        from bayplan.placing.place_cluster import PlacingOptions

        def progress(n_attempts: int, step: int) -> None:
            show(lambda: f"placing: {n_attempts} of {len(cluster.pending)}" + (f", step {step}" if step else ""))

        request, includes = self._request, self._request.scope.includes()
        if request.optimises:
            _check_optimisable(cluster)
        options = PlacingOptions(
            preempts=request.preempts,
            in_steps=request.in_steps,
            progress=progress,
            group_by_owner=request.group_by_owner,
            optimises=request.optimises,
            max_moves=request.max_moves,
            may_move=lambda one: includes(one.namespace, one.labels),
        )
        found = place_cluster.place(cluster, self.reading.engine_of(), options)
        self.cluster = cluster
        return found

    def warn(self, found: ClusterPlacement) -> None:
        """Set the warnings of rules without effect."""
        if not self.cluster.index.slots.by_name:
            return
        from bayplan.placing import ineffective

        workloads = (one.workload for one in found.placements)
        concerned = (one for one in workloads if found.change is None or one.key in found.change)
        self.warnings = ineffective.findings(concerned, self.cluster, self.cluster.made_for)

    def explain_unplaced(self, found: ClusterPlacement, show: Show) -> dict[str, Explanation]:
        """
        An explanation for each pod that fits nowhere in the end.

        It is made once for equal pods, and shared by the replicas of a controller and bare pods with equal labels.
        """
        from bayplan.engine import equivalence
        from bayplan.library import explaining

        unplaced = [one for one in found.placements if one.is_unschedulable]
        engine_of = self.reading.engine_of()
        explained: dict[str, Explanation] = {}
        policy = self.cluster.eviction_policy() if unplaced else None
        for placement in unplaced:
            workload, engine = placement.workload, engine_of(placement.workload)
            equal = equivalence.signature(workload, engine.index), workload.scheduler_name, placement.message
            if equal not in self._explained:
                assert policy is not None
                self._explained[equal] = explaining.explanation_of(placement, engine_of, policy)
            whose = equal, workload.controller or tuple(sorted(workload.labels.items()))
            if whose not in self._explained:
                self._explained[whose] = msgspec.structs.replace(self._explained[equal], workload=workload.key)
            explained[workload.key] = self._explained[whose]
            show(lambda: f"explaining: {len(explained)} of {len(unplaced)}")
        return explained

    def explain(self, placement: PodPlacement) -> Explanation:
        """The explanation of one pod in the state at the end, which is restored if another answer changed it."""
        from bayplan.library import explaining
        from bayplan.library.inputs import shows_nothing

        if not self.reading.is_at(self):
            self.place(self.begin(shows_nothing), shows_nothing)
        return explaining.explanation_of(placement, self.reading.engine_of(), self.cluster.eviction_policy())


def _check_optimisable(cluster: LoadedCluster) -> None:
    """Raise `ArgumentError` if the state takes more than placing what waits, or what finds plans is missing."""
    from bayplan.placing import place_cluster

    if cluster.rollouts or cluster.draining or cluster.displaced:
        what = "the change updates workloads that run" if cluster.rollouts else "a what-if takes nodes away"
        raise ArgumentError(f"the best plan is for pods that wait, and {what}", argument="optimize")
    if not place_cluster.has_solver():
        raise ArgumentError(
            "the best plan needs the extra `optimize`: pip install 'bayplan[optimize]'", argument="optimize"
        )


def _left_out(n_pods: int, n_rollouts: int) -> list[str]:
    """How much of the change is not in scope."""
    if not n_pods and not n_rollouts:
        return []
    counted = " and ".join(
        f"{n} {noun if n == 1 else f'{noun}s'}" for n, noun in ((n_pods, "pod"), (n_rollouts, "rollout")) if n
    )
    return [f"left out by --namespace or --selector: {counted} of the change; with --strict that is a no"]
