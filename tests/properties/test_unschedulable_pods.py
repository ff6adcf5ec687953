"""Every pod that becomes schedulable is retried, and no other pod is, whatever changes in the cluster."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.model.labels import equals
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.model.targets import Target, TargetName
from bayplan.model.terms import HOSTNAME, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Workload
from bayplan.preempting import preemption
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.unschedulable_pods import UnschedulablePods
from properties.changing import ChangingCluster
from properties.changing_storage import ChangingStorage

SEEDS = st.integers(0, 2**32)


class WithoutPreemption:
    """Evaluates by one engine, and no pod preempts others."""

    def __init__(self, engine):
        self.engine = engine

    def fits(self, workload, _nominations):
        return schedule_pod.choose(workload, self.engine)[0] >= 0

    def is_outdated(self, _pending):
        return False

    def verdicts(self, workload):
        return filtering.run(workload, self.engine)

    def pod_helped_by_preemption(self, _equivalent, _nominations):
        return None


class RetriedPods:
    """A changing cluster with unschedulable pods, and the reference implementation of retries: try every pod."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.nominations, self.evaluator = Nominations(), WithoutPreemption(cluster.engine)
        self.unschedulable = UnschedulablePods(cluster.index, self.evaluator, self.nominations)
        self.unscheduled = {}

    def fits(self, workload):
        return self.evaluator.fits(workload, self.nominations)

    def add_all(self):
        for workload in self.cluster.pending:
            if workload.key not in self.unscheduled and not self.fits(workload):
                pending = self.unscheduled[workload.key] = PendingPod(None, workload)
                self.unschedulable.add(pending)

    def retry(self):
        """Call as often as needed; at times each call is limited to one class."""
        limit = self.cluster.chance.choice([1, 100])
        while True:
            before = self.unschedulable.n_evaluations
            for pending in self.unschedulable.pop_schedulable(
                lambda since=before: self.unschedulable.n_evaluations - since >= limit
            ):
                assert self.fits(pending.workload), "retried in vain"
                del self.unscheduled[pending.key]
            if not self.unschedulable.has_candidates:
                return


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_every_schedulable_pod_is_retried(semantics, seed):
    no_pod_is_missed(RetriedPods(ChangingCluster(seed, semantics, n_pending=8)))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_every_pod_whose_volumes_become_available_is_retried(seed):
    no_pod_is_missed(RetriedPods(ChangingStorage(seed, UPSTREAM, n_pending=8)))


class OfPriorities(ChangingCluster):
    """Pods of different priorities, each on one node, so that each can be evicted."""

    def _workload(self, written):
        return msgspec.structs.replace(super()._workload(written), priority=self.chance.choice([0, 0, 5, 10]))

    def _n_shares(self):
        return min(1, len(self.targets))


class PreemptingPods(RetriedPods):
    """A pod that fits after preemption is retried too. An index of its own shows that: dry runs are in the journal."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.evaluator.pod_helped_by_preemption = lambda equivalent, _nominations: next(
            (pending for pending in equivalent.values() if preempts(pending.workload, cluster.engine)), None
        )

    def fits(self, workload):
        fresh = Engine(self.cluster.fresh(), self.cluster.rules)
        return schedule_pod.choose(workload, fresh)[0] >= 0 or preempts(workload, fresh)


def preempts(workload, engine):
    return bool(preemption.preempt(workload, engine).target)


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_every_pod_for_which_preemption_becomes_possible_is_retried(semantics, seed):
    no_pod_is_missed(PreemptingPods(OfPriorities(seed, semantics, n_pending=6)))


def no_pod_is_missed(pods):
    for _ in range(40):
        pods.add_all()
        for _ in range(pods.cluster.chance.choice([1, 1, 2, 5])):
            pods.cluster.step()
        pods.retry()
        missed = [key for key, pending in pods.unscheduled.items() if pods.fits(pending.workload)]
        assert not missed


def test_pods_of_one_equivalence_class_are_retried_one_by_one():
    pods = RetriedPods(ChangingCluster(7, UPSTREAM, n_pending=8))
    cluster = pods.cluster
    for name in list(cluster.targets):
        cluster.index.remove_target(name)
    copies = [Workload(namespace="web", name=f"copy-{i}", labels={}, needs=Needs()) for i in range(3)]
    for copy in copies:
        pods.unschedulable.add(PendingPod(None, copy))
    cluster.targets.clear()
    before = pods.unschedulable.n_evaluations
    cluster.index.add_target(Target(name=TargetName("roomy"), labels={}, allocatable=(("pods", 10),)))
    retried = pods.unschedulable.pop_schedulable()
    assert len(retried) == 1
    assert pods.unschedulable.n_evaluations == before + 1
    assert pods.unschedulable.pop_schedulable() == []  # nothing has changed since
    pods.unschedulable.placed(retried[0].workload)
    assert len(pods.unschedulable.pop_schedulable()) == 1


def test_a_call_ends_when_its_time_is_over():
    """One call evaluates no more classes than it may, whatever their number, and later calls evaluate the rest."""
    pods = RetriedPods(ChangingCluster(7, UPSTREAM, n_pending=8))
    cluster = pods.cluster
    for i in range(50):
        of_its_class = Workload(namespace="web", name=f"class-{i}", labels={}, needs=Needs(), priority=i)
        pods.unschedulable.add(PendingPod(None, of_its_class))
    cluster.index.add_target(Target(name=TargetName("roomy"), labels={}, allocatable=(("pods", 100),)))
    calls, retried = 0, []
    while not calls or pods.unschedulable.has_candidates:
        before = pods.unschedulable.n_evaluations
        retried += pods.unschedulable.pop_schedulable(
            lambda before=before: pods.unschedulable.n_evaluations - before >= 3
        )
        assert pods.unschedulable.n_evaluations - before <= 3
        calls += 1
    assert len(retried) == len({pending.key for pending in retried}) == 50
    assert calls == 17


def test_the_sweep_evaluates_only_classes_without_a_queueing_hint():
    pods = RetriedPods(ChangingCluster(7, UPSTREAM, n_pending=8))
    cluster = pods.cluster
    for name in list(cluster.targets):
        cluster.index.remove_target(name)
    pods.unschedulable.add(PendingPod(None, Workload(namespace="web", name="early", labels={}, needs=Needs())))
    pods.unschedulable.pop_schedulable()
    pods.unschedulable.mark_all_for_sweep()
    cluster.index.add_target(Target(name=TargetName("roomy"), labels={}, allocatable=(("pods", 10),)))
    assert [pending.key for pending in pods.unschedulable.pop_schedulable()] == ["web/early"]
    assert pods.unschedulable.sweep() == []
    assert not pods.unschedulable.has_candidates


def test_what_an_evaluation_tries_on_the_index_gives_no_queueing_hint():
    """Preemption removes pods and adds them again, and both are in the journal."""
    pods = RetriedPods(ChangingCluster(7, UPSTREAM, n_pending=0, n_targets=0))
    index, unschedulable = pods.cluster.index, pods.unschedulable

    def tries_an_eviction(_equivalent, _nominations):
        with index.tentatively():
            index.remove("web/victim")

    pods.evaluator.pod_helped_by_preemption = tries_an_eviction
    index.add_target(Target(name=TargetName("one"), labels={HOSTNAME: "one"}, allocatable=(("pods", 10),)))
    index.add(Workload(namespace="web", name="victim", labels={"app": "db"}, needs=Needs()), "one")
    apart = AffinityTerms(anti_required=(PodTerm(equals({"app": "db"}), HOSTNAME),))
    waiting = Workload(namespace="web", name="waiting", labels={}, needs=Needs(affinity=apart))
    unschedulable.add(PendingPod(None, waiting))
    unschedulable.mark_all_for_retry()
    assert [evaluations(unschedulable.pop_schedulable, unschedulable) for _ in range(3)] == [1, 0, 0]
    unschedulable.mark_all_for_sweep()
    assert evaluations(unschedulable.sweep, unschedulable) == 1
    assert evaluations(unschedulable.pop_schedulable, unschedulable) == 0
    index.set_namespace("web", {"new": "label"})
    unschedulable.mark_all_for_sweep()
    assert evaluations(unschedulable.sweep, unschedulable) == 1
    assert evaluations(unschedulable.pop_schedulable, unschedulable) == 1, "a change before the sweep is read after it"


def evaluations(call, unschedulable):
    """How many classes a call evaluates in vain."""
    before = unschedulable.n_evaluations
    assert call() == []
    return unschedulable.n_evaluations - before
