"""The first pods of a class find their target in the order of their template, without an evaluation of all targets."""

import msgspec
import pytest

from bayplan import schedule_pod
from bayplan.engine import domain_choice, ranking
from bayplan.engine.engine import Engine
from bayplan.indexing.peer_index import PeerIndex
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import Taint, equals
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PodTerm
from bayplan.model.workloads import Needs, Requests, SpreadConstraint, SpreadRequirements, Workload
from bayplan.placing import place_pods
from bayplan.rules import profiles

N_TARGETS = 100  # more than `MAX_PARTITIONS`, so that host names are not divided by
REQUESTS = Requests((("cpu", 100),), (("cpu", 100), ("memory", 1)), (("cpu", 100), ("memory", 1)))
SELF = equals({"app": "web"})
BUILD = ranking.ClassRanking._build


def pod(name, app="web", spread=(), **terms):
    needs = Needs(requests=REQUESTS, affinity=AffinityTerms(**terms), spread=SpreadRequirements(constraints=spread))
    return Workload(namespace="default", name=name, labels={"app": app}, needs=needs)


@pytest.fixture
def engine():
    """The target without host name is by far the best one for requests."""
    index = PlacementIndex()
    allocatable = (("cpu", 4000), ("memory", 10**9), ("pods", 110))
    for i in range(N_TARGETS):
        labels = {HOSTNAME: f"n{i}", ZONE: f"z{i % 4}"}
        index.add_target(Target(name=f"n{i}", labels=labels, allocatable=allocatable))
    index.add_target(Target(name="anonymous", labels={ZONE: "z0"}, allocatable=(("cpu", 10**6), *allocatable[1:])))
    for i in range(0, N_TARGETS, 10):
        index.add(pod(f"db-{i}", app="db"), f"n{i}")
    return Engine(index, profiles.pod_rules())


TERM = PodTerm(SELF, HOSTNAME)
BY_HOST = SpreadConstraint(1, HOSTNAME, hard=True, selector=SELF)
KINDS = {
    "no terms": {},
    "a key that a target lacks, spread": {"spread": (BY_HOST,)},
    "a key that a target lacks, first pod": {"required": (TERM,)},
    "single targets only": {"required": (PodTerm(equals({"app": "db"}), HOSTNAME),)},
    "all but single targets": {"anti_required": (TERM, PodTerm(equals({"app": "db"}), HOSTNAME))},
    "single targets preferred": {"preferred": (PodTerm(equals({"app": "db"}), HOSTNAME, weight=7),)},
    "single targets only, and others preferred": {
        "required": (PodTerm(equals({"app": "db"}), HOSTNAME),),
        "preferred": (PodTerm(equals({"app": "db"}), ZONE, weight=5), PodTerm(SELF, HOSTNAME, weight=7)),
        "anti_preferred": (TERM,),
    },
    "zones preferred": {"anti_preferred": (PodTerm(SELF, ZONE, weight=3),), "anti_required": (TERM,)},
    "zones spread": {"spread": (SpreadConstraint(1, ZONE, hard=True, selector=SELF),)},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "configured", [{}, {"filters": False}, {"weight": 0}], ids=["default", "no filter", "no score"]
)
def test_the_choice_is_that_of_a_full_evaluation(engine, kind, configured):
    for rule in engine.rules:
        if rule.name in ("InterPodAffinity", "PodTopologySpread"):
            for field, value in configured.items():
                setattr(rule, field, value)
    for i in range(schedule_pod.MAX_CHOICES_BY_DOMAIN):
        workload = pod(f"web-{i}", **KINDS[kind])
        assert _chosen_by_domain(workload, engine) == schedule_pod.choose(workload, engine, ranked=False)
        slot, _ = schedule_pod.choose(workload, engine)
        engine.index.add(workload, engine.index.slots.at(slot).name)


def _chosen_by_domain(workload, engine):
    equivalence_class = engine.class_of(workload)
    return domain_choice.best(equivalence_class.order, equivalence_class.by_peers, engine.index)


def test_a_new_template_evaluates_no_targets_and_builds_no_ranking(engine, monkeypatch):
    schedule_pod.choose(pod("first", anti_required=(TERM,)), engine)
    n_full = engine.evaluations.n_full
    monkeypatch.setattr(ranking, "ranking_of", None)
    for i in range(50):
        own = equals({"app": f"app-{i}"})
        terms = {"anti_required": (PodTerm(own, HOSTNAME),), "preferred": (PodTerm(own, ZONE, weight=1),)}
        workload = pod(f"new-{i}", app=f"app-{i}", **terms)
        slot, _ = schedule_pod.choose(workload, engine)
        engine.index.add(workload, engine.index.slots.at(slot).name)
    assert engine.evaluations.n_full == n_full


PREFERRED = {"preferred": (PodTerm(SELF, ZONE, weight=3),), "anti_preferred": (PodTerm(SELF, HOSTNAME, weight=5),)}
FITS_NOWHERE = {
    "no peer": {"required": (PodTerm(equals({"app": "absent"}), ZONE),)},
    "peers on full targets": {"required": (PodTerm(equals({"app": "full"}), HOSTNAME),)},
    "peers on rejected targets": {
        "required": (PodTerm(equals({"app": "full"}), HOSTNAME),),
        "anti_required": (PodTerm(equals({"app": "full"}), HOSTNAME),),
    },
}


@pytest.mark.parametrize("kind", FITS_NOWHERE)
def test_preferred_terms_of_a_pod_that_fits_nowhere_are_not_counted(engine, monkeypatch, kind):
    terms, index = FITS_NOWHERE[kind], engine.index
    for number in range(2):
        index.add(pod(f"full-{number}", app="full"), "n3")
    if "anti_required" not in terms:
        large = Requests((("cpu", 3999),), (("cpu", 3999), ("memory", 1)), (("cpu", 3999), ("memory", 1)))
        index.add(Workload(namespace="default", name="large", labels={}, needs=Needs(requests=large)), "n3")
    expected = place_pods.place(pod("web", **terms, **PREFERRED), Engine(index, profiles.pod_rules()), ranked=False)
    counted = []
    match_reach = PeerIndex.match_reach
    monkeypatch.setattr(
        PeerIndex, "match_reach", lambda *given: (counted.append(given[1].term), match_reach(*given))[1]
    )
    placement = place_pods.place(pod("web", **terms, **PREFERRED), engine)
    assert (placement.target, placement.message, placement.reasons) == ("", expected.message, expected.reasons)
    assert counted
    assert not [term for term in counted if term.parts[0].selector == SELF]


def test_the_first_pod_with_its_requests_builds_no_ranking_where_domains_are_not_enough(engine, monkeypatch):
    """Nodes with different numbers of soft taints have no score in common by which domains could be compared."""
    for number in range(3):
        target = engine.index.slots.at(number)
        taints = tuple(Taint(f"busy-{one}", "", "PreferNoSchedule") for one in range(number))
        engine.index.update_target(msgspec.structs.replace(target, taints=taints))
    built = []
    monkeypatch.setattr(ranking.ClassRanking, "_build", lambda *given: built.append(given) or BUILD(*given))
    for i in range(20):
        amount = (("cpu", 100 + i),)
        needs = msgspec.structs.replace(pod("any").needs, requests=Requests(amount, amount, amount))
        workload = Workload(namespace="default", name=f"own-{i}", labels={"app": "web"}, needs=needs)
        chosen = schedule_pod.choose(workload, engine)
        assert chosen == schedule_pod.choose(workload, engine, ranked=False)
        assert len(built) == 0
    assert schedule_pod.choose(workload, engine) == chosen
    assert len(built) == 1
    other = msgspec.structs.replace(needs, affinity=AffinityTerms(anti_preferred=(TERM,)))
    schedule_pod.choose(Workload(namespace="default", name="other", labels={}, needs=other), engine)
    assert len(built) == 2


def test_terms_that_concern_others_leave_a_state_as_it_is(engine):
    workload = pod("web", anti_required=(TERM,))
    schedule_pod.choose(workload, engine)
    evaluation = engine.class_of(workload).by_peers[-1].evaluation
    state = evaluation.state
    engine.index.add(pod("other", app="other", anti_required=(PodTerm(equals({"app": "other"}), HOSTNAME),)), "n1")
    engine.class_of(workload)
    assert evaluation.state is state
    engine.index.add(pod("against", app="other", anti_required=(TERM,)), "n2")
    engine.class_of(workload)
    assert evaluation.state is not state
    assert schedule_pod.choose(workload, engine) == schedule_pod.choose(workload, engine, ranked=False)


def test_a_class_that_does_not_fit_is_evaluated_again_only_after_a_change(engine, monkeypatch):
    near = {"required": (PodTerm(equals({"app": "cache"}), ZONE),)}
    first = place_pods.place(pod("web-0", **near), engine)
    assert not first.target
    with monkeypatch.context() as patch:
        patch.setattr(domain_choice, "best", None)
        assert place_pods.place(pod("web-1", **near), engine).message == first.message
    engine.index.add(pod("cache", app="cache"), "n1")
    assert place_pods.place(pod("web-2", **near), engine).target
