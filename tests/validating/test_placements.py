"""Placements: the rules of Karmada, and the workload affinity terms that Karmada does not have."""

import pytest

from validating import objects

NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
STRATEGY = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"
AGGREGATED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
FIELD = "fieldSelector: {matchExpressions: [{key: %s, operator: %s, values: [x]}]}"
OVERFLOW_NAME = "overflow affinity name must be unique and must not duplicate the primary group's affinityName"


def causes_of(placement):
    return objects.causes_of(objects.policy(placement), "spec.placement")


@pytest.mark.parametrize("placement, wrong", [
    ("{}", []),
    ("{clusterAffinity: {clusterNames: [m1, m1]}}", []),  # whether the clusters exist is not validated
    ("{clusterAffinity: {labelSelector: {matchExpressions: [{key: -x, operator: Foo}]}}}", []),  # nor are the labels
    ("{clusterAffinity: {}, clusterAffinities: [{affinityName: a}]}", [': Invalid value: {"clusterAffinity":{},"clusterAffinities":[{"affinityName":"a"}]}: clusterAffinities cannot co-exist with clusterAffinity']),
    ("{clusterAffinity: {}, clusterAffinities: []}", [': Invalid value: {"clusterAffinity":{}}: clusterAffinities cannot co-exist with clusterAffinity']),
    ("{clusterAffinities: [{affinityName: bad name}]}", [f'.clusterAffinities[0]: Invalid value: "bad name": {NAME}']),
    ("{clusterAffinities: [{}]}", ['.clusterAffinities[0]: Invalid value: "": name part must be non-empty', f'.clusterAffinities[0]: Invalid value: "": {NAME}']),
    (f"{{clusterAffinities: [{{affinityName: {'y' * 33}}}]}}", []),  # only the schema limits the length to 32
    ("{clusterAffinities: [{affinityName: a}, {affinityName: a}]}", ['.clusterAffinities: Invalid value: [{"affinityName":"a"},{"affinityName":"a"}]: each affinity term in a policy must have a unique name']),
    (f"{{clusterAffinity: {{{FIELD % ('rack', 'In')}}}}}", ['.clusterAffinity.fieldSelector: Invalid value: {"matchExpressions":[{"key":"rack","operator":"In","values":["x"]}]}: unsupported key "rack", must be provider, region, or zone']),
    (f"{{clusterAffinities: [{{affinityName: a, {FIELD % ('zone', 'Gt')}}}]}}", ['.clusterAffinities[0].fieldSelector: Invalid value: {"matchExpressions":[{"key":"zone","operator":"Gt","values":["x"]}]}: unsupported operator "Gt", must be In or NotIn']),
    (f"{{clusterAffinity: {{{FIELD % ('zone', 'NotIn')}}}}}", []),
])  # fmt: skip
def test_cluster_affinity(placement, wrong):
    assert causes_of(placement) == wrong


@pytest.mark.parametrize("scheduling, wrong", [
    (AGGREGATED, []),
    ("replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}", []),
    ("replicaScheduling: {weightPreference: {dynamicWeight: AvailableReplicas}}", []),  # Divided and Weighted are the defaults
    ("replicaScheduling: {replicaDivisionPreference: Aggregated}", []),
    ("replicaScheduling: {replicaSchedulingType: Duplicated}", [STRATEGY]),
    ("replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}", [STRATEGY]),
    ("replicaScheduling: {replicaSchedulingType: Divided}", [STRATEGY]),
    ("replicaScheduling: null", [STRATEGY]),
])  # fmt: skip
def test_overflow_requires_a_strategy_that_counts_capacity(scheduling, wrong):
    terms = "clusterAffinities: [{affinityName: a, clusterNames: [m1], overflowAffinities: []}]"
    found = causes_of(f"{{{terms}, {scheduling}}}")
    assert found == [f".clusterAffinities[0].overflowAffinities: Invalid value: []: {text}" for text in wrong]


@pytest.mark.parametrize("term, wrong", [
    ("clusterNames: [m1], overflowAffinities: [{affinityName: b}]", []),
    ("exclude: [m1], overflowAffinities: [{affinityName: b}]", []),
    ("overflowAffinities: [{affinityName: b}]", ['.overflowAffinities: Invalid value: [{"affinityName":"b"}]: overflowAffinities can only be used together with the inline ClusterAffinity']),
    ("clusterNames: [], overflowAffinities: [{affinityName: b}]", ['.overflowAffinities: Invalid value: [{"affinityName":"b"}]: overflowAffinities can only be used together with the inline ClusterAffinity']),
    ("labelSelector: {}, overflowAffinities: [{affinityName: -x}]", [f'.overflowAffinities[0].affinityName: Invalid value: "-x": {NAME}']),
    ("labelSelector: {}, overflowAffinities: [{affinityName: a}]", [f'.overflowAffinities[0].affinityName: Invalid value: "a": {OVERFLOW_NAME}']),
    ("labelSelector: {}, overflowAffinities: [{affinityName: b}, {affinityName: b}]", [f'.overflowAffinities[1].affinityName: Invalid value: "b": {OVERFLOW_NAME}']),
    (f"labelSelector: {{}}, overflowAffinities: [{{affinityName: b, {FIELD % ('rack', 'In')}}}]", ['.overflowAffinities[0].fieldSelector: Invalid value: {"matchExpressions":[{"key":"rack","operator":"In","values":["x"]}]}: unsupported key "rack", must be provider, region, or zone']),
])  # fmt: skip
def test_overflow_tiers(term, wrong):
    obj = objects.policy(f"{{clusterAffinities: [{{affinityName: a, {term}}}], {AGGREGATED}}}")
    assert objects.causes_of(obj, "spec.placement.clusterAffinities[0]") == wrong


@pytest.mark.parametrize("constraints, wrong", [
    ("[{}]", []),
    ("[{spreadByLabel: rack, maxGroups: 1}]", []),
    ("[{spreadByField: cluster, minGroups: 2, maxGroups: 2}, {spreadByField: region}]", []),
    ("[{spreadByField: cluster, spreadByLabel: rack}]", ['[0]: Invalid value: {"spreadByField":"cluster","spreadByLabel":"rack"}: spreadByLabel should not co-exist with spreadByField']),
    ("[{minGroups: -1}]", ['[0]: Invalid value: {"minGroups":-1}: minGroups lower than 0 is not allowed']),
    ("[{maxGroups: -1}]", ['[0]: Invalid value: {"maxGroups":-1}: maxGroups lower than 0 is not allowed']),
    ("[{maxGroups: 1, minGroups: 2}]", ['[0]: Invalid value: {"maxGroups":1,"minGroups":2}: maxGroups lower than minGroups is not allowed']),
    ("[{maxGroups: 0, minGroups: 2}]", []),  # 0 is no limit here
    ("[{spreadByField: cluster}, {spreadByField: cluster}, {spreadByField: cluster}]", [': Invalid value: [{"spreadByField":"cluster"},{"spreadByField":"cluster"},{"spreadByField":"cluster"}]: multiple cluster spread constraints are not allowed']),  # once is enough
    ("[{spreadByField: zone}]", [': Invalid value: [{"spreadByField":"zone"}]: the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled']),
    ("[{spreadByField: zone}, {}]", [': Invalid value: [{"spreadByField":"zone"},{}]: the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled']),  # judged as written
])  # fmt: skip
def test_spread_constraints(constraints, wrong):
    obj = objects.policy({"spreadConstraints": objects.read(constraints)})
    assert objects.causes_of(obj, "spec.placement.spreadConstraints") == wrong


@pytest.mark.parametrize("affinity, wrong", [
    ("{}", []),
    ("{affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: b}}", []),
    ("{affinity: {groupByLabelKey: -x}}", [f'.affinity.groupByLabelKey: Invalid value: "-x": {NAME}']),
    ("{antiAffinity: {groupByLabelKey: /x}}", ['.antiAffinity.groupByLabelKey: Invalid value: "/x": prefix part must be non-empty']),
    ("{affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}", [': Invalid value: {"affinity":{"groupByLabelKey":"a"},"antiAffinity":{"groupByLabelKey":"a"}}: affinity and antiAffinity must not use the same groupByLabelKey']),
    ("{affinity: {groupByLabelKey: " + "y" * 64 + "}}", [f'.affinity.groupByLabelKey: Invalid value: "{"y" * 64}": name part must be no more than 63 bytes']),
])  # fmt: skip
def test_workload_affinity_groups(affinity, wrong):
    obj = objects.policy({"workloadAffinity": objects.read(affinity)})
    assert objects.causes_of(obj, "spec.placement.workloadAffinity") == wrong


@pytest.mark.parametrize("operator, wrong", [
    ("Exists", []),
    ("", []),
    ("Foo", []),
    ("Lt", ['Unsupported value: "Lt": supported values: "", "Exists", "Equal"']),
    ("Gt", ['Unsupported value: "Gt": supported values: "", "Exists", "Equal"']),
])  # fmt: skip
def test_cluster_tolerations(operator, wrong):
    found = causes_of({"clusterTolerations": [{"key": "k", "operator": operator}]})
    assert found == [f".clusterTolerations[0].operator: {text}" for text in wrong]


@pytest.mark.parametrize("placement, wrong", [
    ("{clusterAffinities: {}}", ['.clusterAffinities: Invalid value: "a mapping": expected a list, got a mapping']),
    ("{spreadConstraints: [{maxGroups: many}]}", ['.spreadConstraints[0].maxGroups: Invalid value: "many": expected a whole number, got text']),
    ("{clusterAffinity: {supplements: [3]}}", [".clusterAffinity.supplements[0]: Invalid value: 3: expected a mapping, got a whole number"]),
])  # fmt: skip
def test_types(placement, wrong):
    assert causes_of(placement) == wrong


# Workload affinity terms


TWO_WAYS = "Forbidden: cannot co-exist with affinityEnabled, which takes the keys that the scheduler is configured with"


@pytest.mark.parametrize("term, wrong", [
    ("{labelSelector: {matchLabels: {app.tier: prod}}, matchLabelKeys: [karmada.io/group]}", []),
    ("{labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [app]}", []),
    ("{matchLabelKeys: [app]}", []),  # a null selector matches nothing, which is a warning
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
@pytest.mark.parametrize("affinity_kind", ["workloadAffinity", "workloadAntiAffinity"])
def test_workload_term(term, wrong, affinity_kind):
    required = objects.policy({affinity_kind: {objects.REQUIRED: [objects.read(term)]}})
    assert objects.causes_of(required, f"spec.placement.{affinity_kind}.{objects.REQUIRED}[0]") == wrong
    preferred = objects.policy(
        {affinity_kind: {objects.PREFERRED: [{"weight": 1, "workloadAffinityTerm": objects.read(term)}]}}
    )
    path = f"spec.placement.{affinity_kind}.{objects.PREFERRED}[0].workloadAffinityTerm"
    assert objects.causes_of(preferred, path) == wrong


@pytest.mark.parametrize("weight, wrong", [(1, []), (100, []), (0, ["0"]), (101, ["101"]), (-1, ["-1"])])
def test_weight_of_a_workload_term(weight, wrong):
    item = {"weight": weight, "workloadAffinityTerm": {"labelSelector": {}}}
    obj = objects.policy({"workloadAntiAffinity": {objects.PREFERRED: [item]}})
    path = f"spec.placement.workloadAntiAffinity.{objects.PREFERRED}[0].weight"
    assert objects.causes_of(obj) == [f"{path}: Invalid value: {shown}: must be in the range 1-100" for shown in wrong]
