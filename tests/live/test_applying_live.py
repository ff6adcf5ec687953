"""
What a change of an object does is predicted as a real API server answers it: refused or not, and with which template.

Each manifest is applied as `kubectl apply` does: merged into the object that the server returns, and sent back.
"""

import copy
import json

import pytest
import yaml

from bayplan.controllers import applying
from bayplan.reading import checking
from bayplan.validating import canonical_form, updates
from live.admin import ApiError

CONTAINER = "{name: c, image: 'web:1', resources: {requests: {cpu: 1000m}}, ports: [{containerPort: 80}]}"
CONTROLLER = f"""
metadata: {{name: one}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{CONTAINER}]
      volumes: [{{name: v}}, {{name: s, projected: {{sources: [{{serviceAccountToken: {{path: t}}}}]}}}}]
"""
JOB = f"""
metadata: {{name: one}}
spec: {{completions: 2, parallelism: 2, template: {{spec: {{restartPolicy: Never, containers: [{CONTAINER}]}}}}}}
"""
WRITTEN = {
    "Deployment": ("apps/v1", CONTROLLER),
    "ReplicaSet": ("apps/v1", CONTROLLER),
    "DaemonSet": ("apps/v1", CONTROLLER),
    "StatefulSet": (
        "apps/v1",
        CONTROLLER
        + "  serviceName: web\n  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], "
        "resources: {requests: {storage: 1Gi}}}}]\n",
    ),
    "Job": ("batch/v1", JOB),
    "Pod": (
        "v1",
        f"{{metadata: {{name: one}}, spec: {{containers: [{CONTAINER}], tolerations: [{{key: a, operator: Exists}}]}}}}",
    ),
    "PersistentVolumeClaim": (
        "v1",
        (
            "{metadata: {name: one}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, "
            "resources: {requests: {storage: 1Gi}}}}"
        ),
    ),
    "PersistentVolume": (
        "v1",
        "{metadata: {name: one}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: /d}}}",
    ),
    "PriorityClass": ("scheduling.k8s.io/v1", "{metadata: {name: one}, value: 7}"),
    "StorageClass": ("storage.k8s.io/v1", "{metadata: {name: one}, provisioner: p}"),
}
# The path of one change of the manifest, and its value; None removes it.
CHANGES = [
    *(
        (kind, path, value)
        for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")
        for path, value in (
            ("metadata.labels", "{a: b}"),
            ("spec.selector.matchLabels.app", "db"),
            ("spec.template.spec.containers.0.image", "web:2"),
            ("spec.template.spec.containers.0.resources.requests.cpu", "1"),
            ("spec.template.spec.containers.0.resources.requests.cpu", "2"),
            ("spec.template.spec.containers.0.resources", None),
            ("spec.template.spec.containers.0.ports.0.protocol", "TCP"),
            ("spec.template.spec.containers.0.ports.0.protocol", "UDP"),
            ("spec.template.spec.containers.0.imagePullPolicy", "IfNotPresent"),
            ("spec.template.spec.containers.0.env", "[{name: e, value: ''}]"),
            ("spec.template.spec.containers.0.livenessProbe", "{httpGet: {port: 80}}"),
            ("spec.template.spec.containers.0.securityContext", "{}"),
            ("spec.template.spec.volumes.0.emptyDir", "{}"),
            ("spec.template.spec.volumes", None),
            ("spec.template.spec.nodeSelector", "{}"),
            ("spec.template.spec.affinity", "{}"),
            ("spec.template.spec.tolerations", "[]"),
            ("spec.template.spec.hostNetwork", "false"),
            ("spec.template.spec.serviceAccount", "a"),
            ("spec.template.spec.terminationGracePeriodSeconds", "30"),
            ("spec.template.spec.automountServiceAccountToken", "false"),
            ("spec.template.metadata.annotations", "{a: b}"),
        )
    ),
    ("StatefulSet", "spec.serviceName", "db"),
    ("StatefulSet", "spec.podManagementPolicy", "Parallel"),
    ("StatefulSet", "spec.podManagementPolicy", "OrderedReady"),
    ("StatefulSet", "spec.minReadySeconds", "3"),
    ("StatefulSet", "spec.volumeClaimTemplates.0.spec.resources.requests.storage", "1024Mi"),
    ("StatefulSet", "spec.volumeClaimTemplates.0.spec.resources.requests.storage", "2Gi"),
    ("Job", "spec.template.spec.containers.0.image", "web:2"),
    ("Job", "spec.template.spec.containers.0.imagePullPolicy", "IfNotPresent"),
    ("Job", "spec.completions", "3"),
    ("Job", "spec.parallelism", "3"),
    ("Job", "spec.suspend", "true"),
    ("Job", "spec.backoffLimitPerIndex", "3"),
    ("Pod", "spec.containers.0.image", "web:2"),
    ("Pod", "spec.containers.0.image", "web"),
    ("Pod", "spec.containers.0.resources.requests.cpu", "2"),
    ("Pod", "spec.containers.0.resources.requests.cpu", "1"),
    ("Pod", "spec.containers.0.tty", "true"),
    ("Pod", "spec.nodeSelector", "{a: b}"),
    ("Pod", "spec.tolerations", "[{key: a, operator: Exists}, {key: b, operator: Exists}]"),
    ("Pod", "spec.tolerations", "[{key: b, operator: Exists}]"),
    ("Pod", "spec.activeDeadlineSeconds", "7"),
    ("Pod", "spec.schedulingGates", "[{name: example.com/g}]"),
    ("Pod", "metadata.labels", "{a: b}"),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", "2Gi"),
    ("PersistentVolumeClaim", "spec.resources.requests.storage", "1024Mi"),
    ("PersistentVolumeClaim", "spec.storageClassName", "slow"),
    ("PersistentVolumeClaim", "spec.accessModes", "[ReadWriteMany]"),
    ("PersistentVolumeClaim", "metadata.labels", "{a: b}"),
    ("PersistentVolume", "spec.hostPath.path", "/e"),
    ("PersistentVolume", "spec.capacity.storage", "2Gi"),
    ("PersistentVolume", "spec.volumeMode", "Block"),
    ("PriorityClass", "value", "8"),
    ("PriorityClass", "preemptionPolicy", "Never"),
    ("PriorityClass", "preemptionPolicy", "PreemptLowerPriority"),
    ("PriorityClass", "description", "text"),
    ("StorageClass", "provisioner", "q"),
    ("StorageClass", "reclaimPolicy", "Delete"),
    ("StorageClass", "volumeBindingMode", "WaitForFirstConsumer"),
    ("StorageClass", "allowVolumeExpansion", "true"),
]


def manifest_of(kind):
    version, text = WRITTEN[kind]
    written = {"apiVersion": version, "kind": kind, **yaml.safe_load(text)}
    if kind not in ("PersistentVolume", "PriorityClass", "StorageClass"):
        written["metadata"]["namespace"] = "default"
    return written


def changed(written, path, value):
    found = copy.deepcopy(written)
    *parents, last = (int(step) if step.isdigit() else step for step in path.split("."))
    place = found
    for step in parents:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is None:
        del place[last]
    else:
        place[last] = yaml.safe_load(value)
    return found


def answer(admin, resource, merged):
    """The object as the server would store it, or None, and the fields for which it refuses the change."""
    try:
        return admin.replace(resource, merged, dryRun="All"), set()
    except ApiError as error:
        return None, {cause["field"] for cause in error.body["details"]["causes"]}


def template_form(one):
    return canonical_form.canonical(one["spec"]["template"], "PodTemplateSpec", checking.field_table())


@pytest.mark.timeout(300)
def test_changes_are_judged_as_by_the_server(sync_admin):
    types, wrong, n_refused, n_rolled_out = checking.field_table(), [], 0, 0
    for kind in WRITTEN:
        manifest = manifest_of(kind)
        noted = copy.deepcopy(manifest)
        noted["metadata"]["annotations"] = {applying.LAST_APPLIED: json.dumps(manifest)}
        before = sync_admin.create(noted)
        resource, _ = sync_admin._resource_of(manifest)
        for _, path, value in (row for row in CHANGES if row[0] == kind):
            merged = applying.applied(before, changed(manifest, path, value), types, kind)
            predicted = {cause.field for cause in updates.validate_update(kind, before, merged, types)}
            after, said = answer(sync_admin, resource, merged)
            n_refused += after is None
            if bool(predicted) != bool(said) or not predicted <= said:
                wrong.append((kind, path, value, "predicted", predicted, "said", said))
            if after is not None and "template" in before.get("spec", {}):
                is_other = before["spec"]["template"] != after["spec"]["template"]
                n_rolled_out += is_other
                if (template_form(before) != template_form(merged)) != is_other:
                    wrong.append((kind, path, value, "another template", is_other))
    assert not wrong
    assert (n_refused, n_rolled_out) == (24, 48)  # neither answer is the only one
