"""
The effect of failures on groups of instances: tolerance, single points of failure and blast vector, as exact integers.

A failure event takes the nodes of one domain, or any other set of nodes that share something. Counts and compares;
whether the result passes is decided by `checks`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from bayplan.auditing.layout import ETCD, LEVELS, ComponentInstance, Layout
from bayplan.auditing.spread import DomainSpread, Locations

NODE = "node"  # the smallest level: every node is a domain of its own
UNTOUCHED, DEGRADED, BELOW_NEED, DOWN = "untouched", "degraded", "below need", "down"

Bounds = Callable[[Sequence[str]], DomainSpread]


# Failure events


class FailureEvent(msgspec.Struct, frozen=True):
    """A failure: all nodes of a domain of a level, or any named set of nodes, are lost at once."""

    level: str
    domain: str
    nodes: frozenset[str]


def failure_events(level: str, domain_by_node: Mapping[str, str | None]) -> list[FailureEvent]:
    """One event per domain of a level, or per value of anything nodes share: a power feed, a kernel version."""
    nodes: dict[str, set[str]] = {}
    for node, domain in domain_by_node.items():
        if domain:
            nodes.setdefault(domain, set()).add(node)
    return [FailureEvent(level, domain, frozenset(names)) for domain, names in sorted(nodes.items())]


def label_events(key: str, labels_by_node: Mapping[str, Mapping[str, str]]) -> list[FailureEvent]:
    """One event per value of a node label."""
    return failure_events(key, {node: labels.get(key) for node, labels in labels_by_node.items()})


def level_events(layout: Layout, level: str, locations: Locations | None = None) -> list[FailureEvent]:
    """The failures of a level, of anything else that nodes share by name, or of a label key, over all nodes."""
    nodes = layout.by_name().values()
    if level == NODE:
        return failure_events(NODE, {node.name: node.name for node in nodes})
    if level in layout.levels:
        return failure_events(level, domains_at(layout, level, locations))
    return failure_events(level, {node.name: node.shares.get(level) or node.labels.get(level) for node in nodes})


def domains_at(layout: Layout, level: str, locations: Locations | None = None) -> dict[str, str | None]:
    """Every node's domain at the level, None where unknown; the same name under two parents is two domains."""
    locations, position = locations or Locations(layout), LEVELS.index(level)
    return {name: locations.location_of(name)[position] for name in layout.by_name()}


# Groups


class InstanceGroup(msgspec.Struct, frozen=True):
    """
    Instances that can replace each other.

    With `quorum`, a majority of all members, healthy or not, must remain; otherwise `at_least` members. Survivors are
    the healthy members that are not hit.
    """

    name: str
    members: tuple[ComponentInstance, ...]
    quorum: bool = False
    at_least: int = 1

    @property
    def need(self) -> int:
        """The number of healthy members that must remain."""
        return majority(len(self.members)) if self.quorum else self.at_least

    @property
    def n_healthy(self) -> int:
        return sum(member.healthy for member in self.members)

    @property
    def meets_need(self) -> bool:
        """Whether it has the members it needs while nothing fails."""
        return self.n_healthy >= self.need

    def survivors(self, lost: frozenset[str]) -> int:
        return sum(member.healthy and member.node not in lost for member in self.members)


def majority(n: int) -> int:
    return n // 2 + 1


def component_groups(members_by_component: Mapping[str, Iterable[ComponentInstance]]) -> list[InstanceGroup]:
    """The control-plane components as groups: a majority of etcd, at least one instance of every other component."""
    return [
        InstanceGroup(name, tuple(members), quorum=name == ETCD or name.startswith(f"{ETCD}-"))
        for name, members in sorted(members_by_component.items())
    ]


def as_designed(groups: Iterable[InstanceGroup]) -> list[InstanceGroup]:
    """The groups with every member healthy: what the layout tolerates by design."""
    return [
        msgspec.structs.replace(group, members=tuple(ComponentInstance(member.node) for member in group.members))
        for group in groups
    ]


# Tolerance


class GroupTolerance(msgspec.Struct, frozen=True):
    """
    How many failures of one level a group tolerates.

    `tolerance` is how many domains may fail, whichever they are. Members whose domain is not known (`unknown`) may all
    be in the fullest one or each in its own: the first gives `tolerance`, the second `at_most`.
    """

    group: str
    level: str
    n: int
    need: int
    counts: tuple[tuple[str, int], ...]
    tolerance: int
    at_most: int
    single_points: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    meets_need: bool = True


class LevelDomains:
    """
    The domain of each node at a level, prepared once for all groups.

    `within` gives nodes a larger domain. A domain is in one larger domain only, so a member whose own domain is unknown
    can share one only with members of the same larger domain. Where a domain is seen in two larger ones, or the larger
    one is unknown, that argument does not hold: such larger domains are merged under the empty name. `bounds`, if
    given, computes exactly how full the fullest domain may be, and which members certainly share a domain.
    """

    def __init__(
        self, domain_of: Mapping[str, str], within: Mapping[str, str] | None = None, bounds: Bounds | None = None
    ) -> None:
        within = within or {}
        self.domain_of = domain_of
        self.bounds = bounds
        larger: dict[str, set[str]] = {}
        for node, domain in self.domain_of.items():
            larger.setdefault(domain, set()).add(within.get(node, ""))
        ambiguous = set().union(*(parents for parents in larger.values() if len(parents) > 1), {""})
        self._parent_of_domain = {d: "" if parents & ambiguous else min(parents) for d, parents in larger.items()}
        self.parent_of = {node: parent for node, parent in within.items() if parent not in ambiguous}

    def fullest(self, counts: Mapping[str, int], unknown: Iterable[str]) -> list[int]:
        """
        The worst way to complete the counts: members of unknown domain join the fullest domain they can be in.

        It majorises every other way, and tolerance only falls in that order, so this end is exact.
        """
        by_parent: dict[str, list[int]] = {}
        for domain, count in counts.items():
            by_parent.setdefault(self._parent_of_domain[domain], []).append(count)
        joining = Counter(self.parent_of.get(node, "") for node in unknown)
        found = by_parent.pop("", [])
        for parent in by_parent.keys() | joining.keys() - {""}:
            here = sorted(by_parent.get(parent, ()), reverse=True) or [0]
            found += [here[0] + joining[parent], *here[1:]]
        found = sorted(found, reverse=True) or [0]
        return [found[0] + joining[""], *found[1:]]


def domains_of_events(disjoint: Iterable[FailureEvent], within: Mapping[str, str] | None = None) -> LevelDomains:
    """The domains of the nodes according to the disjoint events of one level."""
    return LevelDomains({node: event.domain for event in disjoint for node in event.nodes}, within)


def tolerance(counts: Iterable[int], healthy: int, need: int) -> int:
    """
    How many disjoint domains may fail, whichever they are: the largest f with healthy - (c_1 + … + c_f) >= need.

    Domains of one level are disjoint, so losing the fullest ones is the worst case and no search is needed.
    """
    left, survived = healthy, 0
    for count in sorted(counts, reverse=True):
        left -= count
        if count == 0 or left < need:
            break
        survived += 1
    return survived if healthy >= need else 0


def group_tolerance(group: InstanceGroup, domains: LevelDomains, level: str = "") -> GroupTolerance:
    """The tolerance of the group to failures of one level, whose domains are disjoint."""
    healthy = [member.node for member in group.members if member.healthy]
    counts = Counter(domains.domain_of[node] for node in healthy if node in domains.domain_of)
    unknown = [node for node in healthy if node not in domains.domain_of]
    n, need = len(healthy), group.need
    worst = tolerance(domains.fullest(counts, unknown), n, need)
    best = worst
    if unknown:
        bounds = domains.bounds(healthy) if domains.bounds is not None else None
        # At best each node of unknown domain has its own, unless it certainly shares one.
        separate = bounds.blocks if bounds is not None else Counter(unknown).values()
        best = tolerance([*counts.values(), *separate], n, need)
        if bounds is not None and group.meets_need:
            worst = max(worst, 1) if n - bounds.hi >= need else 0
    return GroupTolerance(
        group=group.name,
        level=level,
        n=len(group.members),
        need=need,
        counts=tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        tolerance=worst,
        at_most=best,
        single_points=tuple(domain for domain, count in sorted(counts.items()) if n - count < need),
        unknown=tuple(sorted(set(unknown))),
        meets_need=group.meets_need,
    )


# The effect of each event


class Blast(msgspec.Struct, frozen=True):
    """The effect of one event: the names of the groups that it hits, and how many groups are untouched."""

    event: FailureEvent
    down: tuple[str, ...] = ()
    below_need: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    untouched: int = 0
    members_lost: int = 0


def effect(group: InstanceGroup, event: FailureEvent) -> str:
    """
    The effect of the event on the group: untouched, degraded, below need or down.

    A group that the event does not hit is untouched, even if it lacks members already.
    """
    hit = [member for member in group.members if member.node in event.nodes]
    return _effect(group.n_healthy - sum(member.healthy for member in hit), group.need) if hit else UNTOUCHED


def _effect(left: int, need: int) -> str:
    if left == 0:
        return DOWN
    return BELOW_NEED if left < need else DEGRADED


def blasts(groups: Sequence[InstanceGroup], all_events: Iterable[FailureEvent]) -> list[Blast]:
    """The effect of each event, the worst first. The cost grows with the members, not with events times members."""
    on_node: dict[str, list[tuple[int, bool]]] = {}
    for position, group in enumerate(groups):
        for member in group.members:
            on_node.setdefault(member.node, []).append((position, member.healthy))
    sizes = [(group.name, group.n_healthy, group.need) for group in groups]
    return sorted((_blast(event, sizes, on_node) for event in all_events), key=_severity)


def _blast(
    event: FailureEvent, sizes: Sequence[tuple[str, int, int]], on_node: Mapping[str, Sequence[tuple[int, bool]]]
) -> Blast:
    lost: Counter[int] = Counter()
    hit = [member for node in event.nodes for member in on_node.get(node, ())]
    for position, healthy in hit:
        lost[position] += healthy
    by_effect: dict[str, list[str]] = {DOWN: [], BELOW_NEED: [], DEGRADED: []}
    for position in sorted(lost):
        name, n_healthy, need = sizes[position]
        by_effect[_effect(n_healthy - lost[position], need)].append(name)
    down, below, degraded = (tuple(by_effect[one]) for one in (DOWN, BELOW_NEED, DEGRADED))
    return Blast(event, down, below, degraded, len(sizes) - len(lost), len(hit))


def _severity(blast: Blast) -> tuple[int, int, int, int, str, str]:
    worst = -len(blast.down), -len(blast.below_need), -len(blast.degraded), -blast.members_lost
    return *worst, blast.event.level, blast.event.domain


def blast_vector(groups: Sequence[InstanceGroup], all_events: Sequence[FailureEvent]) -> tuple[int, ...]:
    """
    How many pairs of event and group lose m members, for m from the largest group's size down to 1.

    The smaller of two vectors in lexicographic order is the better placement.
    """
    largest = max((len(group.members) for group in groups), default=0)
    hitting: dict[str, list[int]] = {}
    for position, event in enumerate(all_events):
        for node in event.nodes:
            hitting.setdefault(node, []).append(position)
    lost: Counter[int] = Counter()
    for group in groups:
        by_event = Counter(event for member in group.members for event in hitting.get(member.node, ()))
        lost.update(by_event.values())
    return tuple(lost[m] for m in range(largest, 0, -1))


def breaking_sets(
    group: InstanceGroup, all_events: Sequence[FailureEvent], max_size: int = 2
) -> Iterator[tuple[FailureEvent, ...]]:
    """
    The minimal sets of at most `max_size` events, of any levels, that together break the group; smallest first.

    A set of size 1 is a single point of failure. Looks at every combination, so the cost grows fast with `max_size`.
    """
    hitting = [event for event in all_events if any(member.node in event.nodes for member in group.members)]
    found: list[frozenset[int]] = []
    for size in range(1, max_size + 1):
        for chosen in itertools.combinations(range(len(hitting)), size):
            if any(smaller <= frozenset(chosen) for smaller in found):
                continue
            lost = frozenset().union(*(hitting[i].nodes for i in chosen))
            if group.survivors(lost) < group.need:
                found.append(frozenset(chosen))
                yield tuple(hitting[i] for i in chosen)


# One level


class LevelReport(msgspec.Struct, frozen=True):
    """All groups against all failures of one level, the worst failure first."""

    level: str
    tolerances: tuple[GroupTolerance, ...]
    blasts: tuple[Blast, ...]
    vector: tuple[int, ...]

    @property
    def tolerance(self) -> int:
        """How many domains may fail with every group still meeting its need."""
        return min((one.tolerance for one in self.tolerances), default=0)

    @property
    def at_most(self) -> int:
        return min((one.at_most for one in self.tolerances), default=0)

    @property
    def single_points(self) -> tuple[str, ...]:
        return tuple(sorted({domain for one in self.tolerances for domain in one.single_points}))


def level_report(
    groups: Sequence[InstanceGroup], level: str, disjoint: Sequence[FailureEvent], domains: LevelDomains | None = None
) -> LevelReport:
    """All groups against the disjoint events of one level; `domains` where more is known than the events say."""
    domains = domains or domains_of_events(disjoint)
    return LevelReport(
        level,
        tuple(group_tolerance(group, domains, level) for group in groups),
        tuple(blasts(groups, disjoint)),
        blast_vector(groups, disjoint),
    )
