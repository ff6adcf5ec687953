"""Which objects of the input are resource templates, and which of them have replicas."""

import msgspec
import pytest

from bayplan.controllers import resource_interpreter
from bayplan.controllers.desired_state import DesiredState
from bayplan.wire import kinds

NEVER_PROPAGATED = {
    "Node", "Cluster", "PropagationPolicy", "ClusterPropagationPolicy", "ResourceBinding", "ClusterResourceBinding",
    "WorkloadRebalancer", "ClusterTaintPolicy", "ResourceInterpreterCustomization",
    "ResourceInterpreterWebhookConfiguration",
}  # fmt: skip
INTERPRETED = {"Deployment", "ReplicaSet", "StatefulSet", "Job", "Pod"}


@pytest.fixture
def inputs():
    """One object of every kind that is decoded."""
    state = DesiredState()
    for row in kinds.decoded():
        state.list_of(row).append(written(row))
    return state


def written(row):
    # A binding and a policy need a spec; every other field of every kind has a default.
    metadata = {"name": "a", "namespace": "" if row.cluster_wide else "web"}
    value = {"apiVersion": row.api_version, "kind": row.kind, "metadata": metadata, "spec": {}}
    return msgspec.convert(value, row.wire_type)


def test_every_kind_that_is_decoded_is_propagated_except_targets_and_karmadas_own(inputs):
    decoded = {row.kind for row in kinds.decoded()}
    assert {one.kind for one in resource_interpreter.templates_of(inputs)} == decoded - NEVER_PROPAGATED


def test_an_object_is_one_template(inputs):
    keys = [one.key for one in resource_interpreter.templates_of(inputs)]
    assert len(keys) == len(set(keys))
    assert ("scheduling.k8s.io/v1", "PriorityClass", "", "a") in keys
    assert ("policy/v1", "PodDisruptionBudget", "web", "a") in keys


def test_karmada_knows_the_replicas_of_some_kinds(inputs):
    found = list(resource_interpreter.templates_of(inputs))
    assert {one.kind for one in found if one.interpreted} == INTERPRETED
    assert {one.kind for one in found if one.replicas} == INTERPRETED


def test_pods_that_were_read_apart_are_templates_too():
    pod = written(kinds.KINDS[kinds.POD])
    (found,) = resource_interpreter.templates_of(DesiredState(), [pod])
    assert (found.kind, found.interpreted, found.replicas) == ("Pod", True, 1)
