"""The quick ways to choose a target, corrected after each placement, choose as an evaluation of all targets does."""

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


@pytest.fixture(scope="module", params=[0, 3, 10**9], ids=["ranked", "by domain, then ranked", "by domain"])
def _choices_by_domain(request):
    """How many workloads of a class are placed by domain before there is a ranking."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule_pod, "MAX_CHOICES_BY_DOMAIN", request.param)
        yield


@pytest.mark.usefixtures("_choices_by_domain")
@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_quick_choice_agrees_with_a_full_evaluation(semantics, seed):
    # With a limit of its own, the targets of a small cluster are told apart as those of a large one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bayplan.engine.domain_choice.MAX_PARTITIONS", 2 + seed % 20)
        agree(semantics, seed)


def agree(semantics, seed):
    cluster = ChangingCluster(seed, semantics, n_pending=3, n_targets=N_TARGETS, spanning=0.2 * (seed % 4 == 0))
    for _ in range(40):
        place(cluster, cluster.chance.choice(cluster.pending))
        if cluster.chance.random() < 0.1:
            cluster.step()
        if cluster.index.records and cluster.chance.random() < 0.05:
            with cluster.index.tentatively():
                cluster.index.remove(cluster.chance.choice(list(cluster.index.records)))
                place(cluster, cluster.chance.choice(cluster.pending))
