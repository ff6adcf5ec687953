"""The seed's rules for who has to go, one situation a line."""

import itertools
import random

import pytest

from bayplan.enforcing import victims
from bayplan.enforcing.victims import Conflict, Precedence


def gone(conflicts, **precedence):
    """Names of those who go; conflicts as `owner: peers` or `owner: peers/limit`, standing as priority and start."""
    parsed = []
    for text in conflicts:
        owner, _, rest = text.partition(": ")
        peers, _, limit = rest.partition("/")
        parsed.append(Conflict(owner, frozenset(peers.split()), int(limit or 0)))
    named = {name: Precedence(*(value if isinstance(value, tuple) else (value,))) for name, value in precedence.items()}
    choice = victims.choose(parsed, named)
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
        (["o: p q"], {"o": 5, "p": 10, "q": 1}, "o"),  # p takes o away, and so q is in nobody's way
        (["a: b", "b: a"], {"a": (0, "2026-01-01"), "b": (0, "2026-01-02")}, "b"),  # both own: the younger
        (["a: b", "b: a"], {"a": (0, "2026-01-01", False), "b": (0, "2026-01-02", True)}, "a"),  # unless protected
        (["a: b c", "b: a c", "c: a b"], {"a": 0, "b": 0, "c": 0}, "b c"),
        (["a: b", "b: a", "b: c", "c: b"], {"a": 0, "b": 0, "c": 0}, "b"),  # the fewest: one in the middle
        (["a: b", "b: c", "c: a"], {"a": 0, "b": 0, "c": 0}, "b c"),  # a round: somebody is wronged whatever is done
        (["o: p q r/1"], {"o": 5, "p": 0, "q": 1, "r": 2}, "p q"),  # down to the limit, the lowest first
        (["a: b c/1", "b: a c/1", "c: a b/1"], {"a": 0, "b": 0, "c": 0}, "c"),
        (["o: p", "x: y"], {"o": 0, "p": 0, "x": 1, "y": 0}, "o y"),  # one has nothing to do with the other
    ],
)
def test_who_goes(conflicts, precedence, expected):
    assert gone(conflicts, **precedence) == expected


def test_twenty_conflicts_are_solved_exactly():
    """Twenty who keep off the one before them, in a row: every second one goes, and no fewer will do."""
    names = [f"p{i:02}" for i in range(21)]
    pairs = list(itertools.pairwise(names))
    conflicts = [f"{a}: {b}" for a, b in pairs] + [f"{b}: {a}" for a, b in pairs]
    assert len(gone(conflicts, **dict.fromkeys(names, 0)).split()) == 10


def test_many_alike_in_one_place_are_no_trouble():
    names = [f"p{i:02}" for i in range(20)]
    conflicts = [f"{name}: {' '.join(other for other in names if other != name)}/9" for name in names]
    assert gone(conflicts, **dict.fromkeys(names, 0)) == " ".join(names[10:])


def in_a_row(_chance, names):
    return [Conflict(a, frozenset({b})) for a, b in itertools.pairwise(names)]


def linked_triangles(chance, names):
    """Many ways that are equally good, for each triangle."""
    found = []
    for one, two, three in zip(names[::3], names[1::3], names[2::3], strict=True):
        found += [Conflict(one, frozenset({two})), Conflict(two, frozenset({three})), Conflict(three, frozenset({one}))]
        found += [Conflict(three, frozenset({chance.choice(names[:3])}))]
    return [conflict for conflict in found if conflict.owner not in conflict.peers]


def a_tangle(chance, names):
    return [Conflict(name, frozenset(chance.sample(names, 4)) - {name}) for name in names[:20]]


def half_of_others(chance, names):
    """Each can stand about half of some others, and each others."""
    peers = [frozenset(chance.sample(names, chance.randint(8, 14))) - {name} for name in names[:20]]
    return [Conflict(name, these, len(these) // 2) for name, these in zip(names, peers, strict=False)]


def many_bystanders(chance, names):
    all_pods = [*names, *(f"q{i:02}" for i in range(60))]
    return [Conflict(name, frozenset(chance.sample(all_pods, 12)) - {name}, chance.randrange(3)) for name in names[:20]]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_priorities", [1, 3])
@pytest.mark.parametrize("component", [in_a_row, linked_triangles, a_tangle, half_of_others, many_bystanders])
def test_no_component_of_twenty_conflicts_takes_long(component, n_priorities, seed):
    """Steps are counted, so that this holds on any machine."""
    chance = random.Random(seed)
    conflicts = component(chance, [f"p{i:02}" for i in range(21)])
    involved = sorted({key for conflict in conflicts for key in (conflict.owner, *conflict.peers)})
    precedence = {
        name: Precedence(chance.randrange(n_priorities), f"2026-01-{chance.randint(10, 30)}") for name in involved
    }
    assert victims.choose(conflicts, precedence).exact


def test_a_knot_that_takes_too_many_steps_is_solved_greedily(monkeypatch):
    conflicts = half_of_others(random.Random(0), [f"p{i:02}" for i in range(21)])
    precedence = {name: Precedence() for conflict in conflicts for name in (conflict.owner, *conflict.peers)}
    best = victims.choose(conflicts, precedence)
    monkeypatch.setattr(victims, "MAX_SEARCH_STEPS", 100)
    choice = victims.choose(conflicts, precedence)
    assert not choice.exact
    assert len(choice.victims) >= len(best.victims)
    assert all(c.owner in choice.victims or len(c.peers - choice.victims) <= c.limit for c in conflicts)


def test_a_storm_is_solved_greedily():
    names = [f"p{i:03}" for i in range(300)]
    precedence = {name: Precedence(i % 7) for i, name in enumerate(names)}
    all_pods = frozenset(names)
    choice = victims.choose([Conflict(name, all_pods - {name}) for name in names], precedence)
    assert not choice.exact
    assert all_pods - choice.victims == {"p006"}  # the highest priority; of those, by name
