"""What an API server refuses to change in an object that exists, with its messages."""

import copy

import pytest
import yaml

from bayplan.reading import checking
from bayplan.validating import updates

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web:1"}]}}
SELECTOR = {"matchLabels": {"app": "web"}}
OBJECTS = {
    "Deployment": {"spec": {"selector": SELECTOR, "template": TEMPLATE, "replicas": 1}},
    "ReplicaSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "DaemonSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "StatefulSet": {
        "spec": {
            "selector": SELECTOR,
            "template": TEMPLATE,
            "serviceName": "web",
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
        }
    },
    "Job": {"spec": {"template": TEMPLATE, "completions": 2, "parallelism": 2}, "status": {"startTime": "t", "active": 2}},
    "Pod": {
        "spec": {
            **TEMPLATE["spec"],
            "nodeName": "a1",
            "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "node.kubernetes.io/not-ready"}],
        }
    },
    "PersistentVolumeClaim": {
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v", "storageClassName": "fast"},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
    },
    "PersistentVolume": {"spec": {"csi": {"driver": "d", "volumeHandle": "h"}, "nodeAffinity": {"required": {}}}},
    "PriorityClass": {"value": 7},
    "StorageClass": {"provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}  # fmt: skip
IMMUTABLE = "field is immutable"
MAY = ""


def changed(kind, path, value):
    old = copy.deepcopy(OBJECTS[kind])
    new = copy.deepcopy(old)
    *parents, last = (int(step) if step.isdigit() else step for step in path.split("."))
    place = new
    for step in parents:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    place[last] = yaml.safe_load(value) if isinstance(value, str) else value
    return [str(cause) for cause in updates.validate_update(kind, old, new, checking.field_table())]


@pytest.mark.parametrize("kind, path, value, refusal", [
    ("Deployment",   "spec.selector.matchLabels.app", "db",  f'spec.selector: Invalid value: {{"matchLabels":{{"app":"db"}}}}: {IMMUTABLE}'),
    ("ReplicaSet",   "spec.selector.matchLabels.app", "db",  "spec.selector: Invalid value: "),
    ("DaemonSet",    "spec.selector.matchLabels.app", "db",  "spec.selector: Invalid value: "),
    ("Deployment",   "spec.template.spec.containers.0.image", "web:2", MAY),
    ("Deployment",   "spec.replicas", 3, MAY),
    ("StatefulSet",  "spec.serviceName", "db", ("spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
     "'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")),
    ("StatefulSet",  "spec.volumeClaimTemplates.0.spec.storageClassName", "slow", "spec: Forbidden: updates to statefulset spec"),
    ("StatefulSet",  "spec.volumeClaimTemplates.0.status", "{phase: Pending}", MAY),  # the server adds it
    ("StatefulSet",  "spec.podManagementPolicy", "Parallel", "spec: Forbidden: "),
    ("StatefulSet",  "spec.podManagementPolicy", "OrderedReady", MAY),  # the default
    ("StatefulSet",  "spec.template.spec.containers.0.image", "web:2", MAY),
    ("StatefulSet",  "spec.minReadySeconds", 3, MAY),
    ("Job",          "spec.template.spec.containers.0.image", "web:2", "spec.template: Invalid value: "),
    ("Job",          "spec.completions", 3, f"spec.completions: Invalid value: 3: {IMMUTABLE}"),
    ("Job",          "spec.parallelism", 3, MAY),
    ("Job",          "spec.suspend", True, MAY),
    ("Job",          "spec.selector", "{matchLabels: {a: b}}", "spec.selector: Invalid value: "),
    ("Pod",          "spec.containers.0.image", "web:2", MAY),
    ("Pod",          "spec.containers.0.image", "web", MAY),
    ("Pod",          "spec.containers.0.resources", "{requests: {cpu: 1}}", "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"),
    ("Pod",          "spec.nodeSelector", "{a: b}", "spec: Forbidden: pod updates may not change fields other than "),
    ("Pod",          "spec.tolerations", "[{key: a, operator: Exists, tolerationSeconds: 7}, {key: b}]", MAY),
    ("Pod",          "spec.tolerations", "[{key: b}]", "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"),
    ("Pod",          "spec.containers", "[{name: c}, {name: d}]", "spec.containers: Forbidden: pod updates may not add or remove containers"),
    ("Pod",          "spec.schedulingGates", "[{name: g}]", "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", "2Gi", MAY),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", "1024Mi", MAY),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", "512Mi", "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"),
    ("PersistentVolumeClaim", "spec.storageClassName", "slow", "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"),
    ("PersistentVolume", "spec.csi.volumeHandle", "x", "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"),
    ("PersistentVolume", "spec.capacity", "{storage: 1Gi}", MAY),
    ("PersistentVolume", "spec.nodeAffinity", "{}", "nodeAffinity: Invalid value: "),
    ("PriorityClass", "value", 8, "value: Forbidden: may not be changed in an update."),
    ("PriorityClass", "preemptionPolicy", "Never", f'preemptionPolicy: Invalid value: "Never": {IMMUTABLE}'),
    ("PriorityClass", "preemptionPolicy", "PreemptLowerPriority", MAY),  # the default
    ("PriorityClass", "description", "text", MAY),
    ("StorageClass", "provisioner", "q", f'provisioner: Invalid value: "q": {IMMUTABLE}'),
    ("StorageClass", "volumeBindingMode", "WaitForFirstConsumer", "volumeBindingMode: Invalid value: "),
    ("StorageClass", "allowVolumeExpansion", True, MAY),
])  # fmt: skip
def test_the_answer_of_the_server(kind, path, value, refusal):
    found = changed(kind, path, value)
    assert len(found) == bool(refusal)
    assert all(text.startswith(refusal) for text in found)


def test_the_place_of_the_difference_is_named():
    (found,) = changed("Job", "spec.template.spec.containers.0.image", "web:2")
    assert found.endswith("field is immutable (spec.containers[0].image)")


def test_a_suspended_job_that_runs_nothing_may_change_its_directives():
    suspended = {"spec": {**OBJECTS["Job"]["spec"], "suspend": True}}
    directed = copy.deepcopy(suspended)
    spec = directed["spec"]["template"]["spec"]
    spec["nodeSelector"] = {"zone": "a"}
    spec["affinity"] = {"nodeAffinity": {}}
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert updates.validate_update("Job", suspended, directed, checking.field_table()) == []
    spec["affinity"] = {"podAffinity": {}}
    assert len(updates.validate_update("Job", suspended, directed, checking.field_table())) == 1


def test_an_object_that_does_not_change_is_accepted():
    for kind, one in OBJECTS.items():
        assert updates.validate_update(kind, one, copy.deepcopy(one), checking.field_table()) == []
    assert updates.validate_update("Rollout", {"spec": 1}, {"spec": 2}, {}) == []
