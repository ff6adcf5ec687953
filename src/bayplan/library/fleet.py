"""A Karmada fleet of clusters, and the questions that can be asked about it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bayplan.errors import ArgumentError, InputError
from bayplan.library import arguments
from bayplan.library.inputs import InputSpec, Materials, Scope, Show, Supposed, shows_nothing
from bayplan.library.reading import NOTHING_SUPPOSED, Reading
from bayplan.library.settings import Settings
from bayplan.library.state import DEFAULT_NAMESPACE, Objects, State

if TYPE_CHECKING:
    from typing import Self

    from bayplan.library.cluster import Cluster
    from bayplan.library.explanation import Explanation
    from bayplan.library.fleet_plan import FleetPlan, FleetScaling
    from bayplan.library.running import MovePlan, Violations
    from bayplan.model.workloads import Workload
    from bayplan.reading.fleet import LoadedFleet
    from bayplan.wire.fleets import ResourceBinding


class Fleet(State):
    """
    The clusters of Karmada, the workloads that are propagated to them, and what waits.

        fleet = bayplan.Fleet.from_manifests("fleet/")
        plan = fleet.lose("cluster/idc-1").place()
    """

    __slots__ = ()

    @property
    def clusters(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each cluster that was read, by name."""
        with self._reading.asked():
            slots = self._loaded().index.slots
            return {name: dict(slots.at(slot).labels) for name, slot in sorted(slots.by_name.items())}

    @property
    def bindings(self) -> Mapping[str, Mapping[str, int]]:
        """
        The clusters of each binding in scope, with their replicas, by NAMESPACE/NAME; none while it waits.

        Bindings that are to be created are among them; replicas that are not divided are 0.
        """
        with self._reading.asked():
            fleet = self._loaded()
            found = {one.key: (one, dict[str, int]()) for one in fleet.pending}
            found |= {key: (one.workload, dict(one.shares)) for key, one in fleet.index.records.items()}
            return {key: shares for key, (one, shares) in sorted(found.items()) if self._includes(one)}

    def lose(self, *clusters: str) -> Self:
        """
        The fleet after clusters have failed, by `cluster/NAME`, `region=`, `provider=`, `zone=` or a label.

        Their workloads are evicted, except those that tolerate it.
        """
        return self._supposing(lose=clusters)

    def drain(self, *clusters: str) -> Self:
        """The fleet of which clusters are drained: all workloads are evicted from them, and they take no others."""
        return self._supposing(drain=clusters)

    def taint(self, *taints: str) -> Self:
        """The fleet with taints of clusters, as `cluster/NAME:KEY[=VALUE]:EFFECT`."""
        return self._supposing(taint=taints)

    def recover(self, *clusters: str) -> Self:
        """The fleet of which clusters are healthy again: without the taints of their failure."""
        return self._supposing(recover=clusters)

    def place(self, *, explain: bool = False) -> FleetPlan:
        """
        Where the workloads would be placed that wait, and what moves.

        With `explain`, the documents and texts of the plan have an explanation for each that is unschedulable.
        """
        from bayplan.library import fleet_plan

        with self._reading.asked():
            fleet = self._loaded()
            self._reading.moved_to(self)
            return fleet_plan.place(self._includes, fleet, self._reading.notes, explains=explain, show=self._show)

    def scale(self, *replicas: int) -> FleetScaling:
        """Where each workload in scope would be with these numbers of replicas, one after another."""
        if not replicas:
            raise ArgumentError("give at least one number of replicas", argument="scale")
        for one in replicas:
            arguments.check_count("scale", one, least=0)
        from bayplan.library import fleet_plan

        with self._reading.asked():
            fleet = self._loaded()
            self._reading.moved_to(self)
            return fleet_plan.scale(fleet, self._includes, replicas, self._reading.notes)

    def scale_to_most(self) -> FleetScaling:
        """Where each workload in scope would be with as many replicas as fit."""
        from bayplan.library import fleet_plan

        with self._reading.asked():
            fleet = self._loaded()
            self._reading.moved_to(self)
            return fleet_plan.scale(fleet, self._includes, None, self._reading.notes)

    def explain(self, workload: str, *, alone: bool = False) -> Explanation:
        """
        Why a workload is placed on its clusters, or on none, and what would change that.

        It is named as KIND/NAME of its template or of its binding. What is before it in the scheduling queue is placed
        first, unless it is explained `alone`.
        """
        from bayplan.library import explaining, workload_names
        from bayplan.library.explanation import explanation_of

        if not isinstance(workload, str):
            raise ArgumentError(f"expected KIND/NAME, got {workload!r}", argument="workload")
        asked = workload_names.parse(workload)
        with self._reading.asked():
            fleet = self._loaded()
            self._reading.moved_to(self)
            running = (record.workload for record in fleet.index.records.values())
            workloads = [*fleet.pending, *running, *(workload for workload, _ in fleet.idle)]
            asked = workload_names.with_namespace(asked, workload, workloads)
            found = explaining.explain_binding(
                asked,
                fleet,
                lambda one: self._includes(one) and asked.namespace in ("", one.namespace),
                alone=alone,
            )
            notes = (*self._reading.notes, *((found.note,) if found.note else ()))
            placed_by, template = explaining.objects_of(found.explanation.workload, fleet)
            manifests = functools.partial(
                self._reading.materials.manifests_of_binding, placed_by=placed_by, template=template
            )
            targets = [fleet.index.slots.at(slot) for _, slot in sorted(fleet.index.slots.by_name.items())]
            return explanation_of(found.explanation, found.current, manifests, notes=notes, targets=targets)

    def violations(
        self,
        *,
        affinity_grace: float = 300.0,
        anti_affinity_grace: float = 60.0,
        only_if_placeable: bool = False,
        grant: Iterable[str] = (),
    ) -> Violations:
        """
        The required workload affinity terms and groups that are violated, and what enforcement would evict for them.

        Only terms that are required during execution are enforced; the others are reported. The times are in seconds.
        With `only_if_placeable` a workload leaves a cluster only if it fits without it. Rules of the namespaces of
        `grant` may evict workloads of every namespace.
        """
        from bayplan.assigning.cluster_ranking import FleetEngine
        from bayplan.enforcing import preview
        from bayplan.library import running
        from bayplan.rules import fleet_profile

        self._check_nothing_is_supposed("violations")
        settings = running.enforcement_settings(
            affinity_grace, anti_affinity_grace, grant, only_if_placeable=only_if_placeable
        )
        with self._reading.asked():
            fleet = self._loaded()
            self._reading.moved_to(self)
            engine = FleetEngine(fleet.index, fleet_profile.fleet_rules())
            found = preview.preview_fleet(engine, settings, lambda key: _is_ours(fleet.bindings[key]))
            return running.violations_of(found, fleet.index, self._includes, self._reading.notes)

    def rebalance(self, *, max_moves: int = 5) -> MovePlan:
        """The fewest moves of workloads that improve soft rules most."""
        from bayplan.enforcing.rebalancing import DisruptionLimits
        from bayplan.library import running

        self._check_nothing_is_supposed("rebalance")
        arguments.check_count("max_moves", max_moves)
        with self._reading.asked():
            fleet = self._loaded()
            self._reading.moved_to(self)
            plan = running.fleet_moves(fleet, DisruptionLimits(max_moves=max_moves, movable=self._includes))
            return running.move_plan_of(plan, fleet.index, self._reading.notes)

    def _includes(self, workload: Workload) -> bool:
        return self._scope.includes()(workload.namespace, workload.labels)

    def _loaded(self) -> LoadedFleet:
        from bayplan.reading.fleet import LoadedFleet

        found = self._reading.loaded(self._show, self._supposed)
        if not isinstance(found, LoadedFleet):
            raise InputError("the input has no Cluster objects: it is no fleet, use Cluster")
        return found


def cluster_of(spec: InputSpec) -> Cluster:
    """The cluster of an input, whatever that holds; reads nothing."""
    from bayplan.library.cluster import Cluster

    return Cluster(Reading(spec))


def opened(
    spec: InputSpec,
    scope: Scope = Scope(),  # noqa: B008 - it never changes
    supposed: Supposed = NOTHING_SUPPOSED,
    show: Show = shows_nothing,
    materials: Materials | None = None,
) -> Cluster | Fleet:
    """The cluster that the input describes, or the fleet if it has Cluster objects; reads it, or the `materials`."""
    from bayplan.library.cluster import Cluster
    from bayplan.reading.cluster import LoadedCluster

    reading = Reading(spec, materials)
    with reading.asked():
        is_cluster = isinstance(reading.loaded(show, supposed), LoadedCluster)
    return (Cluster if is_cluster else Fleet)(reading, scope, supposed, show)


def load(
    *paths: str | os.PathLike[str],
    change: Objects = (),
    recursive: bool = False,
    namespace: str | None = None,
    settings: Settings | None = None,
) -> Cluster | Fleet:
    """
    What runs, from files: a cluster, or a fleet if they have Cluster objects of Karmada, with a `change` applied on it.

    Reads them, which the constructors of Cluster and Fleet do not.
    """
    state, applied = arguments.given(paths, recursive=recursive), arguments.given(change, recursive=recursive)
    if not state and not applied:
        raise ArgumentError("nothing to read: give at least one path")
    arguments.check_namespace(namespace)
    arguments.check_is("settings", settings or Settings(), Settings)
    namespace = namespace or DEFAULT_NAMESPACE
    return opened(InputSpec(state=state, change=applied, namespace=namespace, settings=settings or Settings()))


def _is_ours(binding: ResourceBinding) -> bool:
    """Whether this scheduler places the binding, so that enforcement may evict it."""
    from bayplan.controllers import binding_triggers

    reason = binding_triggers.reason_to_skip(binding, handwritten=True)
    return reason in ("", binding_triggers.NO_PLACEMENT)
