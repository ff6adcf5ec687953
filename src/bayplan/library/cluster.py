"""A cluster of nodes, and the questions that can be asked about it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bayplan.errors import ArgumentError, InputError
from bayplan.library import arguments
from bayplan.library.state import State

if TYPE_CHECKING:
    from typing import Self

    from bayplan.library.audit_settings import AuditSettings
    from bayplan.library.audits import ClusterAudit
    from bayplan.library.explanation import Explanation
    from bayplan.library.plan import Plan, Room
    from bayplan.library.running import MovePlan, QuotaReport, Violations
    from bayplan.library.simulation import ComparedRuns, SimulationRun, SimulationRunner
    from bayplan.model.workloads import Workload
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.wire.observed import ObservedNode


class Cluster(State):
    """
    A Kubernetes cluster: its nodes, what runs on them, and what waits.

        cluster = bayplan.Cluster.from_files("cluster.json")
        plan = cluster.apply("app.yaml").place()
    """

    __slots__ = ()

    @property
    def nodes(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each node that was read, by name; what-ifs are not part of it."""
        with self._reading.asked():
            slots = self._loaded().index.slots
            return {name: dict(slots.at(slot).labels) for name, slot in sorted(slots.by_name.items())}

    @property
    def pods(self) -> Mapping[str, str]:
        """The node of each pod in scope that was read or is to be created, by NAMESPACE/NAME; empty while it waits."""
        return {one.key: node for one, node in self._pods()}

    def _pods(self) -> list[tuple[Workload, str]]:
        """The pods in scope, each with its node."""
        includes = self._scope.includes()
        with self._reading.asked():
            cluster = self._loaded()
            found = {one.key: (one, "") for one in cluster.pending}
            found |= {key: (one.workload, one.shares[0][0]) for key, one in cluster.index.records.items()}
            return [(one, node) for _, (one, node) in sorted(found.items()) if includes(one.namespace, one.labels)]

    def lose(self, *nodes: str) -> Self:
        """
        The cluster after the loss of nodes, by `node/NAME` or `KEY=VALUE` of a label, for good.

        No PodDisruptionBudget is asked, and pods without a controller are gone.
        """
        return self._supposing(lose=nodes)

    def drain(self, *nodes: str) -> Self:
        """The cluster of which nodes are drained, as by kubectl drain: PodDisruptionBudgets are respected."""
        return self._supposing(drain=nodes)

    def cordon(self, *nodes: str) -> Self:
        """The cluster of which nodes are cordoned."""
        return self._supposing(cordon=nodes)

    def add_node(self, node: str | os.PathLike[str] | Mapping[str, Any] | None = None, *, like: str = "") -> Self:
        """The cluster with more nodes: those of a file, one as a dictionary, or an empty one `like` one that it has."""
        if (node is None) == (not like):
            raise ArgumentError("give a file or an object, or `like`", argument="add_node")
        if node is None:
            return self._supposing(add_node=(f"like={like}",))
        if isinstance(node, str) and node.startswith("like="):
            raise ArgumentError("give the name of the node with `like`", argument="add_node", value=node)
        given = arguments.given(node)
        return self._supposing(add_node=(*given.paths, *given.lists))

    def place(
        self,
        *,
        preempt: bool = True,
        rollouts: Literal["steps", "final"] = "steps",
        explain: bool = False,
        group_by: Literal["", "owner"] = "",
        optimize: bool = False,
        moves: int = 0,
    ) -> Plan:
        """
        Where everything would be placed that waits, and how the rollouts of the change would end.

        Without `preempt` no pod preempts others. `rollouts` are judged step by step, or by whether their end fits. With
        `explain`, the documents and texts of the plan have an explanation for each pod that fits nowhere. With
        `group_by` "owner", the pending pods of one controller are a group: all of them are placed, or none. With
        `optimize`, as many pods are placed as can be, by priority, and none preempts; for that up to `moves` running
        pods may move. This takes the extra `optimize`.
        """
        from bayplan.library import plan
        from bayplan.library.place_run import PlaceRequest, PlaceRun

        arguments.check_choice("rollouts", rollouts, ("steps", "final"))
        if group_by:
            arguments.check_choice("group_by", group_by, ("owner",))
        if moves:
            arguments.check_count("moves", moves)
            if not optimize:
                raise ArgumentError("moves are for the best plan: set optimize too", argument="moves")
        request = PlaceRequest(
            scope=self._scope,
            supposed=self._supposed,
            preempts=preempt,
            in_steps=rollouts == "steps",
            group_by_owner=group_by == "owner",
            optimises=optimize,
            max_moves=moves,
        )
        run = PlaceRun(self._reading, request)
        with self._reading.asked():
            self._loaded()
            found = run.place(run.begin(self._show), self._show)
            run.warn(found)
            explained = run.explain_unplaced(found, self._show) if explain else {}
            return plan.plan_of(run, found, explained)

    def how_many_more(self, limit: int | None = None) -> Room:
        """How many more replicas of each pending workload fit, as many as `limit`, if nothing else is placed."""
        from bayplan.library import plan
        from bayplan.library.place_run import PlaceRequest, PlaceRun

        if limit is not None:
            arguments.check_count("limit", limit)
        if self._supposed.drain:
            raise ArgumentError("how_many_more places nothing that a drain evicts: use cordon or lose")
        run = PlaceRun(self._reading, PlaceRequest(scope=self._scope, supposed=self._supposed))
        with self._reading.asked():
            self._loaded()
            cluster = run.begin(self._show)
            return plan.room_of(cluster.pending, self._reading.engine_of(), limit, run.notes)

    def explain(self, workload: str, *, alone: bool = False, preempt: bool = True) -> Explanation:
        """
        Why a workload is placed where it is, or fits nowhere, and what would make it fit.

        It is named as KIND/NAME, or as NAMESPACE/NAME of a pod. What is before it in the scheduling queue is placed
        first, unless it is explained `alone`. A running pod is explained as if it were scheduled again.
        """
        from bayplan.library import explaining, workload_names
        from bayplan.library import reading as states
        from bayplan.library.explanation import explanation_of

        if not isinstance(workload, str):
            raise ArgumentError(f"expected KIND/NAME, got {workload!r}", argument="workload")
        workload_names.parse(workload)  # reports a bad name before anything is read
        includes = self._scope.includes()
        with self._reading.asked():
            loaded = self._loaded()
            self._reading.moved_to(self, undoable=not loaded.rollouts)
            cluster = states.supposing(loaded, self._supposed, self._reading.engine_of())
            workloads = [*cluster.pending, *(record.workload for record in cluster.index.records.values())]
            asked = workload_names.of_pods(workload, workloads)

            def is_included(one: Workload) -> bool:
                return includes(one.namespace, one.labels)

            found = explaining.explain_pod(
                asked, cluster, self._reading.engine_of(), is_included, alone=alone, preempts=preempt
            )
            warnings = explaining.warnings_of(found.explanation.workload, cluster)
            notes = self._reading.notes
            targets = [cluster.index.slots.at(slot) for _, slot in sorted(cluster.index.slots.by_name.items())]
        manifests = functools.partial(self._reading.materials.manifests, cluster=cluster)
        return explanation_of(
            found.explanation, found.current, manifests, notes=notes, warnings=warnings, targets=targets
        )

    def violations(
        self,
        *,
        affinity_grace: float = 300.0,
        anti_affinity_grace: float = 60.0,
        only_if_placeable: bool = False,
        grant: Iterable[str] = (),
    ) -> Violations:
        """
        The execution-time rules that are violated, and the pods that enforcement would evict after the grace times.

        The times are in seconds. With `only_if_placeable` a pod is evicted only if it fits on another node. Rules of
        the namespaces of `grant` may evict pods of every namespace.
        """
        from bayplan.enforcing import preview
        from bayplan.engine.engine import Engine
        from bayplan.library import running
        from bayplan.library import settings as deciding

        self._check_nothing_is_supposed("violations")
        rules, includes = deciding.rules(self._reading.spec.settings), self._scope.includes()
        settings = running.enforcement_settings(
            affinity_grace, anti_affinity_grace, grant, only_if_placeable=only_if_placeable
        )
        with self._reading.asked():
            cluster = self._loaded()
            self._reading.moved_to(self)
            found = preview.preview_pods(
                Engine(cluster.index, rules), settings, cluster.disruption_budgets, cluster.spread_context
            )
            return running.violations_of(
                found,
                cluster.index,
                lambda one: includes(one.namespace, one.labels),
                self._reading.notes,
            )

    def rebalance(self, *, max_moves: int = 5, grant: Iterable[str] = ()) -> MovePlan:
        """
        The fewest moves of running pods that improve soft rules most.

        Preferred terms of the namespaces of `grant` may move pods of every namespace.
        """
        from bayplan.enforcing.rebalancing import DisruptionLimits
        from bayplan.library import running
        from bayplan.library import settings as deciding
        from bayplan.live.pod_moves import PodMoves

        self._check_nothing_is_supposed("rebalance")
        arguments.check_count("max_moves", max_moves)
        granted = frozenset(arguments.several("grant", grant))
        rules, includes = deciding.rules(self._reading.spec.settings), self._scope.includes()
        with self._reading.asked():
            cluster = self._loaded()
            self._reading.moved_to(self)
            moves = PodMoves(cluster, rules, granted)
            limits = DisruptionLimits(
                max_moves=max_moves,
                movable=lambda one: includes(one.namespace, one.labels),
                budgets=moves.budgets,
            )
            return running.move_plan_of(moves.plan(limits), cluster.index, self._reading.notes)

    def simulate(
        self,
        timeline: str | os.PathLike[str] | Mapping[str, Any],
        *,
        all_events: bool = False,
        at: Iterable[float | str] = (),
    ) -> SimulationRun:
        """
        What happens to the cluster in the course of a timeline, and whether that is as the timeline expects.

        The timeline is a file, or a mapping with its fields. With `all_events` the answer has also those that every pod
        goes through. `at` are times, in seconds or written as in timelines, whose state is part of the answer.
        """
        from bayplan.library.simulation import SimulationRequest

        request = SimulationRequest(timeline=timeline, all_events=all_events, at=_times("at", at))
        return self._simulations().run(request)

    def compare_simulations(
        self,
        timeline: str | os.PathLike[str] | Mapping[str, Any],
        other: str | os.PathLike[str] | Mapping[str, Any],
        *,
        at: Iterable[float | str] = (),
    ) -> ComparedRuns:
        """
        Two simulations of the cluster side by side.

        The second one has another timeline, another KubeSchedulerConfiguration, or manifests that are applied at its
        beginning: `other` is the file of one of these, or a timeline as a mapping.
        """
        from bayplan.library.simulation import SimulationRequest

        request = SimulationRequest(timeline=timeline, at=_times("at", at))
        return self._simulations().compare(request, other)

    def _simulations(self) -> SimulationRunner:
        from bayplan.library.simulation import SimulationRunner

        self._check_is_about_all("simulate")
        return SimulationRunner(self._reading.materials, self._show)

    def audit(self, settings: AuditSettings | None = None, *, name: str = "", repair: bool = False) -> ClusterAudit:
        """
        Whether the nodes run on separate machines, and what remains after the loss of one.

        `name` is that of the cluster in reports and in accepted findings. With `repair`, the document and the texts
        have the fewest moves that make failed checks pass. Of a live cluster more is listed than for other questions.
        """
        from bayplan.library import audits
        from bayplan.library.audit_run import AuditRun
        from bayplan.library.audit_settings import AuditSettings

        self._check_is_about_all("audit")
        arguments.check_is("settings", settings or AuditSettings(), AuditSettings)
        run = AuditRun(self._reading.materials, settings or AuditSettings(), name, self._show)
        return audits.audit_of(run.report(with_repair=repair))

    def _audited_nodes(self) -> Sequence[ObservedNode]:
        """The nodes as an audit reads them."""
        return self._reading.materials.read_audited(self._show).nodes

    def quota(self, *, charge: Literal["largest", "average"] = "largest", limits: str | None = None) -> QuotaReport:
        """
        What each namespace is charged for pods that occupy a whole topology domain.

        A pending pod is charged for the largest domain that it may be placed in, or the average. `limits` is
        NAMESPACE/NAME of the ConfigMap with the limits.
        """
        from bayplan.library import questions

        self._check_nothing_is_supposed("quota")
        with self._reading.asked():
            return questions.quota(self._reading, self._scope, charge, limits, self._show)

    def _loaded(self) -> LoadedCluster:
        from bayplan.reading.cluster import LoadedCluster

        found = self._reading.loaded(self._show)
        if not isinstance(found, LoadedCluster):
            raise InputError("the input has Cluster objects: it is a fleet, use Fleet")
        return found


def _times(argument: str, given: Iterable[float | str]) -> tuple[float, ...]:
    """Times of a timeline, in seconds and in order."""
    from bayplan.simulating import timeline_fields

    found = set()
    for one in given:
        seconds = timeline_fields.parse_duration(one)
        if seconds is None:
            raise ArgumentError(f"{timeline_fields.EXPECTED_DURATION}, got {one!r}", argument=argument)
        found.add(seconds)
    return tuple(sorted(found))
