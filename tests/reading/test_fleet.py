"""The input of a fleet: what is read, what is in the index, what is pending, and the notes."""

import json

import pytest

from bayplan import errors
from bayplan.model.semantics import UPSTREAM
from bayplan.reading import cluster, files, fleet

CLUSTER = """\
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec: {syncMode: Push}
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}]
  resourceSummary: {allocatable: {cpu: "10", pods: "100"}}
"""
SHOP = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: web, labels: {app: shop, tier: front}}
spec:
  replicas: 4
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}
"""
POLICY = """\
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: everywhere, namespace: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: %s
"""
DIVIDED = "{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}"


def fleet_in(load, text, **options):
    return fleet.fleet_of(load(text), **options)


# Reading


def test_every_kind_of_a_fleet_is_read(load):
    found = load(
        CLUSTER % "a"
        + POLICY % "{}"
        + """\
        ---
        {apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: all}, spec: {}}
        ---
        {apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: b, namespace: web}}
        ---
        {apiVersion: work.karmada.io/v1alpha2, kind: ClusterResourceBinding, metadata: {name: c}}
        ---
        {apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: r}}
        ---
        {apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: f, namespace: web}}
        ---
        {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:x"}}
        """.replace("        ", "")
    )
    assert [one.metadata.name for one in found.clusters] == ["a"]
    assert [(one.kind, one.metadata.namespace) for one in found.policies] == [
        ("PropagationPolicy", "web"),
        ("ClusterPropagationPolicy", ""),
    ]
    assert [(one.kind, one.metadata.namespace) for one in found.bindings] == [
        ("ResourceBinding", "web"),
        ("ClusterResourceBinding", ""),
    ]
    assert len(found.rebalancers) == 1
    assert [(one.kind, one.metadata.namespace) for one in found.templates] == [
        ("FlinkDeployment", "web"),
        ("ClusterRole", ""),
    ]


AT = "a.yaml:7, PropagationPolicy web/everywhere: spec.placement"


@pytest.mark.parametrize("placement, reported", [
    ("{clusterAfinity: {}}", ".clusterAfinity: unknown field, did you mean clusterAffinity?"),
    ("{spreadConstraints: [{spreadByField: cluster, maxgroups: 1}]}",
     ".spreadConstraints[0].maxgroups: unknown field, did you mean maxGroups?"),
    ("{clusterAffinity: {clusterNames: eu-1}}",
     '.clusterAffinity.clusterNames: expected a list, got the string "eu-1"'),
])  # fmt: skip
def test_misspelt_fields_are_reported_with_the_nearest_name(placement, reported, faults_of):
    assert faults_of(POLICY % placement) == [AT + reported]


@pytest.mark.parametrize("version, kind, reported", [
    ("policy.karmada.io/v1alpha1", "PropagationPolcy", "did you mean PropagationPolicy?"),
    ("work.karmada.io/v1alpha1", "ResourceBinding", "expected work.karmada.io/v1alpha2 for a ResourceBinding"),
])  # fmt: skip
def test_misspelt_kinds_are_reported(version, kind, reported, faults_of):
    (said,) = faults_of(f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: x}}}}")
    assert reported in said


@pytest.mark.parametrize("placement", [
    "{workloadAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}, topologyKey: zone}]}}",
    "{affinityStrategy: {mode: Inherited}, preferredClusterAffinities: [{affinityName: a}]}",
    "{clusterAffinity: {clusterNames: [a], supplements: [{clusterNames: [b]}]}}",
])  # fmt: skip
def test_bayplans_own_fields_are_accepted(placement, load):
    assert load(POLICY % placement).policies


def test_kinds_of_other_api_groups_are_skipped(load):
    found = load("{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: m}}")
    assert (found.clusters, found.unknown) == ([], {"Cluster": 1})


def test_items_of_a_typed_list_have_its_kind(load):
    item = {"metadata": {"name": "all", "namespace": "", "uid": "1"}, "spec": {}}
    listed = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicyList", "items": [item]}
    assert load(json.dumps(listed), "a.json").policies[0].kind == "ClusterPropagationPolicy"


def test_a_malformed_template_is_a_fault_only_in_a_fleet(load):
    broken = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {a: 1}}}\n"
    assert not load(broken).clusters
    with pytest.raises(errors.InputError, match=r"ConfigMap default/c: metadata\.labels"):
        fleet_in(load, CLUSTER % "a" + broken)


def test_in_a_fleet_controllers_create_no_pods(load):
    found = fleet_in(load, CLUSTER % "a" + SHOP + POLICY % DIVIDED)
    assert [workload.key for workload in found.pending] == ["web/shop-deployment"]
    assert list(found.index.slots.by_name) == ["a"]


def test_policies_without_clusters_are_noted(load):
    found = cluster.cluster_of(load(SHOP + POLICY % DIVIDED))
    assert len(found.pending) == 4
    assert any("are ignored without clusters" in note for note in found.notes)


# Bindings


def test_the_binding_of_a_template(load):
    (workload,) = fleet_in(load, CLUSTER % "a" + SHOP + POLICY % DIVIDED).pending
    binding = workload.binding
    assert (workload.key, binding.kind, binding.name, binding.replicas) == (
        "web/shop-deployment",
        "Deployment",
        "shop",
        4,
    )
    assert dict(binding.demand.requests) == {"cpu": 0.5}
    assert workload.labels == {"app": "shop", "tier": "front"}


def test_a_binding_is_updated_from_its_template_and_policy(load):
    binding = (
        """\
    ---
    apiVersion: work.karmada.io/v1alpha2
    kind: ResourceBinding
    metadata: {name: shop-deployment, namespace: web}
    spec:
      resource: {apiVersion: apps/v1, kind: Deployment, namespace: web, name: shop}
      replicas: 2
      placement: {}
      clusters: [{name: a, replicas: 2}]
    """.replace("\n    ", "\n").strip()
        + "\n"
    )
    (workload,) = fleet_in(load, CLUSTER % "a" + SHOP + POLICY % DIVIDED + binding).pending
    assert (workload.binding.replicas, workload.binding.previous) == (4, (("a", 2),))
    assert workload.binding.placement.division.strategy == "Aggregated"
    lazy = (POLICY % DIVIDED).replace("  placement", "  activationPreference: Lazy\n  placement")
    (workload,) = fleet_in(load, CLUSTER % "a" + SHOP + lazy + binding).pending
    assert (workload.binding.replicas, workload.binding.placement.division.strategy) == (4, "Duplicated")


# The loaded fleet


BOUND = """\
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: shop-deployment
  namespace: web
  annotations: {policy.karmada.io/applied-placement: '%(placement)s'}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: web, name: shop}
  replicas: 4
  placement: %(placement)s
  clusters: [{name: a, replicas: 4}]
  %(more)s
status: {lastScheduledTime: "2026-01-05T00:00:00Z"}
"""
REBALANCER = """\
---
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: now%s}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: web, name: shop}]}
"""


WEIGHTED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}


def bound(more=""):
    return BOUND % {"placement": json.dumps(WEIGHTED), "more": more}


def test_scheduled_bindings_are_in_the_index_and_not_pending(load):
    found = fleet_in(load, CLUSTER % "a" + bound())
    assert found.pending == []
    assert found.index.records["web/shop-deployment"].shares == (("a", 4),)


@pytest.mark.parametrize("date, fresh", [
    ("", True),
    (", creationTimestamp: '2026-01-06T00:00:00Z'", True),
    (", creationTimestamp: '2026-01-04T00:00:00Z'", False),  # already processed
])  # fmt: skip
def test_a_rebalancer_makes_bindings_fresh(date, fresh, load):
    found = fleet_in(load, CLUSTER % "a" + bound() + REBALANCER % date)
    assert [workload.binding.fresh for workload in found.pending] == [True] * fresh


def test_notes_of_a_fleet(load):
    found = fleet_in(
        load,
        CLUSTER % "a"
        + bound("suspension: {scheduling: true}")
        + SHOP.replace("name: shop", "name: lone").replace("namespace: web", "namespace: other")
        + (POLICY % "{clusterAffinity: {clusterNames: [a, b, c]}}").replace("kind: Deployment", "kind: StatefulSet")
        + (REBALANCER % "").replace("name: shop", "name: absent")
        + "---\n{apiVersion: v1, kind: Node, metadata: {name: node-1}}\n",
    )
    assert found.notes == [
        "not scheduled, because they are suspended: 1 binding",
        "not propagated, because no policy selects them: 1 Deployment",
        "1 Node is ignored: with Cluster objects in the input, workloads are placed on clusters",
        "a WorkloadRebalancer names Deployment web/absent, which has no binding here",
        "PropagationPolicy web/everywhere names clusters that are not in the input: b, c",
    ]
    assert found.pending == []


CLUSTER_OBJECTS = """\
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 5}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: a}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: a}, spec: {drivers: []}}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}, spec: {attacher: d, nodeName: node-1}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: a, namespace: web}, storageClassName: fast}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}, provisioner: d}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
"""
SELECTS_CLUSTER_OBJECTS = """\
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors:
  - {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, name: a}
  - {apiVersion: storage.k8s.io/v1, kind: CSIDriver}
  - {apiVersion: storage.k8s.io/v1, kind: CSINode}
  - {apiVersion: storage.k8s.io/v1, kind: VolumeAttachment}
  - {apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity}
  - {apiVersion: storage.k8s.io/v1, kind: StorageClass}
  - {apiVersion: v1, kind: PersistentVolume}
  - {apiVersion: v1, kind: Namespace}
  placement: {}
"""


def test_objects_of_a_cluster_itself_are_propagated_if_a_policy_selects_them(load):
    found = fleet_in(load, CLUSTER % "a" + CLUSTER_OBJECTS + SELECTS_CLUSTER_OBJECTS)
    assert [(one.namespace, one.name) for one in found.pending] == [
        ("", "a-csidriver"), ("", "a-csinode"), ("", "a-namespace"), ("", "a-persistentvolume"),
        ("", "a-priorityclass"), ("", "a-storageclass"), ("", "a-volumeattachment"), ("web", "a-csistoragecapacity"),
    ]  # fmt: skip
    assert found.notes == ["8 bindings were created from templates and their policies"]


def test_objects_of_a_cluster_itself_are_not_missed_if_no_policy_selects_them(load):
    role = "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}\n"
    found = fleet_in(load, CLUSTER % "a" + CLUSTER_OBJECTS + role)
    assert found.notes == ["not propagated, because no policy selects them: 1 ClusterRole"]


def test_a_binding_has_the_annotation_of_its_policy(load):
    text = (POLICY % DIVIDED).replace(
        "namespace: web}",
        "namespace: web, annotations: {bayplan.io/placement: '{workloadAntiAffinity: "
        "{requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {app: shop}}}]}}'}}",
        1,
    )
    (workload,) = fleet_in(load, CLUSTER % "a" + SHOP + text).pending
    assert len(workload.needs.affinity.anti_required) == 1


def test_policies_are_admitted_before_anything_is_placed(write):
    path = write(CLUSTER % "a" + SHOP + POLICY % "{clusterAffinity: {}, clusterAffinities: []}")
    inputs = files.load(files.ReadOptions([path]))
    assert [
        "clusterAffinities cannot co-exist" in str(fault) for fault in cluster.admission_faults(inputs, UPSTREAM)
    ] == [True]
