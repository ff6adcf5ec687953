"""What Karmada holds against a placement."""

import pytest

from validating import writing

NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
STRATEGY = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"
AGGREGATED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
FIELD = "fieldSelector: {matchExpressions: [{key: %s, operator: %s, values: [x]}]}"
OVERFLOW_NAME = "overflow affinity name must be unique and must not duplicate the primary group's affinityName"


def held_against(placement):
    return writing.held_against(writing.policy(placement), "spec.placement")


@pytest.mark.parametrize("placement, wrong", [
    ("{}", []),
    ("{clusterAffinity: {clusterNames: [m1, m1]}}", []),  # nobody asks whether the clusters are there
    ("{clusterAffinity: {labelSelector: {matchExpressions: [{key: -x, operator: Foo}]}}}", []),  # nor looks at labels
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
    assert held_against(placement) == wrong


@pytest.mark.parametrize("scheduling, wrong", [
    (AGGREGATED, []),
    ("replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}", []),
    ("replicaScheduling: {weightPreference: {dynamicWeight: AvailableReplicas}}", []),  # Divided and Weighted are filled in
    ("replicaScheduling: {replicaDivisionPreference: Aggregated}", []),
    ("replicaScheduling: {replicaSchedulingType: Duplicated}", [STRATEGY]),
    ("replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}", [STRATEGY]),
    ("replicaScheduling: {replicaSchedulingType: Divided}", [STRATEGY]),
    ("replicaScheduling: null", [STRATEGY]),
])  # fmt: skip
def test_overflow_needs_a_strategy_that_counts_capacity(scheduling, wrong):
    terms = "clusterAffinities: [{affinityName: a, clusterNames: [m1], overflowAffinities: []}]"
    found = held_against(f"{{{terms}, {scheduling}}}")
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
    obj = writing.policy(f"{{clusterAffinities: [{{affinityName: a, {term}}}], {AGGREGATED}}}")
    assert writing.held_against(obj, "spec.placement.clusterAffinities[0]") == wrong


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
    obj = writing.policy({"spreadConstraints": writing.read(constraints)})
    assert writing.held_against(obj, "spec.placement.spreadConstraints") == wrong


@pytest.mark.parametrize("affinity, wrong", [
    ("{}", []),
    ("{affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: b}}", []),
    ("{affinity: {groupByLabelKey: -x}}", [f'.affinity.groupByLabelKey: Invalid value: "-x": {NAME}']),
    ("{antiAffinity: {groupByLabelKey: /x}}", ['.antiAffinity.groupByLabelKey: Invalid value: "/x": prefix part must be non-empty']),
    ("{affinity: {groupByLabelKey: a}, antiAffinity: {groupByLabelKey: a}}", [': Invalid value: {"affinity":{"groupByLabelKey":"a"},"antiAffinity":{"groupByLabelKey":"a"}}: affinity and antiAffinity must not use the same groupByLabelKey']),
    ("{affinity: {groupByLabelKey: " + "y" * 64 + "}}", [f'.affinity.groupByLabelKey: Invalid value: "{"y" * 64}": name part must be no more than 63 bytes']),
])  # fmt: skip
def test_workload_affinity_groups(affinity, wrong):
    obj = writing.policy({"workloadAffinity": writing.read(affinity)})
    assert writing.held_against(obj, "spec.placement.workloadAffinity") == wrong


@pytest.mark.parametrize("operator, wrong", [
    ("Exists", []),
    ("", []),
    ("Foo", []),
    ("Lt", ['Unsupported value: "Lt": supported values: "", "Exists", "Equal"']),
    ("Gt", ['Unsupported value: "Gt": supported values: "", "Exists", "Equal"']),
])  # fmt: skip
def test_cluster_tolerations(operator, wrong):
    found = held_against({"clusterTolerations": [{"key": "k", "operator": operator}]})
    assert found == [f".clusterTolerations[0].operator: {text}" for text in wrong]


@pytest.mark.parametrize("placement, wrong", [
    ("{clusterAffinities: {}}", ['.clusterAffinities: Invalid value: "a mapping": expected a list, got a mapping']),
    ("{spreadConstraints: [{maxGroups: many}]}", ['.spreadConstraints[0].maxGroups: Invalid value: "many": expected a whole number, got text']),
    ("{clusterAffinity: {supplements: [3]}}", [".clusterAffinity.supplements[0]: Invalid value: 3: expected a mapping, got a whole number"]),
])  # fmt: skip
def test_shape(placement, wrong):
    assert held_against(placement) == wrong
