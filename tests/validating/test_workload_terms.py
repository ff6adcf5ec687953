"""The seed's terms of workload affinity and anti-affinity."""

import pytest

from validating import writing

NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
TWO_WAYS = "Forbidden: cannot co-exist with affinityEnabled, which takes the keys that the scheduler is configured with"


@pytest.mark.parametrize("term, wrong", [
    ("{labelSelector: {matchLabels: {app.tier: prod}}, matchLabelKeys: [karmada.io/group]}", []),
    ("{labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [app]}", []),
    ("{matchLabelKeys: [app]}", []),  # a null selector matches nothing, which is warned of
    ("{affinityEnabled: true}", []),
    ("{affinityEnabled: false, labelSelector: {}}", []),
    ("{labelSelector: {}, topologyKey: zone, namespaces: [a, b], namespaceSelector: {}}", []),
    ("{labelSelector: {}, topologyKey: topology.karmada.io/cluster}", []),
    ("{affinityEnabled: true, labelSelector: {}, matchLabelKeys: [a]}", [f".labelSelector: {TWO_WAYS}", f".matchLabelKeys: {TWO_WAYS}"]),
    ("{labelSelector: {matchExpressions: [{key: a, operator: Gt}]}}", ['.labelSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator']),
    ("{labelSelector: {}, matchLabelKeys: [a, -x]}", [f'.matchLabelKeys[1]: Invalid value: "-x": {NAME}']),
    ("{labelSelector: {}, topologyKey: bad key}", [f'.topologyKey: Invalid value: "bad key": {NAME}']),
    ("{labelSelector: {}, namespaces: [a, b.c]}", ['.namespaces[1]: Invalid value: "b.c": must not contain dots']),
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}", [".namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
])  # fmt: skip
@pytest.mark.parametrize("sign", ["workloadAffinity", "workloadAntiAffinity"])
def test_term(term, wrong, sign):
    required = writing.policy({sign: {writing.REQUIRED: [writing.read(term)]}})
    assert writing.held_against(required, f"spec.placement.{sign}.{writing.REQUIRED}[0]") == wrong
    preferred = writing.policy({sign: {writing.PREFERRED: [{"weight": 1, "workloadAffinityTerm": writing.read(term)}]}})
    path = f"spec.placement.{sign}.{writing.PREFERRED}[0].workloadAffinityTerm"
    assert writing.held_against(preferred, path) == wrong


@pytest.mark.parametrize("weight, wrong", [(1, []), (100, []), (0, ["0"]), (101, ["101"]), (-1, ["-1"])])
def test_weight(weight, wrong):
    item = {"weight": weight, "workloadAffinityTerm": {"labelSelector": {}}}
    obj = writing.policy({"workloadAntiAffinity": {writing.PREFERRED: [item]}})
    path = f"spec.placement.workloadAntiAffinity.{writing.PREFERRED}[0].weight"
    assert writing.held_against(obj) == [
        f"{path}: Invalid value: {shown}: must be in the range 1-100" for shown in wrong
    ]
