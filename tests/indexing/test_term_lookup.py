"""A lookup finds every term that matches a workload, and looks at few that do not, whatever labels they share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.term_lookup import TermLookup
from bayplan.model.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Selector, equals, requirement, selector_of
from bayplan.model.targets import Target
from bayplan.model.terms import (
    HOSTNAME,
    NAMESPACE_LABEL,
    TARGET,
    AffinityTerms,
    PeerTerm,
    PodTerm,
    TermPart,
    excluded_values,
)
from bayplan.model.workloads import Needs, Workload

KEYS, VALUES, NAMESPACES = ("app", "tier", "team"), ("", "a", "b"), ("red", "blue")
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
requirements = st.one_of(
    st.builds(
        requirement, st.sampled_from(KEYS), st.sampled_from((IN, NOT_IN)), st.lists(st.sampled_from(VALUES), min_size=1)
    ),
    st.builds(requirement, st.sampled_from(KEYS), st.sampled_from((EXISTS, DOES_NOT_EXIST))),
)
selectors = st.lists(requirements, max_size=3).map(selector_of)
parts = st.builds(
    TermPart,
    st.none() | selectors,
    st.none() | st.lists(st.sampled_from(NAMESPACES), unique=True).map(tuple),
    st.none() | selectors,
)
values = st.lists(st.sampled_from(VALUES), min_size=1)
alternatives = st.dictionaries(
    st.sampled_from((*KEYS, *(NAMESPACE_LABEL + key for key in KEYS))), st.none() | values, max_size=2
).map(
    lambda drawn: tuple(
        requirement(key, EXISTS) if some is None else requirement(key, IN, some) for key, some in sorted(drawn.items())
    )
)
terms = st.builds(
    lambda parts, any_of: PeerTerm(tuple(parts), any_of=any_of), st.lists(parts, min_size=1, max_size=2), alternatives
)


@given(st.lists(terms, unique=True), st.data())
def test_every_term_that_matches_is_found_once(drawn, data):
    lookup = TermLookup()
    for term in drawn:
        lookup.add(term, term)
    kept = data.draw(st.lists(st.sampled_from(drawn), unique=True) if drawn else st.just([]))
    for term in drawn:
        if term not in kept:
            lookup.remove(term)
    pod, namespace, namespace_labels = data.draw(labels), data.draw(st.sampled_from(NAMESPACES)), data.draw(labels)
    found = list(lookup.find(pod, namespace, namespace_labels))
    assert len(found) == len(set(found))
    assert {term for term in kept if term.matches(pod, namespace, namespace_labels, terminating=False)} <= set(found)
    assert set(found) <= set(kept)


@given(st.lists(terms, unique=True))
def test_a_lookup_without_terms_holds_nothing(drawn):
    lookup = TermLookup()
    for term in drawn:
        lookup.add(term, term)
    for term in reversed(drawn):
        lookup.remove(term)
    assert not lookup._groups
    assert not lookup._by_key
    assert not lookup._without_keys.by_values


def test_a_term_that_requires_what_it_excludes_is_removed():
    requirements = [requirement(key, operator, ["a"]) for key in ("app", "tier") for operator in (IN, NOT_IN)]
    complement = excluded_values(PeerTerm((TermPart(selector_of(requirements), None),))).complement
    lookup = TermLookup()
    lookup.add(complement, 1)
    assert list(lookup.find({"app": "a", "tier": "a"}, "x", {})) == [1]
    lookup.remove(complement)
    assert not lookup._groups


def helm(i):
    return {"component": "server", "name": "redis", "instance": f"release-{i}"}


def of_namespace(i, **fields):
    return PeerTerm((TermPart(equals({"app": "web"}), **{"namespaces": (f"team-{i}",), **fields}),))


SHAPES = {
    "labels that all terms share": lambda i: PeerTerm((TermPart(equals(helm(i)), None),)),
    "the same labels in every namespace": of_namespace,
    "namespaces selected by label": lambda i: of_namespace(
        i, namespaces=(), namespace_selector=equals({"team": f"team-{i}"})
    ),
    "two labels of which both are shared": lambda i: PeerTerm(
        (TermPart(equals({"row": str(i // 20), "column": str(i % 20)}), None),)
    ),
    "a key of its own and one that all share": lambda i: PeerTerm(
        (TermPart(selector_of((requirement(f"key-{i}", EXISTS), requirement("app", IN, ["web"]))), None),)
    ),
    "several values of a label that all share and of one of its own": lambda i: PeerTerm(
        (
            TermPart(
                selector_of((requirement("tier", IN, ["a", "b"]), requirement("app", IN, [f"web-{i}", f"api-{i}"]))),
                None,
            ),
        )
    ),
    "its own namespace, and others by label": lambda i: of_namespace(i, namespace_selector=equals({"shared": "yes"})),
    "values of its own among several": lambda i: PeerTerm(
        (TermPart(Selector((requirement("app", IN, [f"web-{i}", f"api-{i}"]),)), None),)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_terms_of_other_workloads_are_not_looked_at(shape):
    lookup = TermLookup()
    for i in range(400):
        lookup.add(SHAPES[shape](i), i)
    n_groups = 0

    class Counted(type(next(iter(lookup._groups.values())))):
        def find(self, attributes):
            nonlocal n_groups
            n_groups += 1
            return super().find(attributes)

    for listed in lookup._by_key.values():
        for keys, group in listed.items():
            listed[keys] = Counted(*keys, group.listed_under, group.by_values)
    pod = {**helm(7), "row": "0", "column": "7", "key-7": "x", "app": "web", "tier": "a"}
    found = list(lookup.find(pod, "team-7", {"team": "team-7"}))
    found += list(lookup.find({**pod, "app": "web-7"}, "team-7", {}))
    assert set(found) == {7}
    assert n_groups <= 2 * 10  # some of the 400 groups with a key of their own are listed under the shared one


def test_a_term_looks_at_few_classes_that_it_does_not_match(monkeypatch):
    index = PlacementIndex()
    index.add_target(Target(name="n", labels={HOSTNAME: "n"}))
    index.peer_index.hold(PeerTerm((TermPart(equals({"row": "x", "column": "x"}), None),)))
    for i in range(900):
        own = {"row": str(i // 30), "column": str(i % 30)}
        terms = AffinityTerms(anti_preferred=(PodTerm(equals(own), HOSTNAME, weight=1),))
        index.add(Workload(namespace="d", name=f"p{i}", labels=own, needs=Needs(affinity=terms)), "n")
    assert len(index.peer_index.classes) == 900
    compared = []
    matches = PeerTerm.matches
    monkeypatch.setattr(PeerTerm, "matches", lambda *given, **named: compared.append(1) or matches(*given, **named))
    entry = index.peer_index.hold(PeerTerm((TermPart(equals({"row": "3", "column": "7"}), ("d",)),)))
    assert index.peer_index.match_reach(entry, (TARGET,)).counter.anywhere == 1
    assert len(compared) <= 16
