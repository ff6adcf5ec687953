"""Pod affinity and anti-affinity terms."""

import pytest

from validating import writing

NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"


@pytest.mark.parametrize("term, wrong", [
    ("topologyKey: zone, labelSelector: {}", []),
    ("labelSelector: {}", [".topologyKey: Required value: can not be empty", '.topologyKey: Invalid value: "": name part must be non-empty', f'.topologyKey: Invalid value: "": {NAME}']),
    ("topologyKey: bad key, labelSelector: {}", [f'.topologyKey: Invalid value: "bad key": {NAME}']),
    ("topologyKey: zone, namespaces: [default, Bad_NS]", [f'.namespace: Invalid value: "Bad_NS": {LABEL}']),
    ("topologyKey: zone, namespaces: ['', a.b]", [f'.namespace: Invalid value: "": {LABEL}', '.namespace: Invalid value: "a.b": must not contain dots']),
    ("topologyKey: zone, namespaces: []", []),
    ("topologyKey: zone", []),  # a null selector is only warned about
])  # fmt: skip
@pytest.mark.parametrize("sign", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    "when, below", [(writing.REQUIRED, "[0]"), (writing.PREFERRED, "[0].podAffinityTerm"), (writing.RUNNING, "[0]")]
)
def test_term(sign, when, below, term, wrong):
    spec = writing.with_term(f"{{{term}}}", sign, when)
    assert writing.held_against(writing.pod(spec), f"spec.affinity.{sign}.{when}{below}") == wrong


@pytest.mark.parametrize("weight, shown", [(1, None), (100, None), (0, "0"), (-1, "-1"), (101, "101"), (None, "0")])
@pytest.mark.parametrize("path, item", [
    ("podAffinity", {"podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}),
    ("podAntiAffinity", {"podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}),
    ("nodeAffinity", {"preference": {}}),
])  # fmt: skip
def test_weight(path, item, weight, shown):
    spec = {"affinity": {path: {writing.PREFERRED: [{"weight": weight, **item}]}}}
    wrong = [] if shown is None else [f"[0].weight: Invalid value: {shown}: must be in the range 1-100"]
    assert writing.held_against(writing.pod(spec), f"spec.affinity.{path}.{writing.PREFERRED}") == wrong


@pytest.mark.parametrize("sign, when, ours, wrong", [
    ("podAntiAffinity", writing.REQUIRED, "limit: 2", []),
    ("podAntiAffinity", writing.RUNNING, "limit: 0, tolerateNamespaces: [kube-system]", []),
    ("podAntiAffinity", writing.RUNNING, "limit: -1", [".limit: Invalid value: -1: must be greater than or equal to 0"]),
    ("podAntiAffinity", writing.REQUIRED, "tolerateNamespaces: [ok, a.b]", ['.tolerateNamespaces[1]: Invalid value: "a.b": must not contain dots']),
    ("podAntiAffinity", writing.PREFERRED, "limit: 2", [".limit: Forbidden: may be set on required anti-affinity terms only"]),
    ("podAffinity", writing.REQUIRED, "limit: 2, tolerateNamespaces: []", [".limit: Forbidden: may be set on required anti-affinity terms only", ".tolerateNamespaces: Forbidden: may be set on required anti-affinity terms only"]),
])  # fmt: skip
def test_the_fields_that_kubernetes_lacks(sign, when, ours, wrong):
    spec = writing.with_term(f"{{topologyKey: zone, labelSelector: {{}}, {ours}}}", sign, when)
    below = f"spec.affinity.{sign}.{when}[0]" + (".podAffinityTerm" if when == writing.PREFERRED else "")
    assert writing.held_against(writing.pod(spec), below) == wrong
