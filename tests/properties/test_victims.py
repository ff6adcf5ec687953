"""The choice of victims is the best of all, compared with trying every choice."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing import victims
from bayplan.enforcing.victims import Conflict, Precedence
from reference import victims as reference_implementation

SEEDS = st.integers(0, 2**32)


def component(chance, n_pods, n_conflicts, alike=False):
    """Conflicts among pods; `alike` ones have few differences, so that there are many equal choices."""
    pods = [f"default/p{i}" for i in range(n_pods)]
    precedence = {
        pod: Precedence(
            chance.choice((0, 0, 0, 5) if alike else (0, 1, 5, 5, 10)),
            f"2026-01-0{chance.randint(1, 3)}",
            chance.random() < 0.15,
        )
        for pod in pods
    }
    conflicts = []
    for _ in range(n_conflicts):
        owner, *peers = chance.sample(pods, chance.randint(2, min(4, n_pods)))
        conflicts.append(Conflict(owner, frozenset(peers), chance.choice((0, 0, 0, min(1, len(peers) - 1)))))
    if chance.random() < 0.3:  # some pods that all conflict with each other
        group = chance.sample(pods, chance.randint(2, n_pods))
        limit = chance.randrange(len(group) - 1)
        conflicts += [Conflict(owner, frozenset(group) - {owner}, limit) for owner in group]
    return conflicts, precedence


@settings(max_examples=300, deadline=None)
@given(seed=SEEDS)
def test_no_choice_is_better(seed):
    chance = random.Random(seed)
    conflicts, precedence = component(chance, chance.randint(2, 8), chance.randint(1, 8), alike=chance.random() < 0.5)
    choice = victims.choose_victims(conflicts, precedence)
    assert choice.exact
    assert choice.victims == reference_implementation.choose(conflicts, precedence)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_no_choice_is_better_with_limits(seed):
    """Limits of all sizes, and loosely connected parts, which exercise bounds and splitting."""
    chance = random.Random(seed)
    pods = [f"default/p{i}" for i in range(10)]
    precedence = {pod: Precedence(chance.choice((0, 0, 5)), f"2026-01-0{chance.randint(1, 3)}") for pod in pods}
    conflicts = []
    for side in (pods[:5], pods[5:], pods[4:6]):
        for owner in chance.sample(side, chance.randint(1, len(side))):
            peers = frozenset(chance.sample(side, chance.randint(1, len(side)))) - {owner}
            conflicts += [Conflict(owner, peers, chance.randrange(len(peers)))] if peers else []
    choice = victims.choose_victims(conflicts, precedence)
    assert choice.exact
    assert choice.victims == reference_implementation.choose(conflicts, precedence)


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_a_greedy_choice_evicts_no_pod_that_could_remain(seed):
    chance = random.Random(seed)
    conflicts, precedence = component(chance, 60, 120)
    choice = victims.choose_victims(conflicts, precedence)
    assert not choice.exact
    assert reference_implementation.leaves_no_conflict(conflicts, choice.victims)
    for victim in choice.victims:
        assert not reference_implementation.leaves_no_conflict(conflicts, choice.victims - {victim})


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_a_pod_without_a_conflict_is_not_evicted(seed):
    chance = random.Random(seed)
    conflicts, precedence = component(chance, 12, 4)
    involved = {key for conflict in conflicts for key in (conflict.owner, *conflict.peers)}
    assert victims.choose_victims(conflicts, precedence).victims <= involved
