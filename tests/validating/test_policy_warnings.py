"""What Karmada admits in a placement and then takes otherwise than its author may think."""

import pytest

from bayplan.validating import warnings
from validating import writing

ANTI = "workloadAffinity: {antiAffinity: {groupByLabelKey: app}}"
OURS = f"workloadAntiAffinity: {{{writing.REQUIRED}: [{{labelSelector: {{}}}}]}}"
ONE = "spreadConstraints: [{spreadByField: cluster, maxGroups: 1}]"
GROUP = f".workloadAffinity.antiAffinity: {warnings.EVERY_CLUSTER}"
TERMS = "clusterAffinities: [{affinityName: a}, {affinityName: b}]"
AGGREGATED = "replicaScheduling: {replicaDivisionPreference: Aggregated}"
STATIC = "replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 1}]}}"
DYNAMIC = "replicaScheduling: {weightPreference: {dynamicWeight: AvailableReplicas}}"
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
    (OURS, [f".workloadAntiAffinity.{writing.REQUIRED}: {warnings.EVERY_CLUSTER}"]),
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
    (f"{TERMS}, affinityStrategy: {{mode: Inherited}}", []),
    ("clusterAffinities: [{affinityName: a}]", []),
    # terms
    (f"workloadAffinity: {{{writing.REQUIRED}: [{{matchLabelKeys: [a]}}]}}", [f".workloadAffinity.{writing.REQUIRED}[0].labelSelector: {warnings.NO_WORKLOAD_SELECTOR}"]),
    (f"workloadAffinity: {{{writing.REQUIRED}: [{{affinityEnabled: true}}]}}", []),
])  # fmt: skip
def test_warning(placement, warned):
    found = warnings.placement_warnings(writing.policy(f"{{{placement}}}"))
    assert [text.removeprefix("spec.placement") for text in found] == warned


def test_terms_in_the_annotation_are_looked_at():
    path = f"metadata.annotations[bayplan.io/placement].workloadAntiAffinity.{writing.REQUIRED}"
    assert warnings.object_warnings(writing.policy(annotation=OURS)) == [f"{path}: {warnings.EVERY_CLUSTER}"]


@pytest.mark.parametrize("obj", [writing.pod(), writing.policy({"clusterAffinities": 3}), {"kind": "ConfigMap"}])
def test_no_warning(obj):
    assert warnings.placement_warnings(obj) == []


def test_bindings_are_looked_at_too():
    assert warnings.placement_warnings(writing.binding(f"{{placement: {{{ANTI}}}}}")) == [f"spec.placement{GROUP}"]


def test_pods_are_warned_of_as_before():
    obj = writing.pod({"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}})
    assert warnings.object_warnings(obj) == warnings.pod_warnings(obj) != []
