"""What Karmada holds against a policy besides its placement."""

import pytest

from validating import writing

NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
OTHER = "namespace of resource selector must be the same as the namespace of the policy"
GRACE = "spec.failover.application.gracePeriodSeconds: Invalid value"
FAILOVER = {"decisionConditions": {"tolerationSeconds": 0}, "purgeMode": "Never"}
IMPORT = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "name": "x"}


@pytest.mark.parametrize("application, wrong", [
    ("{decisionConditions: {}, purgeMode: Never}", []),  # an absent time is filled in by the schema
    ("{decisionConditions: {tolerationSeconds: -1}}", ["spec.failover.application.decisionConditions.tolerationSeconds: Invalid value: -1: must be greater than or equal to 0"]),
    ("{purgeMode: Directly, gracePeriodSeconds: 5}", [f"{GRACE}: 5: only takes effect when purgeMode is gracefully"]),
    ("{purgeMode: Gracefully}", [f"{GRACE}: null: should not be empty when purgeMode is gracefully"]),
    ("{purgeMode: Graciously, gracePeriodSeconds: 0}", [f"{GRACE}: 0: must be greater than 0"]),
    ("{purgeMode: Never, gracePeriodSeconds: -1}", [f"{GRACE}: -1: only takes effect when purgeMode is gracefully", f"{GRACE}: -1: must be greater than 0"]),
    ("{}", []),  # the schema says Gracefully, the mutating webhook 600 seconds
    ("{gracePeriodSeconds: 5}", []),
    ("{statePreservation: {rules: [{aliasLabelName: ok}, {aliasLabelName: -x}]}}", [f'spec.failover.application.statePreservation.rules[1].aliasLabelName: Invalid value: "-x": {NAME}']),
])  # fmt: skip
def test_application_failover(application, wrong):
    obj = writing.policy(propagateDeps=True, failover={"application": writing.read(application)})
    assert writing.held_against(obj) == wrong


def test_cluster_failover_has_labels_too():
    obj = writing.policy(failover={"cluster": {"statePreservation": {"rules": [{"aliasLabelName": "-x"}]}}})
    assert writing.held_against(obj) == [
        f'spec.failover.cluster.statePreservation.rules[0].aliasLabelName: Invalid value: "-x": {NAME}'
    ]


@pytest.mark.parametrize("spec, wrong", [
    ({"failover": {"application": FAILOVER}}, ["spec.propagateDeps: Invalid value: false: application failover is set, propagateDeps must be true"]),
    ({"failover": {"application": FAILOVER}, "resourceSelectors": [IMPORT]}, []),  # Karmada switches it on
    ({"failover": {"application": FAILOVER}, "propagateDeps": True}, []),
    ({"failover": {"cluster": {}}}, []),
    ({"preemption": "Always", "resourceSelectors": [{"kind": "Deployment"}]}, ['spec.resourceSelectors[0].name: Invalid value: "": name cannot be empty if preemption is Always, the empty name may cause unexpected resources preemption']),
    ({"preemption": "Never", "resourceSelectors": [{"kind": "Deployment"}]}, []),
    ({"suspension": {"dispatching": True, "dispatchingOnClusters": {"clusterNames": ["m1"]}}}, ['spec.suspension.suspension: Invalid value: {"dispatching":true,"dispatchingOnClusters":{"clusterNames":["m1"]}}: suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames']),
    ({"suspension": {"dispatching": False, "dispatchingOnClusters": {"clusterNames": ["m1"]}}}, []),
    ({"suspension": {"dispatching": True, "dispatchingOnClusters": {}}}, []),
])  # fmt: skip
def test_policy(spec, wrong):
    assert writing.held_against(writing.policy(**spec)) == wrong


@pytest.mark.parametrize("kind, namespace, wrong", [
    ("PropagationPolicy", "default", []),
    ("PropagationPolicy", "", []),  # the policy's own is filled in
    ("PropagationPolicy", "other", [f'spec.resourceSelectors[0].namespace: Invalid value: "other": {OTHER}']),
    ("ClusterPropagationPolicy", "other", []),
])  # fmt: skip
def test_a_policy_selects_in_its_own_namespace(kind, namespace, wrong):
    obj = writing.policy(kind=kind, resourceSelectors=[{"kind": "Deployment", "name": "x", "namespace": namespace}])
    assert writing.held_against(obj) == wrong


def test_a_policy_without_a_namespace_may_be_meant_for_any():
    obj = writing.policy(resourceSelectors=[{"kind": "Deployment", "namespace": "other"}])
    del obj["metadata"]["namespace"]
    assert writing.held_against(obj) == []


def test_policies_of_other_groups_are_somebody_elses():
    obj = {**writing.policy("{spreadConstraints: [{minGroups: -1}]}"), "apiVersion": "policy/v1"}
    assert writing.held_against(obj) == []
