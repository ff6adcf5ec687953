"""Which bindings karmada-scheduler v1.18.2 would schedule, and why."""

import json

import msgspec
import pytest

from bayplan.controllers import binding_triggers
from bayplan.wire.fleets import ResourceBinding

WEIGHTED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}}
TWO = {"clusterAffinities": [{"affinityName": "a", "clusterNames": ["x"]}, {"affinityName": "b"}], **WEIGHTED}


DURING_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"


def binding(placement=WEIGHTED, applied=..., replicas=4, clusters=(("x", 4),), status=None, **spec):
    annotations = {} if applied is None else {binding_triggers.APPLIED_PLACEMENT: applied}
    if applied is ...:
        annotations = {binding_triggers.APPLIED_PLACEMENT: json.dumps(placement)}
    elif isinstance(applied, dict):
        annotations = {binding_triggers.APPLIED_PLACEMENT: json.dumps(applied)}
    return msgspec.convert(
        {
            "kind": "ResourceBinding",
            "metadata": {"name": "b", "namespace": "web", "annotations": annotations},
            "spec": {
                "replicas": replicas,
                "placement": placement,
                "clusters": [{"name": name, "replicas": count} for name, count in clusters],
                **spec,
            },
            "status": status or {},
        },
        ResourceBinding,
    )


CHANGED = {**TWO, "clusterAffinities": [TWO["clusterAffinities"][0], {"affinityName": "b", "clusterNames": ["y"]}]}


INHERITED, OBSERVED = {"affinityStrategy": {"mode": "Inherited"}}, {"schedulerObservingAffinityName": "a"}
TIERS = [{"affinityName": "a", "clusterNames": ["x"]}, {"affinityName": "b"}]
OWN = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}}]}


@pytest.mark.parametrize("written, due", [
    (binding(), False),
    (binding(applied=None), True),
    (binding(applied="{"), False),  # an invalid annotation hides every change
    (binding(applied={}), True),
    (binding(applied={**WEIGHTED, "clusterTolerations": [{"key": "a"}]}), True),
    (binding(TWO, {**TWO, "workloadAffinity": {DURING_EXECUTION: [{"labelSelector": {}}]}}, status=OBSERVED), True),
    (binding(TWO, CHANGED), True),  # without an observed group every change counts
    (binding(TWO, CHANGED, status={"schedulerObservingAffinityName": "a"}), False),
    (binding(TWO, CHANGED, status={"schedulerObservingAffinityName": "b"}), True),
    (binding(TWO, CHANGED, status={"schedulerObservingAffinityName": "gone"}), True),
    (binding({**WEIGHTED, "workloadAffinity": {"affinity": {"groupByLabelKey": "k"}}}, WEIGHTED), True),
    (binding({**TWO, "workloadAffinity": {"affinity": {"groupByLabelKey": "k"}}}, TWO,
             status={"schedulerObservingAffinityName": "a"}), False),
    # Every edit of Bayplan's own fields counts, also beside an observed group.
    (binding({**TWO, **INHERITED}, TWO, status=OBSERVED), True),
    (binding({**TWO, **INHERITED}, {**CHANGED, **INHERITED}, status=OBSERVED), True),  # the other group is a tier
    (binding({**TWO, **INHERITED}, status=OBSERVED), False),
    (binding({**TWO, "workloadAffinity": OWN}, TWO, status=OBSERVED), True),
    (binding({**TWO, "workloadAntiAffinity": OWN}, TWO, status=OBSERVED), True),
    (binding(TWO, {**TWO, "workloadAntiAffinity": OWN}, status=OBSERVED), True),
    (binding({**WEIGHTED, "preferredClusterAffinities": TIERS}, WEIGHTED, status=OBSERVED), True),
    (binding({**WEIGHTED, "preferredClusterAffinities": TIERS}, status=OBSERVED), False),
    (binding({**WEIGHTED, "preferredClusterAffinities": TIERS},
             {**WEIGHTED, "preferredClusterAffinities": TIERS[:1]}, status=OBSERVED), True),
    (binding({**WEIGHTED, "clusterAffinity": {"clusterNames": ["x"], "supplements": [{}]}},
             {**WEIGHTED, "clusterAffinity": {"clusterNames": ["x"]}}), True),
    (binding(replicas=5), True),
    (binding(clusters=(("x", 1), ("y", 3))), False),
    (binding(clusters=()), True),
    (binding({}), True),  # no strategy means Duplicated, which is always scheduled
    (binding({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}), True),
    (binding(replicas=0, clusters=(("x", 0),)), True),  # not a workload
    (binding(replicas=0, clusters=(), replicaRequirements={}), False),
    (binding(clusters=(("gone", 4),)), True),
    (binding(rescheduleTriggeredAt="2026-01-02T00:00:00Z", status={"lastScheduledTime": "2026-01-01T00:00:00Z"}), True),
    (binding(rescheduleTriggeredAt="2026-01-01T00:00:00Z", status={"lastScheduledTime": "2026-01-01T00:00:00Z"}), False),
    (binding(rescheduleTriggeredAt="2026-01-01T00:00:00Z"), False),
])  # fmt: skip
def test_which_changes_need_scheduling(written, due):
    assert binding_triggers.needs_scheduling(written, {"gone"}) is due


ALL_TIERS = {"clusterAffinity": {"clusterNames": ["x"], "supplements": [{"clusterNames": ["y"]}]}}


@pytest.mark.parametrize("where", ["placement", "binding", "template"])
def test_recovery_moves_no_duplicated_workload_with_tiers(where):
    placement = ALL_TIERS if where == "placement" else {}
    written = binding(placement, clusters=(("y", 4),))
    if where == "binding":
        written.metadata.annotations["bayplan.io/placement"] = json.dumps(ALL_TIERS)
    template = json.dumps(ALL_TIERS) if where == "template" else None
    assert not binding_triggers.needs_scheduling(written, (), template)
    written.spec.replicas = 5
    assert binding_triggers.needs_scheduling(written, (), template)


@pytest.mark.parametrize("written, why", [
    (binding(), ""),
    (binding(schedulerName="default-scheduler"), ""),
    (binding(schedulerName="mine"), binding_triggers.OTHER_SCHEDULER),
    (binding(suspension={"scheduling": True}), binding_triggers.SUSPENDED),
    (binding(suspension={"dispatching": True}), ""),
])  # fmt: skip
def test_which_bindings_are_skipped(written, why):
    assert binding_triggers.reason_to_skip(written, handwritten=True) == why


def test_a_dumped_binding_without_a_policy_is_a_dependency():
    written = binding()
    assert binding_triggers.reason_to_skip(written, handwritten=False) == binding_triggers.DEPENDENCY
    written.metadata.labels = {binding_triggers.POLICY_LABELS[2]: "x"}
    assert binding_triggers.reason_to_skip(written, handwritten=False) == ""
