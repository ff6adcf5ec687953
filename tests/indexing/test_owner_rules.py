"""Terms that exclude values are counted as differences: the counts are those of each term by itself."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.labels import EXISTS, IN, NOT_IN, requirement, selector_of
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, ZONE, AffinityTerms, PeerTerm, PodTerm, TermPart, excluded_values
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles

KEYS, VALUES = ("app", "tier"), ("a", "b", "c")
REQUESTS = Requests((("cpu", 100),), (("cpu", 100), ("memory", 1)), (("cpu", 100), ("memory", 1)))


def drawn_selector(chance):
    def drawn(key):
        operator = chance.choice((IN, NOT_IN, NOT_IN, EXISTS))
        return requirement(key, operator, () if operator == EXISTS else chance.sample(VALUES, chance.choice((1, 2))))

    return selector_of(drawn(key) for key in chance.choices(KEYS, k=chance.choice((0, 1, 2, 2))))


@given(st.integers(0, 2**32))
def test_a_term_matches_what_its_base_matches_without_what_it_excludes(seed):
    chance = random.Random(seed)
    term = PeerTerm(tuple(TermPart(drawn_selector(chance), None) for _ in range(chance.choice((1, 1, 2)))))
    excluded = excluded_values(term)
    negative = any(one.operator == NOT_IN for part in term.parts for one in part.selector.requirements)
    assert (excluded is not None) == negative
    for app in (None, *VALUES, "d"):
        for tier in (None, *VALUES):
            pod = {key: value for key, value in (("app", app), ("tier", tier)) if value}
            if excluded is not None:
                base, complement = (
                    one.matches(pod, "x", {}, terminating=False) for one in (excluded.base, excluded.complement)
                )
                assert base - complement == term.matches(pod, "x", {}, terminating=False)
                assert complement == (base and any(label in pod.items() for label in excluded.labels))


class ChangingOwners:
    """Pods with terms that are added and removed, and namespaces that are relabelled."""

    def __init__(self, seed, semantics=UPSTREAM):
        self.chance = random.Random(seed)
        self.index = PlacementIndex(semantics)
        for i in range(4):
            allocatable = (("cpu", 10**6), ("memory", 10**12), ("pods", 1000))
            labels = {HOSTNAME: f"n{i}", ZONE: f"z{i % 2}"}
            self.index.add_target(Target(name=f"n{i}", labels=labels, allocatable=allocatable))
        self.serial = 0

    def step(self):
        chance, index = self.chance, self.index
        match chance.choice(("add", "add", "add", "remove", "relabel")):
            case "add":
                self.serial += 1
                index.add(self.pod(f"p{self.serial}"), f"n{chance.randrange(4)}")
            case "remove" if index.records:
                index.remove(chance.choice(list(index.records)))
            case "relabel":
                index.set_namespace(chance.choice("xy"), {"app": chance.choice(VALUES)})

    def pod(self, name):
        chance = self.chance
        fields = {}
        for field in ("required", "anti_required", "preferred", "anti_preferred"):
            if chance.random() < 0.3:
                namespaces = chance.choice((None, None, ("x", "y")))
                selected = drawn_selector(chance) if chance.random() < 0.2 else None
                key, weight = chance.choice((HOSTNAME, ZONE)), chance.choice((1, 2)) if "preferred" in field else 0
                fields[field] = (PodTerm(drawn_selector(chance), key, namespaces, selected, weight=weight),)
        labels = {key: chance.choice((*VALUES, "d")) for key in KEYS if chance.random() < 0.8}
        needs = Needs(requests=REQUESTS, affinity=AffinityTerms(**fields))
        return Workload(namespace=chance.choice("xy"), name=name, labels=labels, needs=needs)


def counts(pairs):
    """What each sort of rule counts in each domain."""
    found = Counter()
    for rule, reach in pairs:
        for domain, count in reach.by_domain().items():
            found[rule.role, reach.keys, rule.weight, domain] += count
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_the_rules_of_a_family_count_together_what_they_count_one_by_one(seed):
    owners = ChangingOwners(seed)
    peer_index = owners.index.peer_index
    for _ in range(30):
        owners.step()
        incoming = owners.pod("incoming")
        visible = dict(peer_index.visible(incoming.labels))
        one_by_one = [(rule, rule.reach) for rule in peer_index.matching_owner_rules(visible, incoming.namespace)]
        plain = [
            (rule, rule.reach)
            for rule in {
                id(rule): rule for cls in peer_index.classes.by_id.values() for rule in cls.owner_rules
            }.values()
            if peer_index.matches(rule.entry.term, incoming.labels, incoming.namespace)
        ]
        assert counts(one_by_one) == counts(plain)
        assert counts(peer_index.summed_owner_rules(visible, incoming.namespace)) == counts(plain)
    for key in list(owners.index.records):
        owners.index.remove(key)
    rules = peer_index.owner_rules
    assert (rules.n, rules._by_base, rules._single._groups, rules._families._groups) == (0, {}, {}, {})


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_an_engine_sees_rules_that_join_and_leave_a_family(semantics, seed):
    owners = ChangingOwners(seed, semantics)
    index = owners.index
    engine = Engine(index, profiles.pod_rules())
    incoming = [owners.pod(f"incoming-{i}") for i in range(3)]
    for _ in range(25):
        owners.step()
        for workload in incoming:
            fresh = Engine(index, profiles.pod_rules())
            expected = schedule_pod.choose(workload, fresh, ranked=False)
            assert schedule_pod.choose(workload, engine) == expected
            fresh.release()


def everyone_else(app):
    return PodTerm(selector_of([requirement("app", NOT_IN, [app])]), HOSTNAME)


def test_apps_that_exclude_all_others_do_not_cost_more_the_more_of_them_there_are(monkeypatch):
    def placed(n_apps):
        index = PlacementIndex()
        allocatable = (("cpu", 10**6), ("memory", 10**12), ("pods", 1000))
        for i in range(300):
            index.add_target(Target(name=f"n{i}", labels={HOSTNAME: f"n{i}"}, allocatable=allocatable))
        engine = Engine(index, profiles.pod_rules())
        compared, matches = [], PeerTerm.matches
        for i in range(n_apps):
            terms = AffinityTerms(anti_required=(everyone_else(f"app-{i}"),))
            labels, needs = {"app": f"app-{i}"}, Needs(requests=REQUESTS, affinity=terms)
            workload = Workload(namespace="x", name=f"p{i}", labels=labels, needs=needs)
            if i == n_apps - 20:
                monkeypatch.setattr(
                    PeerTerm, "matches", lambda *given, **named: compared.append(1) or matches(*given, **named)
                )
            slot, _ = schedule_pod.choose(workload, engine)
            assert slot >= 0
            index.add(workload, index.slots.at(slot).name)
        monkeypatch.undo()
        return len(compared)

    assert placed(120) == placed(40)
