"""
What is left after each failure: every event of every level against the control plane and the workloads, and whether
the scheduler finds room for what was displaced.

Puts `survivability` (counting) and `workload_loss` (placing again) together for one layout. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing import survivability, workload_loss
from bayplan.auditing.layout import HOST, LEVELS, Layout
from bayplan.auditing.spread import DomainSpread, Locations, spread
from bayplan.auditing.survivability import (
    NODE,
    Blast,
    FailureEvent,
    Group,
    LevelDomains,
    LevelReport,
    domains_at,
    level_events,
)
from bayplan.auditing.workload_groups import ReplicaGroup
from bayplan.auditing.workload_loss import Loss
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import WorkloadKey
from bayplan.rules.rule import Rule

ALL_LEVELS = (NODE, *LEVELS)
MAX_PODS_WITH_FIXES = 20  # pods that find no room for which changes are tried, over all failures; each takes a while
_MAX_RISKS = 100

OnStep = Callable[[int, int, FailureEvent], None]


class Aftermath(msgspec.Struct, frozen=True):
    """One failure: what it takes of the control plane and of workloads, and what became of those it displaced."""

    event: FailureEvent
    control_plane: Blast
    workloads: Blast | None = None
    loss: Loss | None = None

    def severity(self) -> tuple[int, ...]:
        """The smaller, the worse: broken parts of the control plane count first, then pods without a place."""
        worst = [-len(self.control_plane.down), -len(self.control_plane.below_need)]
        worst.append(-len(self.loss.stranded) if self.loss else 0)
        hit = self.workloads
        return (*worst, *((-len(hit.down), -len(hit.below_need), -len(hit.degraded)) if hit else (0, 0, 0)))

    @property
    def hurts(self) -> bool:
        """Whether something is below its need, or without a place."""
        broken = [self.control_plane.down, self.control_plane.below_need]
        broken += [self.workloads.down, self.workloads.below_need] if self.workloads else []
        return any(broken) or bool(self.loss and self.loss.stranded)


class LevelSurvival(msgspec.Struct, frozen=True, kw_only=True):
    """
    One level, or one thing that nodes share by name (`named`): all its failures against all groups.

    `by_design` is what the control plane would tolerate with all its members at work. `losses` are by domain; none
    where nothing was placed again, or where nothing would be left to place it on.
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
        """Every failure with all that it does, the worst first."""
        workloads = {blast.event.domain: blast for blast in (self.workloads.blasts if self.workloads else ())}
        found = [
            Aftermath(blast.event, blast, workloads.get(blast.event.domain), self.losses.get(blast.event.domain))
            for blast in self.control_plane.blasts
        ]
        return sorted(found, key=Aftermath.severity)


class Survival(msgspec.Struct, frozen=True, kw_only=True):
    """
    All levels that were `asked` for and of which anything is known.

    `risks` are the smallest sets of failures that break a part of the control plane together. `rescheduled` says
    whether displaced pods were placed again; if not, `note` says why.
    """

    asked: tuple[str, ...]
    levels: tuple[LevelSurvival, ...]
    risks: tuple[tuple[str, tuple[FailureEvent, ...]], ...] = ()
    rescheduled: bool = False
    note: str = ""

    def at(self, level: str) -> LevelSurvival | None:
        return next((one for one in self.levels if one.level == level), None)


class Rescheduling(msgspec.Struct, frozen=True, kw_only=True):
    """What placing again needs: the index, the rules, and the pods that are lost with their node."""

    index: PlacementIndex
    rules: Sequence[Rule]
    lost_with_node: frozenset[WorkloadKey] = frozenset()


def survey(
    layout: Layout, replicas: Sequence[ReplicaGroup] | None = None, levels: Sequence[str] = ALL_LEVELS
) -> list[LevelSurvival]:
    """Count what each failure of each level takes; a level that nothing is known of is left out."""
    places = Locations(layout)
    parts = survivability.components(layout.members)
    designed = survivability.as_designed(parts)
    found = []
    for level in dict.fromkeys(levels):
        happening = level_events(layout, level, places)
        at = _level_domains(layout, level, places) if level in LEVELS else survivability.domains_of_events(happening)
        # Hosts that nobody labelled can still be told apart by what is known of zones.
        if not happening and not (level == HOST and at.place_of):
            continue
        workloads = None
        if replicas is not None:
            workloads = survivability.level_report([one.group for one in replicas], level, happening, at)
        found.append(
            LevelSurvival(
                level=level,
                named=level not in ALL_LEVELS,
                control_plane=survivability.level_report(parts, level, happening, at),
                by_design=min((survivability.group_tolerance(one, at, level).tolerance for one in designed), default=0),
                workloads=workloads,
            )
        )
    return found


def _level_domains(layout: Layout, level: str, places: Locations) -> LevelDomains:
    """
    Where the nodes stand at a level, and in what larger domain: the smallest level that is known of all of them.

    A domain that contradictory labels leave in doubt is none.
    """
    position, known = LEVELS.index(level), layout.by_name()
    domains = {
        name: domain
        for name, domain in domains_at(layout, level, places).items()
        if domain and not places.contested(position, domain)
    }
    within: dict[str, str] = {}
    for larger in LEVELS[position + 1 :]:
        there = {name: domain for name, domain in domains_at(layout, larger, places).items() if domain}
        within = within if len(within) >= len(there) else there
        if len(there) == len(known):
            break

    def bounds(names: Sequence[str]) -> DomainSpread:
        return spread(layout, [known[name] for name in names], level, places)

    return LevelDomains(domains, within, bounds)


def risks(layout: Layout, levels: Iterable[LevelSurvival]) -> tuple[tuple[str, tuple[FailureEvent, ...]], ...]:
    """Up to two failures, of whichever levels, that together break a part of the control plane; single ones first."""
    counted = {one.level: one for one in levels}
    if any(event.domain for event in (counted[HOST].events if HOST in counted else ())):
        counted.pop(NODE, None)  # a machine's failure says it all
    happening = [event for one in counted.values() for event in one.events]
    found: list[tuple[str, tuple[FailureEvent, ...]]] = []
    for group in survivability.components(layout.members):
        for chosen in survivability.breaking_sets(group, _distinct(happening, group)):
            found.append((group.name, chosen))
            if len(found) >= _MAX_RISKS:
                return tuple(found)
    return tuple(found)


def _distinct(happening: Iterable[FailureEvent], group: Group) -> list[FailureEvent]:
    """One event for each set of the group's members that it takes: the smallest level's."""
    nodes = {member.node for member in group.members}
    first: dict[frozenset[str], FailureEvent] = {}
    for event in happening:
        first.setdefault(event.nodes & nodes, event)
    first.pop(frozenset(), None)
    return list(first.values())


def reschedule(
    levels: Sequence[LevelSurvival], replicas: Sequence[ReplicaGroup], how: Rescheduling, on_step: OnStep | None = None
) -> list[LevelSurvival]:
    """
    Play every failure through: take its nodes away and place what ran there again.

    Failures that take the same nodes are one. A failure that takes all nodes leaves nothing to place on. `on_step` is
    told how many of how many are done, and which was the last.
    """
    everything = frozenset(how.index.slots.by_name)
    wanted: dict[frozenset[str], FailureEvent] = {}
    for event in (event for one in levels for event in one.events):
        nodes = event.nodes & everything
        if nodes and nodes != everything:
            wanted.setdefault(nodes, event)
    losses: dict[frozenset[str], Loss] = {}
    played = workload_loss.simulate_losses(
        wanted.values(), how.index, how.rules, replicas, not_recreated=how.lost_with_node, max_fixes=MAX_PODS_WITH_FIXES
    )
    for nodes, loss in zip(wanted, played, strict=True):
        losses[nodes] = loss
        if on_step is not None:
            on_step(len(losses), len(wanted), loss.event)
    return [
        msgspec.structs.replace(
            one,
            losses={
                event.domain: msgspec.structs.replace(losses[event.nodes & everything], event=event)
                for event in one.events
                if event.nodes & everything in losses
            },
        )
        for one in levels
    ]
