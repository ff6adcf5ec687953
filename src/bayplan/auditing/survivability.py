"""
What a failure takes with it: tolerance, single points and blast vector of groups of instances, all exact integers.

Counts and compares; what passes is decided elsewhere.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from bayplan.auditing.layout import COMPONENTS, ETCD, HOST, LEVELS, RACK, REGION, ZONE, Layout, Member
from bayplan.auditing.spread import Places

NODE = "node"  # the smallest level: every node is a domain of its own
# Facts of nodes that are as good as a label for a named set of failures.
FACTS = ("kernel", "os_image", "kubelet")
UNTOUCHED, DEGRADED, BELOW_NEED, DOWN = "untouched", "degraded", "below need", "down"


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
        Group(name, tuple(members), quorum=name == ETCD or name.startswith(f"{ETCD}-"))
        for name, members in sorted(members_by_component.items())
    ]


def stacked(nodes: Iterable[str], unhealthy: Iterable[str] = ()) -> list[Group]:
    """The four components of a stacked control plane: one of each on every node."""
    down = frozenset(unhealthy)
    members = [Member(node, node not in down) for node in nodes]
    return components(dict.fromkeys(COMPONENTS, members))


def events(level: str, domain_by_node: Mapping[str, str | None]) -> list[Event]:
    """One event per domain of a level, or per value of anything nodes share: a power feed, a kernel version."""
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


def standing(
    group: Group, level_events: Sequence[Event], level: str = "", within: Mapping[str, str] | None = None
) -> Standing:
    """
    The group against the disjoint events of one level.

    `within` gives nodes a larger domain. A domain lies in one larger domain only, so a member whose own is unknown can
    share one with members of the same larger domain alone.
    """
    domain_of = {node: event.domain for event in level_events for node in event.nodes}
    healthy = [member for member in group.members if member.healthy]
    counts = Counter(domain_of[member.node] for member in healthy if member.node in domain_of)
    unknown = [member.node for member in healthy if member.node not in domain_of]
    n, need = len(healthy), group.need
    return Standing(
        group.name,
        level or (level_events[0].level if level_events else ""),
        len(group.members),
        need,
        tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
        tolerance(_fullest(counts, unknown, domain_of, within or {}), n, need),
        tolerance([*counts.values(), *([1] * len(unknown))], n, need),
        tuple(domain for domain, count in sorted(counts.items()) if n - count < need),
        tuple(sorted(set(unknown))),
        group.stands,
    )


def _fullest(
    counts: Counter[str], unknown: Sequence[str], domain_of: Mapping[str, str], within: Mapping[str, str]
) -> list[int]:
    """
    The worst way to complete the counts: members of unknown domain join the fullest they can be in.

    It majorises every other way, and tolerance only falls in that order, so this end is exact.
    """
    larger: dict[str, set[str]] = {}
    for node, domain in domain_of.items():
        larger.setdefault(domain, set()).add(within.get(node, ""))
    # A domain seen in two larger ones makes the argument void there.
    void = set().union(*(places for places in larger.values() if len(places) > 1), {""})
    pools: dict[str, list[int]] = {}
    for domain, count in counts.items():
        place = min(larger[domain])
        pools.setdefault("" if place in void else place, []).append(count)
    joining = Counter("" if within.get(node, "") in void else within[node] for node in unknown)
    found: list[int] = []
    for place in (pools.keys() | joining.keys()) - {""}:
        here = sorted(pools.get(place, ()), reverse=True) or [0]
        found += [here[0] + joining[place], *here[1:]]
    found = sorted([*found, *pools.get("", ())], reverse=True) or [0]
    return [found[0] + joining[""], *found[1:]]


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


def report(
    groups: Sequence[Group], level: str, level_events: Sequence[Event], within: Mapping[str, str] | None = None
) -> LevelReport:
    """All groups against the disjoint events of one level; `within` as for `standing`."""
    return LevelReport(
        level,
        tuple(standing(group, level_events, level, within) for group in groups),
        tuple(blasts(groups, level_events)),
        vector(groups, level_events),
    )


def survey(layout: Layout, groups: Sequence[Group] | None = None, named: Sequence[str] = ()) -> list[LevelReport]:
    """
    One report for the nodes, each level of the layout, and each named set: a label key or one of `FACTS`.

    The groups are the control plane's components unless others are given. Levels without any domain are left out.
    """
    asked = components(layout.members) if groups is None else groups
    zones = {node: zone for node, zone in domains_at(layout, ZONE).items() if zone}
    regions = {node: region for node, region in domains_at(layout, REGION).items() if region}
    within = {HOST: zones, RACK: zones, ZONE: regions}
    found = [report(asked, NODE, level_events(layout, NODE))]
    for level in (*layout.levels, *named):
        happening = level_events(layout, level)
        if happening or (zones and level == HOST):
            found.append(report(asked, level, happening, within.get(level)))
    return found


def level_events(layout: Layout, level: str) -> list[Event]:
    """The failures of a level, of a label key, or of one of `FACTS`, over all nodes of the layout."""
    nodes = layout.by_name().values()
    if level == NODE:
        return events(NODE, {node.name: node.name for node in nodes})
    if level in FACTS:
        return events(level, {node.name: getattr(node, level) for node in nodes})
    if level in layout.levels:
        return events(level, domains_at(layout, level))
    return label_events(level, {node.name: node.labels for node in nodes})


def domains_at(layout: Layout, level: str) -> dict[str, str | None]:
    """Every node's domain, None where unknown; the same name under two parents is two domains."""
    places, position = Places(layout), LEVELS.index(level)
    return {name: places.of(name)[position] for name in layout.by_name()}


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
