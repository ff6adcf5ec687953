"""What the schema of policies refuses, beside the webhook."""

import pytest

from bayplan.validating import admission
from validating import writing

TERM = ".placement.clusterAffinities[0]"
WEIGHT = ".placement.replicaScheduling.weightPreference.staticWeightList[0]"


@pytest.mark.parametrize("spec, wrong", [
    ("{}", []),
    ("{resourceSelectors: []}", [".resourceSelectors: Invalid value: 0: spec.resourceSelectors in body should have at least 1 items"]),
    ("{resourceSelectors: null}", [".resourceSelectors: Required value"]),
    ("{resourceSelectors: [{name: x}]}", [".resourceSelectors[0].apiVersion: Required value", ".resourceSelectors[0].kind: Required value"]),
    ("{placement: {clusterAffinities: [{affinityName: " + "y" * 32 + "}]}}", []),
    ("{placement: {clusterAffinities: [{affinityName: " + "y" * 33 + "}]}}", [f"{TERM}.affinityName: Too long: may not be more than 32 bytes"]),
    ("{placement: {clusterAffinities: [{affinityName: a, overflowAffinities: [{affinityName: " + "y" * 33 + "}]}]}}", [f"{TERM}.overflowAffinities[0].affinityName: Too long: may not be more than 32 bytes"]),
    ("{placement: {clusterAffinities: [{clusterNames: [m1]}]}}", [f"{TERM}.affinityName: Required value"]),
    ("{placement: {spreadConstraints: [{spreadByField: rack}]}}", ['.placement.spreadConstraints[0].spreadByField: Unsupported value: "rack": supported values: "cluster", "region", "zone", "provider"']),
    ("{placement: {replicaScheduling: {replicaSchedulingType: Split}}}", ['.placement.replicaScheduling.replicaSchedulingType: Unsupported value: "Split": supported values: "Duplicated", "Divided"']),
    ("{placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}}", [f"{WEIGHT}.weight: Invalid value: 0: spec{WEIGHT}.weight in body should be greater than or equal to 1"]),
    ("{placement: {replicaScheduling: {weightPreference: {staticWeightList: [{}]}}}}", [f"{WEIGHT}.targetCluster: Required value", f"{WEIGHT}.weight: Required value"]),
    ("{preemption: Sometimes}", ['.preemption: Unsupported value: "Sometimes": supported values: "Always", "Never"']),
    ("{failover: {application: {purgeMode: Later}}}", [".failover.application.decisionConditions: Required value", '.failover.application.purgeMode: Unsupported value: "Later": supported values: "Directly", "Gracefully", "Never", "Immediately", "Graciously"']),
    ("{preemption: 3}", []),  # cannot be decoded, which is told elsewhere
])  # fmt: skip
def test_schema(spec, wrong):
    obj = writing.policy()
    obj["spec"].update(writing.read(spec))
    assert [str(cause).removeprefix("spec") for cause in admission.validate_schema(obj)] == wrong


@pytest.mark.parametrize("obj", [writing.pod(), writing.binding({}), {"kind": "ConfigMap"}])
def test_other_kinds_have_other_schemas(obj):
    assert admission.validate_schema(obj) == []
