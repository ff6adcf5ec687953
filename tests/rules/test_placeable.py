"""A workload whose own rules cannot be read is rejected everywhere."""

import pytest

from bayplan.rules.placeable import Placeable
from rules.shorthand import binding, pod, run, run_fleet

LISTS = {"near": "podAffinity.required", "away": "podAntiAffinity.required"}
LISTS |= {"prefers": "podAffinity.preferred", "avoids": "podAntiAffinity.preferred"}
END = "DuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    "kind, terms, at",
    [
        ("near", ["app=x by "], "[0]"),
        ("near", ["app=x by zone", "app=x by "], "[1]"),
        ("away", ["app=x by "], "[0]"),
        ("prefers", ["1 app=x by "], "[0].podAffinityTerm"),
        ("avoids", ["1 app=x by zone", "1 app=x by "], "[1].podAffinityTerm"),
    ],
)
def test_a_term_without_a_topology_key(kind, terms, at):
    """The path and the text are those of the API server's validation."""
    asked = pod("new", **{kind: terms})
    text = f"spec.affinity.{LISTS[kind]}{END}{at}.topologyKey: Required value: can not be empty"
    assert run(Placeable(), asked, "a zone=x").all == f"UU {text}"
    assert run(Placeable(), asked, "a zone=x", semantics="design").all == ""  # there it means any of the default keys


@pytest.mark.parametrize("asked", [pod("new"), pod("new", near="app=x by zone", avoids="1 app=x by zone")])
def test_complete_terms(asked):
    assert run(Placeable(), asked, "a zone=x").all == ""


@pytest.mark.parametrize(
    "terms, answer",
    [
        ([], ""),
        ([{"labelSelector": {}}], ""),
        ({}, ""),
        ([1], f"UU placement.workloadAffinity.required{END}: expected a list of terms"),
        ("x", f"UU placement.workloadAffinity.required{END}: expected a list of terms"),
    ],
)
def test_the_terms_of_a_binding(terms, answer):
    asked = binding("web", placement={"workloadAffinity": {f"required{END}": terms}})
    assert run_fleet(Placeable(), asked, "c1").all == answer
