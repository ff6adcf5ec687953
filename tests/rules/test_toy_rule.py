"""A rule is one class: added to a table, it filters, scores, explains, proposes, requeues and preempts."""

from types import SimpleNamespace

import numpy as np
import pytest

from bayplan import schedule_pod
from bayplan.cli import reason_pages
from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import explanation, fit_error
from bayplan.indexing.journal import ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL
from bayplan.model.reasons import DocumentedReason, Reason, StatusCode
from bayplan.model.targets import Target, TargetName
from bayplan.model.volumes import Volume
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.preempting import dry_run, preemption
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.unschedulable_pods import UnschedulablePods
from bayplan.rules import profiles, remedies
from bayplan.rules.evictions import CapacityConstraint, EvictionEffect
from bayplan.rules.rule import Failure, LiftedBy, PartRule, SharedDomains

LICENCE, RACK = "example.com/licence", "rack"


def needs_licence(workload):
    return LICENCE in dict(workload.needs.requests.amounts)


class RackLicences(PartRule[str]):
    """A rack has licences for so many pods, and racks with more licences left are preferred."""

    name = "RackLicences"
    id = "rack-licences"
    weight = 5
    lifted_by = LiftedBy.PEERS
    NONE_LEFT = Reason("licences", "node(s) were in racks without a licence left", StatusCode.UNSCHEDULABLE)
    reasons_by_code = (NONE_LEFT,)
    documented = (DocumentedReason(NONE_LEFT, means="All licences of the rack are in use.", to_do="Buy more."),)

    def __init__(self, n_licences=2):
        self.n_licences = n_licences

    def part(self, workload, index):
        return "one licence" if needs_licence(workload) else None

    def reject(self, state, index, at):
        return (self.left(index)[at] <= 0).astype(np.int64)

    def score(self, state, index, at):
        return self.left(index)[at]

    def touched(self, state, change, index):
        if change.workload is None:
            return ALL
        return SharedDomains((RACK,), change.slots) if needs_licence(change.workload) else None

    def evidence(self, state, workload, slot, index):
        rack, users = index.slots.at(slot).labels[RACK], self.users(slot, index)
        return [Failure(self.id, self.NONE_LEFT.text, detail="all in use", domain=f"{RACK}={rack}", peers=users)]

    def remedies(self, state, workload, slot, index):
        return [[each for user in self.users(slot, index) for each in remedies.move_pods((user,))]]

    def may_lift(self, state, rejected, change, index):
        return change.type is ChangeType.WORKLOAD_REMOVED and needs_licence(change.workload)

    def left(self, index):
        alive = np.flatnonzero(index.slots.alive)
        left = np.zeros(index.slots.capacity, np.int64)
        left[alive] = [self.n_licences - len(self.users(slot, index)) for slot in alive.tolist()]
        return left

    def users(self, slot, index):
        column = index.column(RACK)
        keys = [key for other in column.slots_in(column.at[slot]).tolist() for key in index.workloads_on(other)]
        return tuple(key for key in keys if needs_licence(index.records[key].workload))


def pod(name, *, licence=True, priority=0):
    requests = Requests(amounts=((LICENCE, 1),)) if licence else Requests()
    return Workload(namespace="d", name=name, labels={}, needs=Needs(requests=requests), priority=priority)


@pytest.fixture
def engine():
    """Two nodes in rack a, where one of two licences is left, and one in rack b, where none is."""
    index = PlacementIndex()
    for name in ("a1", "a2", "b1"):
        allocatable = (("pods", 10), (LICENCE, 10))
        index.add_target(Target(name=TargetName(name), labels={RACK: name[0]}, allocatable=allocatable))
    index.add(pod("on-a", priority=5), "a1")
    index.add(pod("on-b", priority=5), "b1")
    index.add(pod("also-on-b"), "b1")
    return Engine(index, (*profiles.pod_rules(), RackLicences()))


@pytest.fixture
def full(engine):
    engine.index.add(pod("also-on-a"), "a1")
    return engine


def verdict_on(explained, name):
    return next(verdict for verdict in explained.targets if verdict.name == name)


def test_it_filters(engine):
    feasible = filtering.run(pod("new"), engine).feasible
    assert {name: bool(feasible[slot]) for name, slot in engine.index.slots.by_name.items()} == {
        "a1": True,
        "a2": True,
        "b1": False,
    }
    assert filtering.run(pod("new", licence=False), engine).feasible.sum() == 3


def test_its_reason_is_counted_in_the_message(full):
    message = fit_error.sentence(filtering.run(pod("new"), full), full.index)
    assert message == "0/3 nodes are available: 3 node(s) were in racks without a licence left."


def test_it_scores(engine):
    engine.index.remove("d/on-b")
    engine.index.remove("d/also-on-b")
    explained = explanation.explain(pod("new"), engine)
    assert [verdict_on(explained, name).scores["RackLicences"] for name in ("a1", "a2", "b1")] == [5, 5, 10]


def test_its_evaluation_follows_the_changes_of_the_index(engine):
    index = engine.index
    chosen = []
    for change in (
        lambda: None,
        lambda: index.add(pod("third"), "a2"),
        lambda: index.remove("d/on-b"),
        lambda: index.add(pod("fourth"), "b1"),
    ):
        change()
        slot, _ = schedule_pod.choose(pod("new"), engine)
        chosen.append(index.slots.at(slot).name[0] if slot >= 0 else "")
    assert chosen == ["a", "", "b", ""]


def test_an_explanation_shows_its_evidence_and_proposes_its_remedy(full):
    explained = explanation.explain(pod("new"), full)
    assert verdict_on(explained, "a2").failures == [
        Failure(
            "rack-licences",
            "node(s) were in racks without a licence left",
            detail="all in use",
            domain="rack=a",
            peers=("d/also-on-a", "d/on-a"),
        )
    ]
    proposed = {fix.change: fix.fits_on for fix in explained.fixes}
    assert proposed["move d/on-a away"] == ["a1", "a2"]
    assert proposed["move d/also-on-b away"] == ["b1"]
    assert schedule_pod.choose(pod("new"), full) == (-1, 0), "the remedies are only tried"


@pytest.mark.parametrize(
    "change, is_lifted",
    [
        (lambda index: index.remove("d/on-b"), True),
        (lambda index: index.remove("d/plain"), False),
        (lambda index: index.add(pod("another"), "a2"), False),
        (lambda index: index.add(pod("other", licence=False), "a2"), False),
        (lambda index: index.set_volume("v", Volume(name="v")), False),
    ],
    ids=["a licence is returned", "another pod leaves", "a licence is taken", "another pod comes", "a volume comes"],
)
def test_an_unschedulable_pod_is_evaluated_after_the_changes_that_may_lift_it(full, change, is_lifted):
    full.index.add(pod("plain", licence=False), "b1")
    evaluator = SimpleNamespace(
        fits=lambda workload, _nominations: schedule_pod.choose(workload, full)[0] >= 0,
        verdicts=lambda workload: filtering.run(workload, full),
        pod_helped_by_preemption=lambda _equivalent, _nominations: None,
    )
    unschedulable = UnschedulablePods(full.index, evaluator, Nominations())
    unschedulable.add(PendingPod(None, pod("new")))
    change(full.index)
    assert [pending.key for pending in unschedulable.pop_schedulable()] == (["d/new"] if is_lifted else [])
    assert unschedulable.n_evaluations == is_lifted


class CountedRackLicences(RackLicences):
    """The same, and it says that evictions return licences."""

    def eviction_effect(self, state, codes, preemptor):
        return EvictionEffect(capacity_constraints=(LicenceConstraint(self.left(preemptor.index), preemptor.index),))


class LicenceConstraint(CapacityConstraint):
    def __init__(self, left, index):
        super().__init__(1, left - 1)
        self.column, self.index = index.column(RACK), index

    def amounts(self):
        records = self.index.pod_table.records
        return np.array([record is not None and needs_licence(record.workload) for record in records], np.int64)

    def amount_of(self, nominated, slot):
        return int(needs_licence(nominated))


@pytest.mark.parametrize("rule, n_dry_runs", [(RackLicences(), 2), (CountedRackLicences(), 0)])
def test_it_takes_part_in_preemption(full, rule, n_dry_runs, monkeypatch):
    """Without a word by dry runs of the two nodes with victims, with its capacity constraint by sums."""
    calls, run = [], dry_run.dry_run
    monkeypatch.setattr(dry_run, "dry_run", lambda *given: calls.append(given) or run(*given))
    engine = Engine(full.index, (*profiles.pod_rules(), rule))
    engine.index.remove("d/also-on-b")
    engine.index.add(pod("least-on-b", priority=-1), "b1")
    found = preemption.preempt(pod("new", priority=1), engine)
    assert (found.target, found.victims, len(calls)) == ("b1", ("d/least-on-b",), n_dry_runs)
    nominated = [(pod("nominated", priority=1), "b1")]
    found = preemption.preempt(pod("new", priority=1), engine, nominated=nominated)
    assert (found.target, found.victims) == ("a1", ("d/also-on-a",))
    assert not preemption.preempt(pod("new", priority=-1), engine).target


def test_its_reason_has_a_page():
    pages = reason_pages.pages_of((*profiles.pod_rules(), RackLicences()))
    assert [(page.id, page.rule, page.plugin) for page in pages][-1] == ("licences", "rack-licences", "RackLicences")
    assert pages[: len(reason_pages.pages_of(profiles.pod_rules()))] == reason_pages.pages_of(profiles.pod_rules())
