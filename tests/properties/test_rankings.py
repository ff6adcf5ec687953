"""The ranking of an equivalence class, corrected after each placement, chooses as an evaluation of all targets does."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.model.semantics import DESIGN, UPSTREAM
from properties.changing import ChangingCluster

N_TARGETS = 14  # enough for several targets in each zone, so that rules evaluate domains


def place(cluster, workload):
    """Place one more copy of the workload by the ranking; the full evaluation must agree."""
    slot, total = schedule_pod.choose(workload, cluster.engine)
    decision = schedule_pod.schedule(workload, cluster.engine)
    assert slot == decision.slot
    if slot >= 0:
        assert total == decision.ranking.totals[slot]
        copy = msgspec.structs.replace(workload, name=cluster.next_name(workload.name))
        cluster.index.add(copy, cluster.index.slots.at(slot).name)


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_corrected_ranking_agrees_with_a_full_evaluation(semantics, seed):
    cluster = ChangingCluster(seed, semantics, n_pending=3, n_targets=N_TARGETS, spanning=0.2 * (seed % 4 == 0))
    for _ in range(40):
        place(cluster, cluster.chance.choice(cluster.pending))
        if cluster.chance.random() < 0.1:
            cluster.step()
        if cluster.index.records and cluster.chance.random() < 0.05:
            with cluster.index.tentatively():
                cluster.index.remove(cluster.chance.choice(list(cluster.index.records)))
                place(cluster, cluster.chance.choice(cluster.pending))
