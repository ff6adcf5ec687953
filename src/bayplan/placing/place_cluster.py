"""
Place everything that waits in a cluster, and step through what a change updates in it.

The answer has a placement for each pod: placed, pending, preempted, refused by the API server, or not judged. Knows
nothing of files or terminals.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bayplan.controllers.pod_admission import PodAdmission, RefusedPod
from bayplan.engine.engine import EngineOf
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing import pod_scheduler
from bayplan.placing.place_pods import PodPlacement
from bayplan.placing.pod_scheduler import OnPreemption, PodScheduler

if TYPE_CHECKING:
    from bayplan.controllers.rollouts import Rollout
    from bayplan.explaining.fixes import EvictionPolicy
    from bayplan.grouping.optimum import PriorityLevel
    from bayplan.grouping.problem import ExactSolver
    from bayplan.placing.assumed_volumes import TopologyKeys
    from bayplan.placing.group_scheduler import GroupScheduler
    from bayplan.placing.remaking import PodRemaker
    from bayplan.placing.rollout_history import RolloutResult
    from bayplan.placing.safe_steps import PlanStep
    from bayplan.placing.what_if import BlockedEviction


class ClusterToPlace(msgspec.Struct, kw_only=True):
    """
    An index of what runs, and what waits for a node: `pending`, in the order of the scheduling queue.

    `change` names the pending pods that are part of a change or made for an object of it; None if there is no change.
    `refused` are pods that an API server would not create, `not_judged` says of pending pods why it is not known
    whether they can be placed. `rollouts` are the controllers that the change updates: their new pods are created step
    by step, and `admission` admits them. `default_class` is the storage class of claims that name none. `csi_drivers`
    says whether each driver attaches its volumes to nodes. If classes and drivers are known, there are no others.
    `topology_keys` are the label keys by which each driver on each node knows from where its volumes are reached.

    `displaced` leads from pods that a what-if has taken their node to that node; `gone` are those that are not created
    again. `draining` are the nodes to drain. `placed_otherwise` are pending pods that have a node without the what-if.
    `has_namespaces`: the labels of namespaces are known.
    `parallel_sets` are the StatefulSets, by namespace and name, that create their pods at once.
    """

    index: PlacementIndex
    pending: list[Workload]
    spread_context: pods.SpreadContext
    disruption_budgets: list[DisruptionBudget] = []
    change: frozenset[WorkloadKey] | None = None
    refused: list[RefusedPod] = []
    not_judged: dict[WorkloadKey, str] = {}
    rollouts: list[Rollout] = []
    admission: PodAdmission | None = None
    default_class: str = ""
    classes_known: bool = True
    csi_drivers: dict[str, bool] = {}
    csi_drivers_known: bool = True
    topology_keys: TopologyKeys = msgspec.field(default_factory=dict)
    displaced: dict[WorkloadKey, str] = {}
    gone: list[PodPlacement] = []
    draining: tuple[str, ...] = ()
    placed_otherwise: frozenset[WorkloadKey] = frozenset()
    parallel_sets: frozenset[tuple[str, str]] = frozenset()
    has_namespaces: bool = True

    def eviction_policy(self) -> EvictionPolicy:
        """Which pods a fix may move."""
        from bayplan.placing import evicting  # only an explanation needs it

        return evicting.policy(self.disruption_budgets, self.index, self.spread_context, self.remaker())

    def remaker(self) -> PodRemaker | None:
        """Makes pods of revised manifests, if it is known what pods are created from."""
        return None


class Optimisation(msgspec.Struct, frozen=True):
    """
    How good a plan is: the `levels` by priority, and of the moves of running pods their number and the least possible.

    `steps` carry it out in an order in which each is safe. `undecided` says why no plan was found that may be better
    than what a scheduler does. `n_left_out` pods have volumes and are placed as a scheduler does.
    """

    levels: tuple[PriorityLevel, ...] = ()
    n_moves: int = 0
    least_moves: int = 0
    steps: tuple[PlanStep, ...] = ()
    undecided: str = ""
    n_left_out: int = 0


class ClusterPlacement(msgspec.Struct, frozen=True):
    """
    Where everything is in the end.

    `change` names the placements that the change or a what-if has brought about, victims of preemption included; None
    if there is no change. `blocked` are the pods that keep nodes from being drained.
    """

    placements: list[PodPlacement]
    rollouts: list[RolloutResult]
    change: frozenset[WorkloadKey] | None = None
    blocked: list[BlockedEviction] = []
    optimisation: Optimisation | None = None


class PlacingOptions(msgspec.Struct, frozen=True):
    """
    How to place. `in_steps`: rollouts are stepped through, else only their end is placed.

    `progress` receives the number of attempts so far and, if there are any, the step of the rollouts. Without rollouts,
    placing ends early when `until` is true of the placements so far. `group_by_owner`: the pods of one controller are a
    group, of which all are placed or none. `optimises`: as many pods are placed as can be, for which up to `max_moves`
    running pods may move, of those that `may_move`; that takes an optional package, and there are no rollouts and no
    nodes to drain.
    """

    preempts: bool = True
    in_steps: bool = True
    on_preemption: OnPreemption = lambda _, __: None
    progress: Callable[[int, int], None] = lambda _, __: None
    until: Callable[[Mapping[WorkloadKey, PodPlacement]], bool] = lambda _: False
    group_by_owner: bool = False
    optimises: bool = False
    max_moves: int = 0
    may_move: Callable[[Workload], bool] = lambda _: True


def place(cluster: ClusterToPlace, engine_of: EngineOf, options: PlacingOptions) -> ClusterPlacement:
    """Place all that waits, and let the rollouts take their course."""
    if options.optimises:
        from bayplan.placing import optimised  # only few plans are to be the best ones

        return optimised.place(cluster, engine_of, options, place)
    n_attempts, step = 0, 0

    def on_attempt() -> None:
        nonlocal n_attempts
        n_attempts += 1
        options.progress(n_attempts, step)

    def on_step(number: int) -> None:
        nonlocal step
        step = number

    def make_groups() -> GroupScheduler:
        from bayplan.placing.group_scheduler import GroupOptions, GroupScheduler  # most clusters have no groups

        declared = cluster.spread_context.pod_groups
        chosen = GroupOptions(declared, options.group_by_owner, _exact_solver())
        return GroupScheduler(cluster.index, engine_of, chosen)

    scheduler = PodScheduler(
        engine_of,
        cluster.index,
        cluster.disruption_budgets,
        pod_scheduler.recreated_by_controller(cluster.index, cluster.spread_context),
        preempts=options.preempts,
        on_preemption=options.on_preemption,
        on_attempt=on_attempt,
        make_groups=make_groups,
        topology_keys=cluster.topology_keys,
    )
    if options.group_by_owner:
        scheduler.place_groups()
    waits: dict[WorkloadKey, WorkloadKey] = {}
    if cluster.displaced or cluster.draining:
        from bayplan.placing import what_if  # only a what-if needs it

        waits = what_if.waiting_for(cluster.pending, cluster.displaced, cluster.parallel_sets)
    held = {}
    for workload in cluster.pending:
        if workload.key in waits:
            held[workload.key] = workload
        else:
            scheduler.add(workload)
    is_partial = bool(cluster.rollouts or cluster.draining or held)
    scheduler.schedule(until=lambda: not is_partial and options.until(scheduler.placements))
    if deleted := [key for key, placed in cluster.index.records.items() if placed.workload.terminating]:
        _let_leave(deleted, cluster, scheduler)
    if held:
        _schedule_held(held, waits, scheduler)
    blocked: list[BlockedEviction] = []
    if cluster.draining:
        blocked = what_if.drain(cluster, scheduler)
    results: list[RolloutResult] = []
    doubts = dict(cluster.not_judged)
    if cluster.rollouts:
        from bayplan.placing.rollouts import Stepper  # only an update needs them
        from bayplan.placing.volume_attaching import VolumeAttaching
        from bayplan.placing.volume_provisioning import Provisioning

        stepper = Stepper(
            cluster.rollouts,
            scheduler,
            cluster.index,
            cluster.spread_context,
            provisioning=Provisioning(cluster.default_class, classes_known=cluster.classes_known),
            admission=cluster.admission,
            attaching=VolumeAttaching(cluster.csi_drivers, known=cluster.csi_drivers_known),
        )
        results = stepper.run(progress=on_step) if options.in_steps else stepper.end_state()
        doubts.update(stepper.not_judged)
    doubts.update(scheduler.doubts)
    if using := [one for one in scheduler.placements.values() if one.target and one.workload.needs.claims.names]:
        doubts.update(_not_attached(using, cluster))
    found = [judged(one, doubts.get(one.workload.key, "")) for one in scheduler.placements.values()]
    if cluster.displaced:
        moved = cluster.displaced
        found = [msgspec.structs.replace(one, displaced_from=moved.get(one.workload.key, "")) for one in found]
    if held:
        found += [
            PodPlacement(one, message=what_if.WAITS_FOR.format(waits[key]), displaced_from=cluster.displaced[key])
            for key, one in held.items()
        ]
    found += cluster.gone
    found += [_refused(one, cluster) for one in cluster.refused]
    return ClusterPlacement(found, results, _of_change(cluster, found), blocked)


def has_solver() -> bool:
    """Whether the optional package is there that decides problems exactly."""
    return importlib.util.find_spec("ortools") is not None


def _exact_solver() -> ExactSolver | None:
    """What decides problems that the search does not; None without the optional package that it needs."""
    if not has_solver():
        return None
    from bayplan.grouping import exact

    return exact.solve


def _let_leave(deleted: Iterable[WorkloadKey], cluster: ClusterToPlace, scheduler: PodScheduler) -> None:
    """Let pods leave that were being deleted before, if anything waits for their room, and place what does."""
    from bayplan.placing import leaving  # in most clusters nothing is being deleted

    if not cluster.rollouts and not any(one.is_unschedulable for one in scheduler.placements.values()):
        return
    rolled_out = {f"{one.key.namespace}/{name}" for one in cluster.rollouts for name in one.pods}
    for key in deleted:
        if key not in rolled_out and leaving.makes_room(cluster.index.records[key], cluster.index):
            scheduler.remove(key)
    scheduler.schedule()


def _schedule_held(
    held: dict[WorkloadKey, Workload], waits: Mapping[WorkloadKey, WorkloadKey], scheduler: PodScheduler
) -> None:
    """Place the pods that a controller creates only when another one runs; `held` keeps those it never creates."""
    while ready := [key for key in held if (one := scheduler.placements.get(waits[key])) is not None and one.target]:
        for key in ready:
            scheduler.add(held.pop(key))
        scheduler.schedule()


def _not_attached(using: Sequence[PodPlacement], cluster: ClusterToPlace) -> dict[WorkloadKey, str]:
    """Placed pods that wait until pods elsewhere give up their volumes; rollouts know that of their pods."""
    from bayplan.placing.volume_attaching import VolumeAttaching  # few pods have claims

    attaching = VolumeAttaching(cluster.csi_drivers, known=cluster.csi_drivers_known)
    rolled_out = {f"{one.key.namespace}/{name}" for one in cluster.rollouts for name in one.pods}
    waiting = {key for key, placed in cluster.index.records.items() if placed.workload.terminating}
    waiting |= {one.workload.key for one in using} - rolled_out
    found = {}
    for key in [one.workload.key for one in using if one.workload.key not in rolled_out]:
        obstacle, _ = attaching.obstacle(key, cluster.index, waiting)
        if obstacle:
            found[key] = obstacle
        else:  # it is the first to get its volumes
            waiting.discard(key)
    return found


def judged(placement: PodPlacement, doubt: str) -> PodPlacement:
    """A pod that fits only as far as is known is not placed; one that fits nowhere anyway is pending."""
    if not doubt or not placement.target:
        return placement
    message = f"not judged: {doubt}; without that it fits on {placement.target}"
    return msgspec.structs.replace(placement, target="", total=0, message=message, not_judged=doubt)


def _refused(one: RefusedPod, cluster: ClusterToPlace) -> PodPlacement:
    workload = pods.workload_of(one.pod, cluster.spread_context)
    return PodPlacement(workload, message=one.message, refused=True)


def _of_change(cluster: ClusterToPlace, placements: Iterable[PodPlacement]) -> frozenset[WorkloadKey] | None:
    """
    The keys of the placements of the change: its own pods, pods that these preempt, and so on.

    What follows from a what-if is part of it: pods that lose their node, and pods that therefore get none.
    """
    if cluster.change is None:
        return None
    rolled_out = {f"{one.key.namespace}/{name}" for one in cluster.rollouts for name in one.pods}
    found = {*cluster.change, *map(WorkloadKey, rolled_out), *cluster.displaced}
    found |= {one.workload.key for one in cluster.gone}
    found |= {one.workload.key for one in placements if not one.target} & cluster.placed_otherwise
    victims = {one.workload.key: one.preemptor for one in placements if one.preemptor}
    while more := {key for key, preemptor in victims.items() if preemptor in found and key not in found}:
        found |= more
    return frozenset(found)
