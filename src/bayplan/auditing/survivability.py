"""
What a failure takes with it: tolerance, single points and blast vector of groups of instances, all exact integers.

Knows nodes by name only. Where they sit, what a label is worth and what passes is decided elsewhere.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

QUORUM_COMPONENTS = frozenset({"etcd", "etcd-main", "etcd-events"})
UNTOUCHED, DEGRADED, BELOW_NEED, DOWN = "untouched", "degraded", "below need", "down"


class Member(msgspec.Struct, frozen=True):
    """One instance of a group; `node` is empty if it runs on a machine that is no node of the cluster."""

    node: str
    healthy: bool = True
    name: str = ""


class Group(msgspec.Struct, frozen=True):
    """
    Instances that stand in for each other.

    With `quorum` a majority of the membership must be left, healthy or not at the moment; otherwise `at_least` members.
    Survivors are the healthy members that are not hit.
    """

    name: str
    members: tuple[Member, ...]
    quorum: bool = False
    at_least: int = 1

    @property
    def need(self) -> int:
        return majority(len(self.members)) if self.quorum else self.at_least

    @property
    def n_healthy(self) -> int:
        return sum(member.healthy for member in self.members)

    @property
    def stands(self) -> bool:
        """Whether it has what it needs while nothing fails."""
        return self.n_healthy >= self.need

    def survivors(self, lost: frozenset[str]) -> int:
        return sum(member.healthy and member.node not in lost for member in self.members)


class Event(msgspec.Struct, frozen=True):
    """A failure: all nodes of a domain of a level, or any named set of nodes, are gone at once."""

    level: str
    domain: str
    nodes: frozenset[str]


class Blast(msgspec.Struct, frozen=True):
    """What one event does to each group: names of the groups, and how many are untouched."""

    event: Event
    down: tuple[str, ...] = ()
    below_need: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    untouched: int = 0
    members_lost: int = 0


class Standing(msgspec.Struct, frozen=True):
    """
    How a group stands against the failures of one level.

    `tolerance` is how many domains may fail, whichever they are. Members whose domain is not known (`unknown`) may all
    sit in the fullest one or each in its own: the first gives `tolerance`, the second `at_most`.
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
    stands: bool = True


class LevelReport(msgspec.Struct, frozen=True):
    """All groups against all failures of one level, the worst failure first."""

    level: str
    standings: tuple[Standing, ...]
    blasts: tuple[Blast, ...]
    vector: tuple[int, ...]

    @property
    def tolerance(self) -> int:
        """How many domains may fail with every group still meeting its need."""
        return min((standing.tolerance for standing in self.standings), default=0)

    @property
    def at_most(self) -> int:
        return min((standing.at_most for standing in self.standings), default=0)

    @property
    def single_points(self) -> tuple[str, ...]:
        return tuple(sorted({domain for standing in self.standings for domain in standing.single_points}))


def majority(n: int) -> int:
    return n // 2 + 1


def components(members_by_component: Mapping[str, Iterable[Member]]) -> list[Group]:
    """The control plane's parts as groups: a majority of etcd, at least one of everything else."""
    return [
        Group(name, tuple(members), quorum=name in QUORUM_COMPONENTS)
        for name, members in sorted(members_by_component.items())
    ]


def stacked(nodes: Iterable[str], unhealthy: Iterable[str] = ()) -> list[Group]:
    """The four components of a stacked control plane: one of each on every node."""
    down = frozenset(unhealthy)
    members = [Member(node, node not in down) for node in nodes]
    names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return components(dict.fromkeys(names, members))


def events(level: str, domain_by_node: Mapping[str, str | None]) -> list[Event]:
    """One event per domain of a level, or per value of any label, a kernel version or a power feed; none for no value."""
    nodes: dict[str, set[str]] = {}
    for node, domain in domain_by_node.items():
        if domain:
            nodes.setdefault(domain, set()).add(node)
    return [Event(level, domain, frozenset(names)) for domain, names in sorted(nodes.items())]


def label_events(key: str, labels_by_node: Mapping[str, Mapping[str, str]]) -> list[Event]:
    """One event per value of a node label."""
    return events(key, {node: labels.get(key) for node, labels in labels_by_node.items()})


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


def standing(group: Group, level_events: Sequence[Event], level: str = "") -> Standing:
    """The group against the disjoint events of one level."""
    domain_of = {node: event.domain for event in level_events for node in event.nodes}
    healthy = [member for member in group.members if member.healthy]
    counts = Counter(domain_of[member.node] for member in healthy if member.node in domain_of)
    unknown = [member for member in healthy if member.node not in domain_of]
    known = sorted(counts.values(), reverse=True)
    worst = [known[0] + len(unknown), *known[1:]] if known else [len(unknown)]
    best = [*known, *([1] * len(unknown))]
    n, need = len(healthy), group.need
    return Standing(
        group.name,
        level or (level_events[0].level if level_events else ""),
        len(group.members),
        need,
        tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        tolerance(worst, n, need),
        tolerance(best, n, need),
        tuple(domain for domain, count in sorted(counts.items()) if n - count < need),
        tuple(sorted({member.node or member.name for member in unknown})),
        group.stands,
    )


def effect(group: Group, event: Event) -> str:
    """
    What the event does to the group: nothing, fewer members, fewer than it needs, or none left.

    A group that the event does not hit is untouched, even if it lacks members already.
    """
    if not any(member.node in event.nodes for member in group.members):
        return UNTOUCHED
    left = group.survivors(event.nodes)
    if left == 0:
        return DOWN
    return BELOW_NEED if left < group.need else DEGRADED


def single_points(group: Group, all_events: Iterable[Event]) -> list[Event]:
    """The events that alone leave the group with less than it needs."""
    return [event for event in all_events if effect(group, event) in (DOWN, BELOW_NEED)]


def blasts(groups: Sequence[Group], all_events: Iterable[Event]) -> list[Blast]:
    """What each event takes with it, the worst first. Costs as much as there are members, not events times members."""
    hit_by_node: dict[str, Counter[int]] = {}
    for position, group in enumerate(groups):
        for member in group.members:
            hit_by_node.setdefault(member.node, Counter())[position] += 1
    found = [_blast(event, groups, hit_by_node) for event in all_events]
    return sorted(found, key=_severity)


def _blast(event: Event, groups: Sequence[Group], hit_by_node: Mapping[str, Counter[int]]) -> Blast:
    hit: Counter[int] = Counter()
    for node in event.nodes:
        hit.update(hit_by_node.get(node, Counter()))
    by_effect: dict[str, list[str]] = {DOWN: [], BELOW_NEED: [], DEGRADED: []}
    for position in sorted(hit):
        by_effect[effect(groups[position], event)].append(groups[position].name)
    return Blast(
        event,
        tuple(by_effect[DOWN]),
        tuple(by_effect[BELOW_NEED]),
        tuple(by_effect[DEGRADED]),
        len(groups) - len(hit),
        hit.total(),
    )


def _severity(blast: Blast) -> tuple[int, int, int, int, str, str]:
    worst = -len(blast.down), -len(blast.below_need), -len(blast.degraded), -blast.members_lost
    return *worst, blast.event.level, blast.event.domain


def vector(groups: Sequence[Group], all_events: Sequence[Event]) -> tuple[int, ...]:
    """
    How many pairs of event and group lose m members, for m from the largest group's size down to 1.

    The smaller of two vectors in lexicographic order is the better placement.
    """
    largest = max((len(group.members) for group in groups), default=0)
    lost: Counter[int] = Counter()
    for group in groups:
        on_node = Counter(member.node for member in group.members)
        for event in all_events:
            smaller, larger = sorted((on_node.keys(), event.nodes), key=len)
            lost[sum(on_node[node] for node in smaller if node in larger)] += 1
    return tuple(lost[m] for m in range(largest, 0, -1))


def report(groups: Sequence[Group], level: str, level_events: Sequence[Event]) -> LevelReport:
    """All groups against the disjoint events of one level."""
    return LevelReport(
        level,
        tuple(standing(group, level_events, level) for group in groups),
        tuple(blasts(groups, level_events)),
        vector(groups, level_events),
    )


def survey(groups: Sequence[Group], events_by_level: Mapping[str, Sequence[Event]]) -> list[LevelReport]:
    """One report per level or named set of events, in the order given."""
    return [report(groups, level, level_events) for level, level_events in events_by_level.items()]


def breaking_sets(group: Group, all_events: Sequence[Event], most: int = 2) -> Iterator[tuple[Event, ...]]:
    """
    The minimal sets of at most so many events, of any levels, that break the group together; smallest first.

    One of size 1 is a single point. Costs a look at every combination: give `most` with care.
    """
    hitting = [event for event in all_events if any(member.node in event.nodes for member in group.members)]
    found: list[frozenset[int]] = []
    for size in range(1, most + 1):
        for chosen in itertools.combinations(range(len(hitting)), size):
            if any(smaller <= frozenset(chosen) for smaller in found):
                continue
            lost = frozenset().union(*(hitting[i].nodes for i in chosen))
            if group.survivors(lost) < group.need:
                found.append(frozenset(chosen))
                yield tuple(hitting[i] for i in chosen)
