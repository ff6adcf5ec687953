"""The best key of each partition is the one a plain maximum finds, whenever it is asked for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.node_partitions import INFEASIBLE, NodeKeys, NodePartitions
from bayplan.rules import profiles
from bayplan.rules.rule import Rule

CAPACITY = 9
# A few totals, so that targets often become the best of their partition, are no longer, and become infeasible.
TOTALS = st.one_of(st.just(None), st.integers(0, 3))


def key_of(slot, total):
    return INFEASIBLE if total is None else (total << 24) - slot


@given(
    domains=st.lists(st.integers(0, 3), min_size=CAPACITY, max_size=CAPACITY),
    totals=st.lists(TOTALS, min_size=CAPACITY, max_size=CAPACITY),
    changes=st.lists(st.tuples(st.integers(0, CAPACITY - 1), TOTALS, st.integers(0, 3)), max_size=40),
)
def test_the_best_of_a_partition_is_known_once_it_is_settled(domains, totals, changes):
    order_keys = np.array([key_of(slot, total) for slot, total in enumerate(totals)], np.int64)
    partitions = NodePartitions([np.array(domains)], CAPACITY)
    keys = NodeKeys(order_keys, (), partitions)
    for slot, total, asked in changes:
        order_keys[slot] = key_of(slot, total)
        keys.correct(slot)
        for partition in range(partitions.n):
            slots = [one for one in range(CAPACITY) if partitions.at(one)[0] == partition]
            highest = max(int(order_keys[one]) for one in slots)
            # Until then it may be too high, but never says that nothing is feasible, or that something is.
            assert keys.best_at[partition] >= highest
            assert (keys.best_at[partition] == INFEASIBLE) == (highest == INFEASIBLE)
            if partition == asked:
                excess = keys.best_at[partition] - highest
                assert keys.settle(partition) == excess
                assert keys.best_at[partition] == highest
                if highest != INFEASIBLE:
                    assert order_keys[keys.best_slot(partition)] == highest


def test_rules_that_read_the_template_alone_evaluate_single_targets_if_they_follow_requests():
    for rule in profiles.pod_rules():
        if rule.follows_requests:
            assert type(rule).evaluate_one is not Rule.evaluate_one, rule.name
            assert type(rule).touched is Rule.touched, rule.name
        if rule.reads_template_only:
            assert not rule.prepared_for_targets, rule.name
            assert not rule.prepared_for_owners, rule.name
