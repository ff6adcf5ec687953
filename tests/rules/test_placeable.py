"""A workload whose own rules cannot be read is rejected everywhere."""

import msgspec
import pytest

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings
from bayplan.rules.placeable import Placeable
from bayplan.wire.fleets import ResourceBinding
from rules.shorthand import pod, run

LISTS = {"near": "podAffinity.required", "away": "podAntiAffinity.required"}
LISTS |= {"prefers": "podAffinity.preferred", "avoids": "podAntiAffinity.preferred"}
END = "DuringSchedulingIgnoredDuringExecution"
REQUIRED = f"required{END}"


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


@pytest.mark.parametrize("placement, fault", [
    ({"workloadAffinity": {REQUIRED: []}}, ""),
    ({"workloadAffinity": {REQUIRED: [{"labelSelector": {}}]}}, ""),
    ({"workloadAffinity": {REQUIRED: None}}, ""),
    ({"workloadAffinity": {REQUIRED: {}}}, f"workloadAffinity.{REQUIRED}: expected a list, got a mapping"),
    ({"workloadAffinity": {REQUIRED: [1]}}, f"workloadAffinity.{REQUIRED}[0]: expected a mapping, got the number 1"),
    ({"workloadAffinity": {REQUIRED: "x"}}, f'workloadAffinity.{REQUIRED}: expected a list, got the string "x"'),
    ({"clusterTolerations": [None]}, "clusterTolerations[0]: expected a mapping, got null"),
    ({"clusterTolerations": None}, ""),
    ({"spreadConstraints": 3}, "spreadConstraints: expected a list, got the number 3"),
    ({"ofAnotherVersion": 3}, ""),
])  # fmt: skip
def test_the_placement_of_a_binding(placement, fault):
    """An API server keeps fields that it does not know as they are written, so a binding may hold any value there."""
    written = msgspec.convert({"metadata": {"name": "web"}, "spec": {"placement": placement}}, ResourceBinding)
    workload, index = bindings.workload_of(written), PlacementIndex()
    assert Placeable().part(workload, index) == (f"placement.{fault}" if fault else None)
