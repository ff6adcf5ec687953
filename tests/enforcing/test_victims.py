"""The rules for choosing eviction victims, one situation a line."""

import itertools
import random

import pytest

from bayplan.enforcing import victims
from bayplan.enforcing.victims import Conflict, Precedence


def evicted(conflicts, **precedence):
    """The victims; conflicts as `owner: peers` or `owner: peers/limit`, precedence as priority and start."""
    parsed = []
    for text in conflicts:
        owner, _, rest = text.partition(": ")
        peers, _, limit = rest.partition("/")
        parsed.append(Conflict(owner, frozenset(peers.split()), int(limit or 0)))
    named = {name: Precedence(*(value if isinstance(value, tuple) else (value,))) for name, value in precedence.items()}
    choice = victims.choose_victims(parsed, named)
    assert choice.exact
    return " ".join(sorted(choice.victims))


@pytest.mark.parametrize(
    "conflicts, precedence, expected",
    [
        (["o: p"], {"o": 0, "p": 0}, "o"),  # at equal priority the owner of the rule
        (["o: p"], {"o": 5, "p": 0}, "p"),
        (["o: p"], {"o": 0, "p": 5}, "o"),
        (["o: p q r"], {"o": 0, "p": 0, "q": 0, "r": 0}, "o"),
        (["o: p q r"], {"o": 5, "p": 0, "q": 0, "r": 0}, "p q r"),  # priority before number
        (["a: p", "b: p"], {"a": 0, "b": 0, "p": 0}, "a b"),  # owners before number
        (["o: p q"], {"o": 5, "p": 10, "q": 1}, "o"),  # p evicts o, and then q conflicts with no pod
        (["a: b", "b: a"], {"a": (0, "2026-01-01"), "b": (0, "2026-01-02")}, "b"),  # both own: the younger
        (["a: b", "b: a"], {"a": (0, "2026-01-01", False), "b": (0, "2026-01-02", True)}, "a"),  # unless it is spared
        (["a: b c", "b: a c", "c: a b"], {"a": 0, "b": 0, "c": 0}, "b c"),
        (["a: b", "b: a", "b: c", "c: b"], {"a": 0, "b": 0, "c": 0}, "b"),  # the fewest: the one in the middle
        (
            ["a: b", "b: c", "c: a"],
            {"a": 0, "b": 0, "c": 0},
            "b c",
        ),  # a cycle: one eviction is unjustified whatever is chosen
        (["o: p q r/1"], {"o": 5, "p": 0, "q": 1, "r": 2}, "p q"),  # down to the limit, the lowest first
        (["a: b c/1", "b: a c/1", "c: a b/1"], {"a": 0, "b": 0, "c": 0}, "c"),
        (["o: p", "x: y"], {"o": 0, "p": 0, "x": 1, "y": 0}, "o y"),  # independent conflicts
    ],
)
def test_the_victims_of_a_conflict(conflicts, precedence, expected):
    assert evicted(conflicts, **precedence) == expected


def test_twenty_conflicts_are_solved_exactly():
    """A chain in which each pod conflicts with the previous one: every second one is evicted, and no fewer suffice."""
    names = [f"p{i:02}" for i in range(21)]
    pairs = list(itertools.pairwise(names))
    conflicts = [f"{a}: {b}" for a, b in pairs] + [f"{b}: {a}" for a, b in pairs]
    assert len(evicted(conflicts, **dict.fromkeys(names, 0)).split()) == 10


def test_many_interchangeable_pods_are_solved_exactly():
    names = [f"p{i:02}" for i in range(20)]
    conflicts = [f"{name}: {' '.join(other for other in names if other != name)}/9" for name in names]
    assert evicted(conflicts, **dict.fromkeys(names, 0)) == " ".join(names[10:])


def chain(_chance, names):
    return [Conflict(a, frozenset({b})) for a, b in itertools.pairwise(names)]


def linked_triangles(chance, names):
    """Each triangle has many equally good choices."""
    found = []
    for one, two, three in zip(names[::3], names[1::3], names[2::3], strict=True):
        found += [Conflict(one, frozenset({two})), Conflict(two, frozenset({three})), Conflict(three, frozenset({one}))]
        found += [Conflict(three, frozenset({chance.choice(names[:3])}))]
    return [conflict for conflict in found if conflict.owner not in conflict.peers]


def random_conflicts(chance, names):
    return [Conflict(name, frozenset(chance.sample(names, 4)) - {name}) for name in names[:20]]


def half_of_peers(chance, names):
    """Each pod tolerates about half of its own peers."""
    peers = [frozenset(chance.sample(names, chance.randint(8, 14))) - {name} for name in names[:20]]
    return [Conflict(name, these, len(these) // 2) for name, these in zip(names, peers, strict=False)]


def many_peers(chance, names):
    all_pods = [*names, *(f"q{i:02}" for i in range(60))]
    return [Conflict(name, frozenset(chance.sample(all_pods, 12)) - {name}, chance.randrange(3)) for name in names[:20]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_priorities", [1, 3])
@pytest.mark.parametrize("component", [chain, linked_triangles, random_conflicts, half_of_peers, many_peers])
def test_no_component_of_twenty_conflicts_takes_long(component, n_priorities, seed):
    """Steps are counted rather than time, so this holds on any machine."""
    chance = random.Random(seed)
    conflicts = component(chance, [f"p{i:02}" for i in range(21)])
    involved = sorted({key for conflict in conflicts for key in (conflict.owner, *conflict.peers)})
    precedence = {
        name: Precedence(chance.randrange(n_priorities), f"2026-01-{chance.randint(10, 30)}") for name in involved
    }
    assert victims.choose_victims(conflicts, precedence).exact


def test_a_component_that_takes_too_many_steps_is_solved_greedily(monkeypatch):
    conflicts = half_of_peers(random.Random(0), [f"p{i:02}" for i in range(21)])
    precedence = {name: Precedence() for conflict in conflicts for name in (conflict.owner, *conflict.peers)}
    best = victims.choose_victims(conflicts, precedence)
    monkeypatch.setattr(victims, "MAX_SEARCH_STEPS", 100)
    choice = victims.choose_victims(conflicts, precedence)
    assert not choice.exact
    assert len(choice.victims) >= len(best.victims)
    assert all(c.owner in choice.victims or len(c.peers - choice.victims) <= c.limit for c in conflicts)


def test_a_large_component_is_solved_greedily():
    names = [f"p{i:03}" for i in range(300)]
    precedence = {name: Precedence(i % 7) for i, name in enumerate(names)}
    all_pods = frozenset(names)
    choice = victims.choose_victims([Conflict(name, all_pods - {name}) for name in names], precedence)
    assert not choice.exact
    assert all_pods - choice.victims == {"p006"}  # the highest priority; of those, by name
