"""Warnings on objects that are admitted."""

import pathlib
import re

import pytest

from bayplan.validating import warnings
from validating import objects

ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_ZONE = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
NULL = "a null labelSelector results in matching no pod"
AFFINITY = "spec.affinity.podAffinity"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"


@pytest.mark.parametrize("spec, warned", [
    ({"nodeSelector": {"disk": "ssd"}}, []),
    ({"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}}, ['spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead']),
    (objects.with_term("{topologyKey: zone}"), [f"{AFFINITY}.{objects.REQUIRED}[0].labelSelector: {NULL}"]),
    (objects.with_term("{topologyKey: zone}", when=objects.PREFERRED), [f"{AFFINITY}.{objects.PREFERRED}[0].podAffinityTerm.labelSelector: {NULL}"]),
    (objects.with_term(f"{{topologyKey: {ZONE}, labelSelector: {{}}}}"), [f"{AFFINITY}.{objects.REQUIRED}[0].topologyKey: {ZONE} is {OLD_ZONE}"]),
    ({"topologySpreadConstraints": [{"topologyKey": ZONE}]}, [f"spec.topologySpreadConstraints[0].topologyKey: {ZONE} is {OLD_ZONE}", f"spec.topologySpreadConstraints[0].labelSelector: {NULL}"]),
    ({"affinity": {"nodeAffinity": {objects.REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists", "values": ["-x"]}]}]}}}}, [f"spec.affinity.nodeAffinity.{objects.REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].key: {ZONE} is {OLD_ZONE}"]),
    ({"affinity": {"nodeAffinity": {objects.PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-x"]}]}}]}}}, [f"spec.affinity.nodeAffinity.{objects.PREFERRED}[0].preference.matchExpressions[0].values[0]: -x is invalid, {VALUE}"]),
])  # fmt: skip
def test_pod_warnings(spec, warned):
    assert [text.split(" (e.g.")[0] for text in warnings.pod_warnings(objects.pod(spec))] == warned


def test_warnings_on_a_template_have_its_path():
    obj = objects.workload("Job", "batch/v1", {"topologySpreadConstraints": [{"topologyKey": "zone"}]})
    assert warnings.pod_warnings(obj) == [f"spec.template.spec.topologySpreadConstraints[0].labelSelector: {NULL}"]


def test_other_kinds_have_no_pod_warnings():
    assert warnings.pod_warnings({"kind": "Service", "apiVersion": "v1"}) == []


def test_fields_that_only_bayplan_has_are_dropped_by_api_servers():
    term = {"labelSelector": {}, "topologyKey": "rack", "limit": 2}
    spec = {"affinity": {"podAntiAffinity": {objects.DURING_EXECUTION: [term]}}}
    path = f"spec.affinity.podAntiAffinity.{objects.DURING_EXECUTION}"
    warned = [f"{path}[0].limit: {warnings.DROPPED}", f"{path}: {warnings.DROPPED}"]
    assert warnings.pod_warnings(objects.pod(spec)) == warned


# Placements


ANTI = "workloadAffinity: {antiAffinity: {groupByLabelKey: app}}"
OURS = f"workloadAntiAffinity: {{{objects.REQUIRED}: [{{labelSelector: {{}}}}]}}"
ONE = "spreadConstraints: [{spreadByField: cluster, maxGroups: 1}]"
GROUP = f".workloadAffinity.antiAffinity: {warnings.EVERY_CLUSTER}"
TERMS = "clusterAffinities: [{affinityName: a}, {affinityName: b}]"
AGGREGATED = "replicaScheduling: {replicaDivisionPreference: Aggregated}"
STATIC = "replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 1}]}}"
DYNAMIC = "replicaScheduling: {weightPreference: {dynamicWeight: AvailableReplicas}}"
DROPPED = warnings.DROPPED_OF_PLACEMENT
BY_ZONE = "Karmada does not spread by zone: clusters only have to have one"


@pytest.mark.parametrize("placement, warned", [
    ("", []),
    # anti-affinity
    (ANTI, [GROUP]),
    (f"{ANTI}, {DYNAMIC}", [GROUP]),
    (f"{ANTI}, {ONE}", []),
    (f"{ANTI}, spreadConstraints: [{{maxGroups: 1}}]", []),  # neither field nor label means clusters
    (f"{ANTI}, {AGGREGATED}", []),  # takes as few clusters as it can
    (f"{ANTI}, {ONE}, {STATIC}", [GROUP, f".spreadConstraints: {warnings.STATIC}"]),
    (OURS, [f".workloadAntiAffinity.{objects.REQUIRED}: {warnings.EVERY_CLUSTER}", f".workloadAntiAffinity: {DROPPED}"]),
    ("workloadAffinity: {affinity: {groupByLabelKey: app}}", []),
    # spread
    (ONE, []),
    ("spreadConstraints: [{spreadByField: cluster}]", [f".spreadConstraints[0]: {warnings.NO_MAX}"]),
    ("spreadConstraints: [{}]", [f".spreadConstraints[0]: {warnings.NO_MAX}"]),
    ("spreadConstraints: [{spreadByField: region, maxGroups: 2}, {spreadByField: cluster}]", [f".spreadConstraints[1]: {warnings.NO_MAX_BESIDE_REGION}"]),
    ("spreadConstraints: [{spreadByField: region}, {spreadByField: cluster, maxGroups: 2}]", [f".spreadConstraints[0]: {warnings.NO_MAX}"]),
    ("spreadConstraints: [{spreadByField: zone}, {spreadByField: cluster, maxGroups: 2}]", [f".spreadConstraints[0].spreadByField: {BY_ZONE}"]),
    ("spreadConstraints: [{spreadByLabel: rack, maxGroups: 2}]", [f".spreadConstraints[0].spreadByLabel: {warnings.BY_LABEL}"]),
    (f"{ONE}, {STATIC}", [f".spreadConstraints: {warnings.STATIC}"]),
    (f"{ONE}, replicaScheduling: {{}}", [f".spreadConstraints: {warnings.STATIC}"]),  # equal static weights
    (f"{ONE}, replicaScheduling: {{weightPreference: {{}}}}", []),
    (f"{ONE}, {DYNAMIC}", []),
    # groups
    (TERMS, [f".clusterAffinities: {warnings.NEVER_FALLS_THROUGH}"]),
    (f"{TERMS}, {AGGREGATED}", []),
    (f"{TERMS}, affinityStrategy: {{mode: Inherited}}", [f".affinityStrategy: {DROPPED}"]),
    ("preferredClusterAffinities: [{affinityName: a, clusterNames: [x]}]", [f".preferredClusterAffinities: {DROPPED}"]),
    ("clusterAffinity: {clusterNames: [x], supplements: [{clusterNames: [y]}]}", [f".clusterAffinity.supplements: {DROPPED}"]),
    ("clusterAffinities: [{affinityName: a, clusterNames: [x], supplements: [{clusterNames: [y]}]}]", [f".clusterAffinities[0].supplements: {DROPPED}"]),
    # selectors that nothing checks
    ("clusterAffinity: {labelSelector: {matchLabels: {k: not a label}}}", [f".clusterAffinity.labelSelector: {warnings.UNPARSABLE}"]),
    ("clusterAffinity: {labelSelector: {matchExpressions: [{key: k, operator: NotIn, values: [-x]}]}}", [f".clusterAffinity.labelSelector: {warnings.UNPARSABLE}"]),
    ("clusterAffinity: {labelSelector: {matchLabels: {k: v}}}", []),
    ("clusterAffinities: [{affinityName: a}]", []),
    # terms
    (f"workloadAffinity: {{{objects.REQUIRED}: [{{matchLabelKeys: [a]}}]}}", [f".workloadAffinity.{objects.REQUIRED}[0].labelSelector: {warnings.NO_WORKLOAD_SELECTOR}", f".workloadAffinity.{objects.REQUIRED}: {DROPPED}"]),
    (f"workloadAffinity: {{{objects.REQUIRED}: [{{affinityEnabled: true}}]}}", [f".workloadAffinity.{objects.REQUIRED}: {DROPPED}"]),
])  # fmt: skip
def test_placement_warnings(placement, warned):
    found = warnings.placement_warnings(objects.policy(f"{{{placement}}}"))
    assert [text.removeprefix("spec.placement") for text in found] == warned


def test_terms_in_the_annotation_are_checked():
    path = f"metadata.annotations[bayplan.io/placement].workloadAntiAffinity.{objects.REQUIRED}"
    assert warnings.object_warnings(objects.policy(annotation=OURS)) == [f"{path}: {warnings.EVERY_CLUSTER}"]


@pytest.mark.parametrize("obj", [objects.pod(), objects.policy({"clusterAffinities": 3}), {"kind": "ConfigMap"}])
def test_other_and_undecodable_objects_have_no_placement_warnings(obj):
    assert warnings.placement_warnings(obj) == []


def test_bindings_are_checked_too():
    assert warnings.placement_warnings(objects.binding(f"{{placement: {{{ANTI}}}}}")) == [f"spec.placement{GROUP}"]


def test_pods_have_pod_warnings_only():
    obj = objects.pod({"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}})
    assert warnings.object_warnings(obj) == warnings.pod_warnings(obj) != []


@pytest.mark.parametrize("key, said", [
    ("bayplan.io/group-mim", "unknown annotation, it has no effect; did you mean bayplan.io/group-min?"),
    ("bayplan.io/afinity", "unknown annotation, it has no effect; did you mean bayplan.io/affinity?"),
    ("bayplan.io/Affinity", "unknown annotation, it has no effect; did you mean bayplan.io/affinity?"),
    ("bayplan.io/owner-of-the-page", "unknown annotation, it has no effect"),
])  # fmt: skip
def test_annotations_that_look_like_ours_are_said(key, said):
    metadata = {"name": "x", "annotations": {key: "1", "example.com/afinity": "1", "bayplan.io/affinity": ""}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}
    assert warnings.object_warnings(pod) == [f"metadata.annotations[{key}]: {said}"]
    controller = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": pod}}
    assert warnings.object_warnings(controller) == [
        f"metadata.annotations[{key}]: {said}",
        f"spec.template.metadata.annotations[{key}]: {said}",
    ]


def test_every_annotation_of_the_reference_is_known():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / "annotations.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^(?:## |\| )`(bayplan\.io/[a-z-]+)`", page, re.MULTILINE))
    assert described == warnings.OWN_ANNOTATIONS
