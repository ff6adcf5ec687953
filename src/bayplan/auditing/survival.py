"""
What remains after each failure: every event of every level against the control plane and the workloads, and whether
the scheduler can place the displaced pods again.

Combines `survivability` (counting) and `workload_loss` (placing again) for one layout. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing import survivability, workload_loss
from bayplan.auditing.layout import HOST, LEVELS, Layout
from bayplan.auditing.spread import DomainSpread, Locations, spread_over_domains
from bayplan.auditing.survivability import (
    NODE,
    Blast,
    FailureEvent,
    InstanceGroup,
    LevelDomains,
    LevelReport,
    domains_at,
    level_events,
)
from bayplan.auditing.workload_groups import ReplicaGroup
from bayplan.auditing.workload_loss import Loss
from bayplan.engine.engine import Engine
from bayplan.explaining.fixes import ANY_EVICTION, EvictionPolicy
from bayplan.mapping.pods import SpreadContext
from bayplan.model.workloads import WorkloadKey

ALL_LEVELS = (NODE, *LEVELS)
MAX_PODS_WITH_FIXES = 20  # stranded pods for which fixes are searched, over all failures; each search is slow
_MAX_RISKS = 100

OnStep = Callable[[int, int, FailureEvent], None]


class Aftermath(msgspec.Struct, frozen=True):
    """One failure: its effect on the control plane and on workloads, and where displaced pods were placed."""

    event: FailureEvent
    control_plane: Blast
    workloads: Blast | None = None
    loss: Loss | None = None

    def severity(self) -> tuple[int, ...]:
        """A sort key, the worst first: broken control-plane components, then stranded pods, then broken workloads."""
        worst = [-len(self.control_plane.down), -len(self.control_plane.below_need)]
        worst.append(-len(self.loss.stranded) if self.loss else 0)
        hit = self.workloads
        return (*worst, *((-len(hit.down), -len(hit.below_need), -len(hit.degraded)) if hit else (0, 0, 0)))

    @property
    def hurts(self) -> bool:
        """Whether a group is below its need or a pod is stranded."""
        broken = [self.control_plane.down, self.control_plane.below_need]
        broken += [self.workloads.down, self.workloads.below_need] if self.workloads else []
        return any(broken) or bool(self.loss and self.loss.stranded)


class LevelSurvival(msgspec.Struct, frozen=True, kw_only=True):
    """
    One level, or one thing that nodes share by name (`named`): all its failures against all groups.

    `by_design` is what the control plane would tolerate with all its members healthy. `losses` are by domain; there is
    none where displaced pods were not placed again, or where no node would be left.
    """

    level: str
    named: bool
    control_plane: LevelReport
    by_design: int = 0
    workloads: LevelReport | None = None
    losses: Mapping[str, Loss] = msgspec.field(default_factory=dict)

    @property
    def events(self) -> tuple[FailureEvent, ...]:
        return tuple(blast.event for blast in self.control_plane.blasts)

    def aftermaths(self) -> list[Aftermath]:
        """Every failure with all its effects, the worst first."""
        workloads = {blast.event.domain: blast for blast in (self.workloads.blasts if self.workloads else ())}
        found = [
            Aftermath(blast.event, blast, workloads.get(blast.event.domain), self.losses.get(blast.event.domain))
            for blast in self.control_plane.blasts
        ]
        return sorted(found, key=Aftermath.severity)


class Survival(msgspec.Struct, frozen=True, kw_only=True):
    """
    All levels that were `asked` for and of which anything is known.

    `risks` are the smallest sets of failures that together break a control-plane component. `rescheduled`: displaced
    pods were placed again; if not, `note` says why.
    """

    asked: tuple[str, ...]
    levels: tuple[LevelSurvival, ...]
    risks: tuple[tuple[str, tuple[FailureEvent, ...]], ...] = ()
    rescheduled: bool = False
    note: str = ""

    def at(self, level: str) -> LevelSurvival | None:
        return next((one for one in self.levels if one.level == level), None)


class Rescheduling(msgspec.Struct, frozen=True, kw_only=True):
    """The input of rescheduling: the engine, what spreads new pods, who may be moved, what is lost with its node."""

    engine: Engine
    spread_context: SpreadContext
    policy: EvictionPolicy = ANY_EVICTION
    lost_with_node: frozenset[WorkloadKey] = frozenset()


def survey_losses(
    layout: Layout, replicas: Sequence[ReplicaGroup] | None = None, levels: Sequence[str] = ALL_LEVELS
) -> list[LevelSurvival]:
    """Count the effect of each failure of each level; a level of which nothing is known is left out."""
    locations = Locations(layout)
    parts = survivability.component_groups(layout.members)
    designed = survivability.as_designed(parts)
    found = []
    for level in dict.fromkeys(levels):
        events = level_events(layout, level, locations)
        domains = (
            _level_domains(layout, level, locations) if level in LEVELS else survivability.domains_of_events(events)
        )
        # Unlabelled hosts can still be distinguished by their zones.
        if not events and not (level == HOST and domains.parent_of):
            continue
        workloads = None
        if replicas is not None:
            workloads = survivability.level_report([one.group for one in replicas], level, events, domains)
        found.append(
            LevelSurvival(
                level=level,
                named=level not in ALL_LEVELS,
                control_plane=survivability.level_report(parts, level, events, domains),
                by_design=min(
                    (survivability.group_tolerance(one, domains, level).tolerance for one in designed), default=0
                ),
                workloads=workloads,
            )
        )
    return found


def _level_domains(layout: Layout, level: str, locations: Locations) -> LevelDomains:
    """
    The nodes' domains at a level, and their larger domains: those of the smallest larger level known for all of them.

    A domain with contradictory labels counts as unknown.
    """
    position, known = LEVELS.index(level), layout.by_name()
    domains = {
        name: domain
        for name, domain in domains_at(layout, level, locations).items()
        if domain and not locations.contested(position, domain)
    }
    within: dict[str, str] = {}
    for larger in LEVELS[position + 1 :]:
        at_larger = {name: domain for name, domain in domains_at(layout, larger, locations).items() if domain}
        within = within if len(within) >= len(at_larger) else at_larger
        if len(at_larger) == len(known):
            break

    def bounds(names: Sequence[str]) -> DomainSpread:
        return spread_over_domains(layout, [known[name] for name in names], level, locations)

    return LevelDomains(domains, within, bounds)


def risks(layout: Layout, levels: Iterable[LevelSurvival]) -> tuple[tuple[str, tuple[FailureEvent, ...]], ...]:
    """Up to two failures, of any levels, that together break a control-plane component; single failures first."""
    counted = {one.level: one for one in levels}
    if any(event.domain for event in (counted[HOST].events if HOST in counted else ())):
        counted.pop(NODE, None)  # the failure of a machine includes it
    events = [event for one in counted.values() for event in one.events]
    found: list[tuple[str, tuple[FailureEvent, ...]]] = []
    for group in survivability.component_groups(layout.members):
        for chosen in survivability.breaking_sets(group, _distinct(events, group)):
            found.append((group.name, chosen))
            if len(found) >= _MAX_RISKS:
                return tuple(found)
    return tuple(found)


def _distinct(events: Iterable[FailureEvent], group: InstanceGroup) -> list[FailureEvent]:
    """One event for each set of members of the group that events take: that of the smallest level."""
    nodes = {member.node for member in group.members}
    first: dict[frozenset[str], FailureEvent] = {}
    for event in events:
        first.setdefault(event.nodes & nodes, event)
    first.pop(frozenset(), None)
    return list(first.values())


def reschedule(
    levels: Sequence[LevelSurvival], replicas: Sequence[ReplicaGroup], how: Rescheduling, on_step: OnStep | None = None
) -> list[LevelSurvival]:
    """
    Simulate every failure: remove its nodes and place the pods that ran there again.

    Failures that take the same nodes are simulated once. A failure that takes all nodes is skipped. `on_step` is called
    with the number of failures done, their total, and the last event.
    """
    all_nodes = frozenset(how.engine.index.slots.by_name)
    distinct: dict[frozenset[str], FailureEvent] = {}
    for event in (event for one in levels for event in one.events):
        nodes = event.nodes & all_nodes
        if nodes and nodes != all_nodes:
            distinct.setdefault(nodes, event)
    losses: dict[frozenset[str], Loss] = {}
    simulated = workload_loss.simulate_losses(
        distinct.values(),
        how.engine,
        replicas,
        not_recreated=how.lost_with_node,
        spread_context=how.spread_context,
        policy=how.policy,
        max_fixes=MAX_PODS_WITH_FIXES,
    )
    for nodes, loss in zip(distinct, simulated, strict=True):
        losses[nodes] = loss
        if on_step is not None:
            on_step(len(losses), len(distinct), loss.event)
    return [
        msgspec.structs.replace(
            one,
            losses={
                event.domain: msgspec.structs.replace(losses[event.nodes & all_nodes], event=event)
                for event in one.events
                if event.nodes & all_nodes in losses
            },
        )
        for one in levels
    ]
