"""Pods may request any number of resources, offered or not: all of them are judged."""

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules.resources_fit import ResourcesFit


def name(i):
    return f"example.com/r{i:03}"


def cluster(**short):
    """One node that offers 100 resources, two of each except those in `short`."""
    index = PlacementIndex()
    offered = [(name(i), short.get(f"r{i}", 2)) for i in range(100)]
    index.add_target(Target(name="n0", labels={}, allocatable=(("pods", 10), *offered)))
    return index


def judged(index, n, amount=1):
    rule = ResourcesFit()
    requests = Requests(tuple((name(i), amount) for i in range(n)))
    state = rule.prepare(requests, index)
    slot = index.slots.by_name["n0"]
    code = int(rule.reject(state, index, np.array([slot]))[0])
    assert rule.evaluate_one(state, index, slot)[0] == code
    workload = Workload(namespace="t", name="p", labels={}, needs=Needs(requests=requests))
    short = [failure.term for failure in rule.evidence(state, workload, slot, index)]
    return [reason.text for reason in rule.reasons(state, code)], short


def test_a_hundred_resources_that_are_there_fit():
    assert judged(cluster(), 100) == ([], [])


def test_one_that_is_short_is_found_wherever_it_is():
    for i in (0, 30, 57):
        assert judged(cluster(**{f"r{i}": 0}), 100) == ([f"Insufficient {name(i)}"], [name(i)])
    reasons, short = judged(cluster(r80=0), 100)
    assert f"Insufficient {name(80)}" in reasons  # with the others that share its bit
    assert short == [name(80)], "evidence names it alone"


def test_more_than_anybody_offers_are_all_named():
    reasons, short = judged(cluster(), 1500)
    assert {f"Insufficient {name(i)}" for i in range(100, 1500)} <= set(reasons)
    assert short == [name(i) for i in range(100, 1500)]
