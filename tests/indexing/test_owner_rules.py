"""Terms that have values in common, or exclude values, are counted as sums: the counts are those of each by itself."""

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayplan import schedule_pod
from bayplan.engine.engine import Engine
from bayplan.indexing import owner_rules, term_sums, term_table
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.term_lookup import required_values
from bayplan.model.labels import DOES_NOT_EXIST, EXISTS, IN, NEGATIVE, NOT_IN, requirement, selector_of
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.model.targets import Target
from bayplan.model.terms import (
    HOSTNAME,
    NAMESPACE,
    NAMESPACE_LABEL,
    ZONE,
    AffinityTerms,
    PeerTerm,
    PodTerm,
    TermPart,
    excluded_values,
)
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles
from term_usage import ChosenUsage

KEYS, VALUES = ("app", "tier"), ("a", "b", "c")
REQUESTS = Requests((("cpu", 100),), (("cpu", 100), ("memory", 1)), (("cpu", 100), ("memory", 1)))


def drawn_selector(chance):
    def drawn(key):
        operator = chance.choice((IN, IN, NOT_IN, NOT_IN, EXISTS, DOES_NOT_EXIST))
        has_values = operator in (IN, NOT_IN)
        return requirement(key, operator, chance.sample(VALUES, chance.choice((1, 2))) if has_values else ())

    return selector_of(drawn(key) for key in chance.choices(KEYS, k=chance.choice((0, 1, 2, 2))))


@pytest.fixture(params=[32, 0, 1], ids=["many are common", "all are common", "two are common"])
def threshold(request, monkeypatch):
    """How many terms name a value before it is common."""
    monkeypatch.setattr(term_table, "COMMON", request.param)
    monkeypatch.setattr(owner_rules, "COMMON", request.param)
    monkeypatch.setattr(owner_rules, "MAX_COMMON_SETS", 2)


def drawn_term(chance):
    namespaces = chance.choice((None, (), (), ("x",), ("x", "y")))
    return PeerTerm(
        tuple(
            TermPart(drawn_selector(chance), namespaces, drawn_selector(chance) if namespaces == () else None)
            for _ in range(chance.choice((1, 1, 2)))
        )
    )


def drawn_labels(chance):
    return {key: chance.choice((*VALUES, "d")) for key in KEYS if chance.random() < 0.8}


def has_label(mention, labels, namespace_labels):
    key, value = mention
    found = {**labels, **{NAMESPACE_LABEL + one: of for one, of in namespace_labels.items()}}.get(key)
    return found is not None and value in (None, found)


def is_negative(term):
    return any(
        one.operator in NEGATIVE
        for part in term.parts
        for selector in (part.selector, part.namespace_selector)
        for one in (selector.requirements if selector else ())
    )


@given(st.integers(0, 2**32))
def test_a_term_matches_what_its_base_matches_without_what_it_excludes(seed):
    chance = random.Random(seed)
    term = drawn_term(chance)
    excluded = excluded_values(term)
    assert (excluded is not None) == is_negative(term)
    for _ in range(20 if excluded is not None else 0):
        pod, namespace_labels = drawn_labels(chance), drawn_labels(chance)
        base, complement = (
            one.matches(pod, "x", namespace_labels, terminating=False) for one in (excluded.base, excluded.complement)
        )
        assert base - complement == term.matches(pod, "x", namespace_labels, terminating=False)
        has_any = any(has_label(mention, pod, namespace_labels) for mention in excluded.labels)
        assert complement == (base and has_any)


@given(st.integers(0, 2**32), st.sampled_from([2, 8, 64]))
def test_the_summands_of_a_term_match_together_what_it_matches(seed, n_summands):
    chance = random.Random(seed)
    term, common = drawn_term(chance), {}
    usage = ChosenUsage(
        lambda mention: common.setdefault(mention, chance.random() < 0.6), lambda _: chance.random() < 0.5
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_sums, "MAX_SUMMANDS", n_summands)
        summands = term_sums.summands(term, usage)
    assert summands[0][1] == 1
    for _ in range(20):
        pod, namespace, namespace_labels = drawn_labels(chance), chance.choice("xyz"), drawn_labels(chance)

        def matches(one, given=(pod, namespace, namespace_labels)):
            return one.matches(*given, terminating=False)

        assert sum(sign * matches(one) for one, sign in summands) == matches(term)
        assert sum(map(matches, term_sums.disjoint(term, usage))) == matches(term)


def test_a_term_that_requires_a_value_of_its_own_is_not_divided():
    own, common = requirement("app", IN, ["mine"]), requirement("tier", IN, ["a", "b"])
    others = requirement("team", NOT_IN, ["a", "b"])
    usage = ChosenUsage(lambda mention: mention != ("app", "mine"))
    for requirements, n in (((own, common), 1), ((common,), 2), ((own, others), 2), ((others,), 3)):
        term = PeerTerm((TermPart(selector_of(requirements), None),))
        assert len(term_sums.summands(term, usage)) == n


def test_values_of_its_own_are_divided_off_first_and_not_further():
    """Each app looks for the same five in its own namespace and in a common one: of six terms five are everybody's."""
    values, n_values = requirement("app", IN, [*"abcde"]), 5
    usage = ChosenUsage(lambda mention: mention[1] != "mine")
    term = PeerTerm((TermPart(selector_of([values]), ("mine", "common")),))
    found = term_sums.disjoint(term, usage)
    namespaces = [part.namespaces for one in found for part in one.parts]
    assert namespaces == [("common",)] * n_values + [("mine",)]
    # A pod has one namespace, so what is required in two terms together is found in its own alone.
    conjunction = PeerTerm(tuple(TermPart(selector_of([values]), ("mine", common)) for common in ("one", "other")))
    (only,) = term_sums.disjoint(conjunction, usage)
    assert required_values(only)[NAMESPACE] == ("mine",)


def listing(*values, key="app", namespaces=None):
    return PeerTerm((TermPart(selector_of([requirement(key, IN, values)]), namespaces),))


def test_values_that_many_terms_list_together_stay_together():
    """Each app looks for the same five in its own namespace and in a common one: both are one term."""
    table = term_table.TermTable()
    for number in range(term_table.COMMON + 1):
        table.use(listing(*"abcde", namespaces=("common", f"of-{number}")))
    found = term_sums.disjoint(listing(*"abcde", namespaces=("common", "mine")), table)
    assert found == [listing(*"abcde", namespaces=(name,)) for name in ("common", "mine")]
    assert term_sums.disjoint(listing(*"abcde", "mine"), table) == [listing("mine"), listing(*"abcde")][::-1]
    assert term_sums.disjoint(listing(*"abcd"), table) == [listing(value) for value in "abcd"]


def test_a_list_stays_together_only_while_its_values_are_in_few_others():
    """Else a pod with such a value would count in the counters of as many lists."""
    table, lists = term_table.TermTable(), [("a", f"other-{n}") for n in range(term_table.MAX_LISTS + 1)]
    entries = []
    for number in range(term_table.COMMON + 1):
        entries += [table.use(listing(*values, namespaces=(str(number),)))[0] for values in lists]
    assert len(term_sums.disjoint(listing(*lists[0]), table)) == 2
    for entry in entries:
        if entry.term.parts[0].selector == listing(*lists[-1]).parts[0].selector:
            table.release(entry)
    assert len(term_sums.disjoint(listing(*lists[0]), table)) == 1
    for entry in entries:
        if entry.uses:
            table.release(entry)
    assert not table.listed


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
                selected = drawn_selector(chance) if chance.random() < 0.4 else None
                key, weight = chance.choice((HOSTNAME, ZONE)), chance.choice((1, 2)) if "preferred" in field else 0
                fields[field] = (PodTerm(drawn_selector(chance), key, namespaces, selected, weight=weight),)
        needs = Needs(requests=REQUESTS, affinity=AffinityTerms(**fields))
        return Workload(namespace=chance.choice("xy"), name=name, labels=drawn_labels(chance), needs=needs)


class OwnersOfOneFamily(ChangingOwners):
    """The same, where all terms differ only in what they exclude, so that many exclude the same."""

    def pod(self, name):
        chance = self.chance
        excluded = [
            requirement(key, NOT_IN, chance.sample(VALUES, chance.choice((1, 2))))
            for key in chance.choice((KEYS, KEYS[:1], KEYS[1:]))
        ]
        term = PodTerm(selector_of(excluded), HOSTNAME, ("x", "y"), weight=100)
        needs = Needs(requests=REQUESTS, affinity=AffinityTerms(anti_preferred=(term,)))
        return Workload(namespace=chance.choice("xy"), name=name, labels=drawn_labels(chance), needs=needs)


def counts(pairs):
    """What each sort of rule counts in each domain."""
    found = Counter()
    for rule, reach in pairs:
        for domain, count in reach.by_domain().items():
            found[rule.role, reach.keys, rule.weight, domain] += count
    return found


@pytest.mark.usefixtures("threshold")
@pytest.mark.parametrize("changing", [ChangingOwners, OwnersOfOneFamily])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_the_rules_of_a_family_count_together_what_they_count_one_by_one(changing, seed):
    owners = changing(seed)
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
@pytest.mark.usefixtures("threshold")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@pytest.mark.usefixtures("threshold")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32))
def test_an_engine_sees_labels_that_many_rules_exclude_from_some_moment_on(seed):
    owners = OwnersOfOneFamily(seed)
    index = owners.index
    engine = Engine(index, profiles.pod_rules())
    incoming = [msgspec.structs.replace(owners.pod(f"incoming-{i}"), needs=Needs(requests=REQUESTS)) for i in range(5)]
    for _ in range(25):
        owners.step()
        for workload in owners.chance.sample(incoming, 2):
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
