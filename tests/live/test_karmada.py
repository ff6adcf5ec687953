"""Karmada's kinds on the test server."""

import pytest

from live.admin import ApiError

POLICY = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "PropagationPolicy",
    "metadata": {"name": "web"},
    "spec": {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
        "placement": {"clusterAffinity": {"clusterNames": ["member-1"]}},
    },
}


async def test_a_policy_can_be_created(karmada_server, admin, namespace):
    await admin.create(POLICY, namespace=namespace)
    stored = await admin.get("policy.karmada.io/v1alpha1/propagationpolicies", "web", namespace)
    assert stored["spec"]["placement"] == POLICY["spec"]["placement"]
    assert stored["spec"]["conflictResolution"] == "Abort"  # a default of the definition


async def test_bindings_and_clusters_are_known(karmada_server, admin, namespace):
    assert await admin.items("work.karmada.io/v1alpha2/resourcebindings", namespace) == []


async def test_a_policy_that_violates_the_definition_is_rejected(karmada_server, admin, namespace):
    wrong = {**POLICY, "spec": {"placement": {}}}
    with pytest.raises(ApiError, match="resourceSelectors") as rejected:
        await admin.create(wrong, namespace=namespace)
    assert rejected.value.status == 422
