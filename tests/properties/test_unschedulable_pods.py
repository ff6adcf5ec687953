"""Nobody who would fit sleeps on, and nobody is woken in vain, whatever happens to the cluster."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.engine import filtering
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.model.targets import Target, TargetName
from bayplan.model.workloads import Needs, Workload
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.unschedulable_pods import UnschedulablePods
from properties.changing import ChangingCluster
from properties.changing_storage import ChangingStorage

SEEDS = st.integers(0, 2**32)


class Sleepers:
    """A changing cluster with pods that wait, and the plain way to find who fits: try everybody."""

    def __init__(self, cluster):
        self.cluster = cluster
        index, rules = self.cluster.index, self.cluster.rules
        self.waiting = UnschedulablePods(index, self.fits, lambda workload: filtering.run(rules, workload, index))
        self.asleep = {}

    def fits(self, workload):
        return schedule_pod.choose(workload, self.cluster.index, self.cluster.rules)[0] >= 0

    def park_all(self):
        for workload in self.cluster.asking:
            if workload.key not in self.asleep and not self.fits(workload):
                pending = self.asleep[workload.key] = PendingPod(None, workload, 0.0)
                self.waiting.add(pending)

    def wake(self):
        """Look as often as it takes; now and then each look is cut short after one kind."""
        patience = self.cluster.chance.choice([1, 100])
        while True:
            asked = self.waiting.asked
            for pending in self.waiting.wake(lambda since=asked: self.waiting.asked - since >= patience):
                assert self.fits(pending.workload), "woken in vain"
                del self.asleep[pending.key]
            if not self.waiting.has_candidates:
                return


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_every_sleeper_that_fits_is_woken(semantics, seed):
    nobody_is_overlooked(Sleepers(ChangingCluster(seed, semantics, n_kinds=8)))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_every_sleeper_that_gets_its_volumes_is_woken(seed):
    nobody_is_overlooked(Sleepers(ChangingStorage(seed, UPSTREAM, n_kinds=8)))


def nobody_is_overlooked(sleepers):
    for _ in range(40):
        sleepers.park_all()
        for _ in range(sleepers.cluster.chance.choice([1, 1, 2, 5])):
            sleepers.cluster.step()
        sleepers.wake()
        overlooked = [key for key, pending in sleepers.asleep.items() if sleepers.fits(pending.workload)]
        assert not overlooked


def test_pods_of_one_kind_are_woken_one_by_one():
    sleepers = Sleepers(ChangingCluster(7, UPSTREAM, n_kinds=8))
    cluster = sleepers.cluster
    for name in list(cluster.targets):
        cluster.index.remove_target(name)
    copies = [Workload(namespace="web", name=f"copy-{i}", labels={}, needs=Needs()) for i in range(3)]
    for copy in copies:
        sleepers.waiting.add(PendingPod(None, copy, 0.0))
    cluster.targets.clear()
    asked = sleepers.waiting.asked
    cluster.index.add_target(Target(name=TargetName("roomy"), labels={}, allocatable=(("pods", 10),)))
    woken = sleepers.waiting.wake()
    assert len(woken) == 1
    assert sleepers.waiting.asked == asked + 1
    assert sleepers.waiting.wake() == []  # nothing happened since
    sleepers.waiting.placed(woken[0].workload)
    assert len(sleepers.waiting.wake()) == 1


def test_looks_are_as_short_as_wanted():
    """However many kinds a change concerns, one look asks no more of them than it is allowed to, and none is forgotten."""
    sleepers = Sleepers(ChangingCluster(7, UPSTREAM, n_kinds=8))
    cluster = sleepers.cluster
    for i in range(50):
        of_its_kind = Workload(namespace="web", name=f"kind-{i}", labels={}, needs=Needs(), priority=i)
        sleepers.waiting.add(PendingPod(None, of_its_kind, 0.0))
    cluster.index.add_target(Target(name=TargetName("roomy"), labels={}, allocatable=(("pods", 100),)))
    looks, woken = 0, []
    while not looks or sleepers.waiting.has_candidates:
        before = sleepers.waiting.asked
        woken += sleepers.waiting.wake(lambda before=before: sleepers.waiting.asked - before >= 3)
        assert sleepers.waiting.asked - before <= 3
        looks += 1
    assert len(woken) == len({pending.key for pending in woken}) == 50
    assert looks == 17


def test_the_sweep_suspects_only_those_whom_nothing_has_happened_to():
    sleepers = Sleepers(ChangingCluster(7, UPSTREAM, n_kinds=8))
    cluster = sleepers.cluster
    for name in list(cluster.targets):
        cluster.index.remove_target(name)
    sleepers.waiting.add(PendingPod(None, Workload(namespace="web", name="early", labels={}, needs=Needs()), 0.0))
    sleepers.waiting.wake()
    sleepers.waiting.mark_all_for_sweep()
    cluster.index.add_target(Target(name=TargetName("roomy"), labels={}, allocatable=(("pods", 10),)))
    assert [pending.key for pending in sleepers.waiting.wake()] == ["web/early"]
    assert sleepers.waiting.sweep() == []
    assert not sleepers.waiting.has_candidates
