"""Bindings of templates and policies, as Karmada v1.18.2 creates them."""

import msgspec
import pytest

from bayplan.controllers import binding_detector, replica_requirements, resource_interpreter
from bayplan.controllers.policy_index import PolicyIndex
from bayplan.wire.controllers import Controller
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.placements import PropagationPolicy
from bayplan.wire.pods import Pod, PodSpec

# Templates


def job(**spec):
    template = {"spec": {"containers": [{"name": "c"}]}}
    return msgspec.convert(
        {"kind": "Job", "apiVersion": "batch/v1", "spec": {"template": template, **spec}}, Controller
    )


@pytest.mark.parametrize("spec, replicas", [
    ({}, 1),  # defaulted by an API server
    ({"parallelism": 3}, 3),
    ({"parallelism": 3, "completions": 2}, 2),
    ({"parallelism": 2, "completions": 5}, 2),
    ({"completions": 5}, 1),
    ({"parallelism": 0}, 0),
])  # fmt: skip
def test_replicas_of_a_job(spec, replicas):
    assert resource_interpreter.template_of_controller(job(**spec)).replicas == replicas


@pytest.mark.parametrize("spec, requests", [
    ({"containers": [{"resources": {"requests": {"cpu": "1500m"}}}, {"resources": {"requests": {"cpu": "0.5"}}}]},
     {"cpu": "2"}),
    ({"containers": [{"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]},
     {"cpu": "1", "memory": "1Gi"}),  # a limit replaces a missing request
    ({"containers": [{"resources": {"requests": {"memory": "1"}}}],
      "initContainers": [{"resources": {"requests": {"memory": "5"}}}, {"resources": {"requests": {"memory": "3"}}}]},
     {"memory": "5"}),
    ({"containers": [{"resources": {"requests": {"memory": "2"}}}], "overhead": {"memory": "3"}}, {"memory": "5"}),
    ({"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1", "nonsense": "1", "cpu": "0"}}}]},
     {"nvidia.com/gpu": "1"}),
    ({"containers": [{"resources": {"requests": {"memory": "1"}}}],
      "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"memory": "1"}}}]},
     {"memory": "1"}),  # Karmada does not treat it as a sidecar
    ({"containers": [{}], "resources": {"requests": {"cpu": "1"}}}, None),  # Karmada ignores pod-level requests
    ({"containers": [{}], "nodeSelector": {"disk": "ssd"}}, {}),
    ({"containers": [{}], "tolerations": [{"operator": "Exists"}]}, {}),
    ({"containers": [{}], "tolerations": []}, None),
    ({}, None),
])  # fmt: skip
def test_the_requests_of_one_replica(spec, requests):
    found = replica_requirements.requirements_of(msgspec.convert(spec, PodSpec))
    assert (found if found is None else found.resource_request or {}) == requests


def test_a_pod_has_one_replica():
    assert resource_interpreter.template_of_pod(Pod(api_version="v1", kind="Pod")).replicas == 1


# The choice of policy


def template(name="shop", namespace="web", kind="Deployment", version="apps/v1", **meta):
    return resource_interpreter.ResourceTemplate(
        api_version=version, kind=kind, metadata=ObjectMeta(name=name, namespace=namespace, **meta)
    )


def policy(name, selector=None, namespace="web", **spec):
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", **(selector or {})}
    spec = {"resourceSelectors": [selector], **spec}
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, PropagationPolicy)


BY_NAME, BY_LABEL = {"name": "shop"}, {"labelSelector": {"matchLabels": {"app": "shop"}}}


@pytest.mark.parametrize("policies, chosen", [
    ([policy("b"), policy("a")], "a"),
    ([policy("a"), policy("b", BY_LABEL)], "b"),
    ([policy("a", BY_LABEL), policy("b", BY_NAME)], "b"),
    ([policy("a", BY_NAME), policy("b", priority=1)], "b"),  # the priority is compared before the explicitness
    ([policy("a", priority=-1), policy("b")], "b"),
    ([policy("a", BY_NAME, namespace=""), policy("b")], "b"),  # a policy of the namespace takes precedence
    ([policy("a", BY_NAME, namespace="", priority=9), policy("b")], "b"),
    ([policy("a", namespace=""), policy("b", BY_LABEL, namespace="")], "b"),
    ([policy("a", namespace="other")], None),
    ([policy("a", {"namespace": "other"}, namespace="")], None),
    ([policy("a", {"namespace": "web"}, namespace="")], "a"),
    ([policy("a", {"kind": "StatefulSet"})], None),
    ([policy("a", {"apiVersion": "apps/v1beta1"})], None),
    ([policy("a", {"name": "other", **BY_LABEL})], None),  # with a name, the labels are ignored
    ([policy("a", {"labelSelector": {}})], "a"),
    ([], None),
])  # fmt: skip
def test_which_policy_selects_a_template(policies, chosen):
    found = PolicyIndex(policies).policy_for(template(labels={"app": "shop"}))
    assert (found and found.metadata.name) == chosen


def test_policies_that_are_being_deleted_match_nothing():
    going = policy("a")
    going.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert PolicyIndex([going]).policy_for(template()) is None


def test_a_claimed_template_stays_with_its_policy():
    claimed = template(
        labels={binding_detector.NAMESPACED_ID: "1"},
        annotations={binding_detector.CLAIMED_NAMESPACE: "web", binding_detector.CLAIMED_NAME: "b"},
    )
    assert PolicyIndex([policy("a", BY_NAME, priority=5), policy("b")]).policy_for(claimed).metadata.name == "b"
    assert PolicyIndex([policy("a", BY_NAME)]).policy_for(claimed) is None
    wide = template(
        labels={binding_detector.CLUSTER_WIDE_ID: "1"}, annotations={binding_detector.CLAIMED_CLUSTER_WIDE: "c"}
    )
    assert PolicyIndex([policy("a"), policy("c", namespace="")]).policy_for(wide).metadata.name == "c"


def test_cluster_wide_templates_are_selected_by_cluster_wide_policies():
    role = template("system:x", "", "ClusterRole", "rbac.authorization.k8s.io/v1")
    selector = {"apiVersion": role.api_version, "kind": role.kind}
    assert PolicyIndex([policy("a", selector)]).policy_for(role) is None
    made = binding_detector.binding_for(role, policy("b", selector, namespace=""), {})
    assert (made.kind, made.metadata.namespace, made.metadata.name) == (
        "ClusterResourceBinding",
        "",
        "system.x-clusterrole",
    )


@pytest.mark.parametrize("namespace, propagated", [
    ("web", True), ("", True), ("karmada-system", False), ("karmada-es-a", False), ("kube-system", False),
])  # fmt: skip
def test_system_namespaces_are_not_propagated(namespace, propagated):
    assert binding_detector.is_propagated(template(namespace=namespace)) is propagated


# The binding


@pytest.mark.parametrize("given, filled", [
    ({"spreadConstraints": [{}]}, {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1}]}),
    ({"spreadConstraints": [{"spreadByLabel": "rack", "maxGroups": 2}]},
     {"spreadConstraints": [{"spreadByLabel": "rack", "maxGroups": 2, "minGroups": 1}]}),
    ({"replicaScheduling": {}},
     {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}),
    ({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
     {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}),
    ({"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}},
     {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}),
    ({}, {}),
])  # fmt: skip
def test_defaults_of_a_placement(given, filled):
    assert binding_detector.placement_with_defaults(given) == filled


@pytest.mark.parametrize("terms, labels, groups", [
    ({"affinity": {"groupByLabelKey": "app"}}, {"app": "x"}, ("app=x", "")),
    ({"antiAffinity": {"groupByLabelKey": "app"}}, {"app": "x"}, ("", "app=x")),
    ({"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "b"}}, {"a": "1", "b": ""},
     ("a=1", "b=")),
    ({"affinity": {"groupByLabelKey": "app"}}, {}, None),
    ({}, {"app": "x"}, None),
])  # fmt: skip
def test_affinity_groups_are_derived_from_the_template_labels(terms, labels, groups):
    made = binding_detector.binding_for(template(labels=labels), policy("a", placement={"workloadAffinity": terms}), {})
    found = made.spec.workload_affinity_groups
    assert (found and (found.affinity_group, found.anti_affinity_group)) == groups


def test_the_priority_is_that_of_the_policys_priority_class():
    wish = {"schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}}
    assert (
        binding_detector.binding_for(template(), policy("a", **wish), {"high": 7}).spec.schedule_priority.priority == 7
    )
    assert (
        binding_detector.binding_for(template(namespace=""), policy("a", **wish), {"high": 7}).spec.schedule_priority
        is None
    )
