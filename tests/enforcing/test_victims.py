"""The seed's rules for who has to go, one situation a line."""

import itertools

import pytest

from bayplan.enforcing import victims
from bayplan.enforcing.victims import Conflict, Standing


def gone(conflicts, **standing):
    """Names of those who go; conflicts as `owner: peers` or `owner: peers/limit`, standing as priority and start."""
    parsed = []
    for text in conflicts:
        owner, _, rest = text.partition(": ")
        peers, _, limit = rest.partition("/")
        parsed.append(Conflict(owner, frozenset(peers.split()), int(limit or 0)))
    named = {name: Standing(*(value if isinstance(value, tuple) else (value,))) for name, value in standing.items()}
    choice = victims.choose(parsed, named)
    assert choice.exact
    return " ".join(sorted(choice.victims))


@pytest.mark.parametrize(
    "conflicts, standing, expected",
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
def test_who_goes(conflicts, standing, expected):
    assert gone(conflicts, **standing) == expected


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


def test_a_storm_is_solved_greedily():
    names = [f"p{i:03}" for i in range(300)]
    standing = {name: Standing(i % 7) for i, name in enumerate(names)}
    everybody = frozenset(names)
    choice = victims.choose([Conflict(name, everybody - {name}) for name in names], standing)
    assert not choice.exact
    assert everybody - choice.victims == {"p006"}  # the highest priority; of those, by name
