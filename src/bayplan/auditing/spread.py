"""
The distribution of a group's members over the domains of a level, as an interval where labels are missing.

A machine is in one rack, a rack in one zone, and so on, so the known larger domains limit which members an unlabelled
member may share a domain with. Every rule judged here depends only on the number of members in the fullest domain and
gets no better as that grows, so the two ends of the interval decide it exactly. Knows nothing of checks and weights.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing.layout import CLOUD, DECLARED, HOST, INFERRED, LEVELS, OBSERVED, AuditNode, Layout

Location = tuple[str | None, ...]  # the domain at each level, or at each level above the one in question
_WEAKEST_FIRST = (INFERRED, DECLARED, OBSERVED)


class DomainSpread(msgspec.Struct, frozen=True, kw_only=True):
    """
    `n` members: the nodes in each known domain, and those whose domain is unknown.

    The fullest domain holds `lo` to `hi` members, and there are `fewest` to `most` domains. `blocks` are the sizes of
    the sets of unlabelled members that certainly share one domain. A cloud that is only assumed may be several.
    """

    level: str
    n: int
    nodes_by_domain: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...]
    lo: int
    hi: int
    fewest: int
    most: int
    evidence: str
    blocks: tuple[int, ...] = ()

    @property
    def counts(self) -> list[int]:
        """Members per known domain, the fullest first."""
        return sorted(map(len, self.nodes_by_domain.values()), reverse=True)

    def judge(self, rule: Callable[[int, int], bool]) -> bool | None:
        """Whether a rule on (members, fullest domain) holds; None if that depends on missing labels."""
        worst, best = rule(self.n, self.hi), rule(self.n, self.lo)
        return worst if worst == best else None


def separate(n: int, fullest: int) -> bool:
    """Whether the members are in at least two domains."""
    return fullest < n


def half(n: int, fullest: int) -> bool:
    """Whether no domain holds more than half, rounded up."""
    return n >= 2 and fullest <= (n + 1) // 2


def quorum(n: int, fullest: int) -> bool:
    """Whether a majority survives the loss of any one domain."""
    return fullest <= (n - 1) // 2


class Locations:
    """
    Every node's domains as ids. Equal names in different parents are different ids.

    Unknown larger domains are completed from other nodes of the same smaller domain.
    """

    def __init__(self, layout: Layout) -> None:
        nodes = (*layout.nodes, *layout.external)
        self._ids = {node.name: [node.at(level) or None for level in LEVELS] for node in nodes}
        self._merged: dict[tuple[int, str], str] = {}
        for index in range(len(LEVELS) - 2, 0, -1):
            self._qualify(index)
        for index in range(len(LEVELS) - 1):
            self._complete(index)
        self._pools = [
            {self._find(level, value) for merged, value in self._merged if merged == level}
            for level in range(len(LEVELS))
        ]

    def location_of(self, name: str) -> Location:
        """The node's domain at every level."""
        found = self._ids[name]
        return tuple(None if value is None else self._find(index, value) for index, value in enumerate(found))

    def contested(self, level: int, value: str) -> bool:
        """Whether a smaller domain is in this one and in another at once, so that its name proves nothing."""
        return value in self._pools[level]

    def _qualify(self, index: int) -> None:
        """Make a name under several parents as many domains, and none where the parent is unknown."""
        parents: dict[str, set[str]] = {}
        for ids in self._ids.values():
            here, above = ids[index], ids[index + 1]
            if here is not None and above is not None:
                parents.setdefault(here, set()).add(above)
        for ids in self._ids.values():
            here, above = ids[index], ids[index + 1]
            if here is not None and len(parents.get(here, ())) > 1:
                ids[index] = None if above is None else f"{above}/{here}"

    def _complete(self, index: int) -> None:
        """Copy the larger domains of one node to all nodes of its domain; contradictory ones are merged into one."""
        above = range(index + 1, len(LEVELS))
        known_by_domain: dict[str, list[str | None]] = {}
        for ids in self._ids.values():
            here = ids[index]
            if here is None:
                continue
            known = known_by_domain.setdefault(here, [None] * len(LEVELS))
            for level in above:
                value, before = ids[level], known[level]
                if value is not None and before is not None and value != before:
                    self._merge(level, value, before)
                known[level] = before if before is not None else value
        for ids in self._ids.values():
            here = ids[index]
            if here is not None:
                for level in above:
                    ids[level] = ids[level] if ids[level] is not None else known_by_domain[here][level]

    def _find(self, level: int, value: str) -> str:
        while (level, value) in self._merged:
            value = self._merged[level, value]
        return value

    def _merge(self, level: int, one: str, other: str) -> None:
        one, other = sorted((self._find(level, one), self._find(level, other)))
        if one != other:
            self._merged[level, other] = one


def spread_over_domains(
    layout: Layout, members: Sequence[AuditNode], level: str = HOST, locations: Locations | None = None
) -> DomainSpread:
    """The distribution of members over the level's domains; a node is listed once for each member on it."""
    locations = locations or Locations(layout)
    index = LEVELS.index(level)
    found = [(node.name, locations.location_of(node.name)) for node in members]
    nodes_by_domain: dict[str, list[str]] = {}
    location_by_domain: dict[str, Location] = {}
    unknown = []
    for node, (name, location) in zip(members, found, strict=True):
        domain = location[index]
        if domain is None or locations.contested(index, domain):
            unknown.append((name, location, node.together.get(level)))
        else:
            nodes_by_domain.setdefault(domain, []).append(name)
            location_by_domain[domain] = location[index + 1 :]
    blocks = _blocks([(location, (name, known, *location[:index])) for name, location, known in unknown], index)
    sizes = {domain: len(names) for domain, names in nodes_by_domain.items()}
    hi = _fullest(blocks, [(location_by_domain[domain], size) for domain, size in sizes.items()])
    fewest = _fewest(blocks, list(location_by_domain.values()))
    parts = {domain: _certain_parts(domain, members, found, index) for domain in sizes} if level == CLOUD else {}
    together = [max(parts[domain], default=0) if parts.get(domain) else size for domain, size in sizes.items()]
    return DomainSpread(
        level=level,
        n=len(found),
        nodes_by_domain={domain: tuple(names) for domain, names in sorted(nodes_by_domain.items())},
        unknown=tuple(name for name, _, _ in unknown),
        lo=max([*together, *(size for _, size in blocks)], default=0),
        hi=hi,
        fewest=min(len(found), 1) if hi == len(found) else max(2, fewest),
        most=sum(max(len(parts.get(domain, ())), 1) for domain in sizes) + len(blocks),
        evidence=_evidence(members, level),
        blocks=tuple(size for _, size in blocks),
    )


def _certain_parts(
    cloud: str, members: Sequence[AuditNode], found: Sequence[tuple[str, Location]], index: int
) -> list[int]:
    """
    How many members of an assumed cloud are certainly in one cloud, as they share a smaller domain; empty if it is one.

    Nodes of one region are in one cloud, and so are those of one zone or machine.
    """
    here = [(node, name, place) for node, (name, place) in zip(members, found, strict=True) if place[index] == cloud]
    if not any(node.cloud_assumed for node, _, _ in here):
        return []
    known = (next((domain for domain in reversed(place[:index]) if domain), name) for _, name, place in here)
    return list(Counter(known).values())


def _evidence(members: Iterable[AuditNode], level: str) -> str:
    """The weakest evidence among the members."""
    found = {node.evidence.get(level, INFERRED) for node in members}
    return min(found, key=_WEAKEST_FIRST.index, default=INFERRED)


def _blocks(unknown: Sequence[tuple[Location, Location]], index: int) -> list[tuple[Location, int]]:
    """
    Unlabelled members that certainly share a domain: location and size.

    Each is given by its location and by what it shares with others: the node, an unnamed domain, the smaller domains.
    """
    group = list(range(len(unknown)))

    def root(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    first: dict[tuple[int, str], int] = {}
    for i, (_, shared) in enumerate(unknown):
        for kind, value in enumerate(shared):
            if value is not None:
                group[root(i)] = root(first.setdefault((kind, value), i))
    found: dict[int, tuple[Location, int]] = {}
    for i, (location, _) in enumerate(unknown):
        above = location[index + 1 :]
        before, size = found.get(root(i), (above, 0))
        found[root(i)] = (tuple(a if a is not None else b for a, b in zip(before, above, strict=True)), size + 1)
    return list(found.values())


def _compatible(one: Location, other: Location) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def _fullest(blocks: Sequence[tuple[Location, int]], domains: Iterable[tuple[Location, int]]) -> int:
    """The most members that one domain can hold, whatever the missing labels are."""
    weights: Counter[Location] = Counter()
    for location, size in blocks:
        weights[location] += size
    largest: dict[Location, int] = {}
    for location, size in domains:
        largest[location] = max(size, largest.get(location, 0))
    hi = _joinable(dict(weights))
    for domain, size in largest.items():
        hi = max(
            hi, size + _joinable({location: w for location, w in weights.items() if _compatible(domain, location)})
        )
    return hi


def _joinable(weights: Mapping[Location, int], level: int = 0) -> int:
    """The heaviest set of locations that one domain can be in: at every level, it has one parent."""
    if not weights or level == len(next(iter(weights))):
        return sum(weights.values())
    options = {location[level] for location in weights} - {None}
    if not options:
        return _joinable(weights, level + 1)
    return max(
        _joinable({location: w for location, w in weights.items() if location[level] in (None, option)}, level + 1)
        for option in options
    )


def _fewest(blocks: Iterable[tuple[Location, int]], domains: Sequence[Location]) -> int:
    """The fewest possible domains: the known ones, and one for each location that none of them can be in."""
    free = Counter(domains)
    taken: list[Location] = []
    n_new = 0
    for location in sorted({location for location, _ in blocks}, key=lambda location: location.count(None)):
        if any(_compatible(location, other) for other in taken) or any(_within(domain, location) for domain in free):
            continue
        # A domain with unknown parents may be at this location, but then at no other.
        match = next((domain for domain, n in free.items() if n and _compatible(domain, location)), None)
        if match is None:
            n_new += 1
        else:
            free[match] -= 1
        taken.append(location)
    return len(domains) + n_new


def _within(domain: Location, location: Location) -> bool:
    """Whether the domain is certainly at the location."""
    return all(required is None or have == required for have, required in zip(domain, location, strict=True))
