"""
Generate what `kubectl get nodes,pods -A -o json` prints for a large cluster: every pod runs on a node.

usage: gen_dump.py NODES PODS TEMPLATES [yaml|written]   prints one List, as JSON or as `-o yaml --show-managed-fields`
does; `written` is JSON of pods without a status, which are read as written by hand.

Pods are as an API server stores them, with probes, mounts, conditions and container statuses, about 7 kB of JSON each.
Those of one template differ in name, uid, node and the name of the volume with their token. Every third template keeps
its pods on different nodes, every third likes the zone of its own kind, every fifth is a StatefulSet whose pods have a
label of their own. In YAML a pod also has managed fields, and addresses, a container id and times of its own: about
6 kB.
"""

import hashlib
import json
import sys

import yaml

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WHEN = "2026-11-01T08:00:00Z"
NAME, NODE, NUMBER = "@NAME@", "@NODE@", "@NUMBER@"
ADDRESS, CONTAINER_ID, STARTED = "@ADDRESS@", "@CONTAINER_ID@", "@STARTED@"
TOKEN = f"kube-api-access-{NUMBER}"


def node(i):
    name = f"node-{i:05d}"
    room = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    labels = {HOST: name, ZONE: f"zone-{i % 6}", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    meta = {
        "name": name,
        "uid": f"node-uid-{i}",
        "resourceVersion": str(i),
        "creationTimestamp": WHEN,
        "labels": labels,
    }
    conditions = [
        {"type": kind, "status": status, "reason": "KubeletReports", "lastHeartbeatTime": WHEN}
        for kind, status in (("Ready", "True"), ("MemoryPressure", "False"), ("DiskPressure", "False"))
    ]
    addresses = [{"type": "InternalIP", "address": f"10.0.{i // 250}.{i % 250}"}, {"type": "Hostname", "address": name}]
    status = {"allocatable": room, "capacity": room, "conditions": conditions, "addresses": addresses}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {"podCIDR": "10.1.0.0/24"}, "status": status}


def affinity(template):
    term = {"labelSelector": {"matchLabels": {"app": f"app-{template}"}}}
    if template % 3 == 0:
        apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "topologyKey": HOST}]}
        return {"podAntiAffinity": apart}
    if template % 3 == 1:
        near = {"weight": 50, "podAffinityTerm": {**term, "topologyKey": ZONE}}
        return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}}
    return None


def container(template):
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1}
    return {
        "name": "main",
        "image": f"registry.example.com/team/app-{template}:1.{template % 9}",
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": f"SETTING_{i}", "value": f"value of setting {i}"} for i in range(6)],
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {"requests": {"cpu": f"{50 + template % 20 * 10}m", "memory": f"{64 + template % 30 * 8}Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [
            {"name": TOKEN, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
        ],
    }


def pod(template):
    app, sets = f"app-{template}", template % 5 == 0
    labels = {"app": app, "pod-template-hash": f"h{template}", "tier": f"tier-{template % 4}"}
    if sets:
        labels = {"app": app, "statefulset.kubernetes.io/pod-name": NAME}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet" if sets else "ReplicaSet", "name": app, "uid": app}
    meta = {
        "name": NAME,
        "namespace": f"team-{template % 40}",
        "uid": f"uid-{NUMBER}",
        "resourceVersion": NUMBER,
        "creationTimestamp": WHEN,
        "labels": labels,
        "annotations": {"example.com/build": f"build {template}", "example.com/note": "somebody's note" * 4},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    spec = {
        "containers": [container(template)],
        "nodeName": NODE,
        "serviceAccountName": "default",
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "tolerations": [
            {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for why in ("not-ready", "unreachable")
        ],
        "volumes": [{"name": TOKEN, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
    }
    rules = affinity(template)
    if rules is not None:
        spec["affinity"] = rules
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": WHEN}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    running = {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": WHEN}}}
    addresses = {"hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}]}
    status = {
        "phase": "Running",
        "startTime": WHEN,
        "conditions": conditions,
        "containerStatuses": [running],
        **addresses,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def dumped_pod(template):
    """A pod with everything that is its own in a real cluster, and with its managed fields."""
    found = pod(template)
    meta, status = found["metadata"], found["status"]
    meta["creationTimestamp"] = STARTED
    for condition in status["conditions"]:
        condition["lastTransitionTime"] = STARTED
    status.update(startTime=STARTED, podIP=ADDRESS, podIPs=[{"ip": ADDRESS}])
    status["containerStatuses"][0].update(containerID=f"containerd://{CONTAINER_ID}", started=True)
    status["containerStatuses"][0]["state"]["running"]["startedAt"] = STARTED
    created = {
        "f:metadata": managed({"labels": meta["labels"]}),
        "f:spec": managed({"containers": found["spec"]["containers"]}),
    }
    ran = {
        "f:status": managed({"conditions": status["conditions"], "podIP": "", "podIPs": status["podIPs"], "phase": ""})
    }
    by = {"apiVersion": "v1", "fieldsType": "FieldsV1", "operation": "Update", "time": STARTED}
    meta["managedFields"] = [
        {**by, "fieldsV1": created, "manager": "kube-controller-manager"},
        {**by, "fieldsV1": ran, "manager": "kubelet", "subresource": "status"},
    ]
    return found


def managed(value):
    """The fields of a value as an API server records who manages them: items of lists by what identifies them."""
    if isinstance(value, dict):
        return {f"f:{key}": managed(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return {}
    found = {}
    for item in value:
        key = next(key for key in ("name", "type", "ip") if key in item)
        identity = json.dumps({key: item[key]}, separators=(",", ":"))
        found[f"k:{identity}"] = {".": {}, **managed(item)}
    return found


def as_json(thing):
    """As kubectl prints an item of a list."""
    return json.dumps(thing, indent=4).replace("\n", "\n        ")


class KubectlDumper(yaml.CSafeDumper):
    """Writes YAML as kubectl does: no anchors, and double quotes around text that would be read as something else."""

    def ignore_aliases(self, _):
        return True

    def represent_text(self, text):
        tag = yaml.SafeLoader("").resolve(yaml.ScalarNode, text, (True, False))
        style = None if tag == "tag:yaml.org,2002:str" and text not in ("y", "n", "Y", "N") else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


KubectlDumper.add_representer(str, KubectlDumper.represent_text)


def as_yaml(thing):
    """As kubectl prints an item of a list."""
    return yaml.dump([thing], Dumper=KubectlDumper, default_flow_style=False)


def named(text, i, n_nodes, n_templates):
    """The text of a template as the text of pod number `i`."""
    uid = hashlib.sha256(str(i).encode()).hexdigest()
    own = {
        NAME: f"app-{i % n_templates}-{i // n_templates}",
        NODE: f"node-{i * 7 % n_nodes:05d}",
        NUMBER: str(i),
        ADDRESS: f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}",
        CONTAINER_ID: uid,
        STARTED: f"2026-11-01T{i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d}Z",
    }
    for mark, value in own.items():
        text = text.replace(mark, value)
    return text


def main():
    n_nodes, n_pods, n_templates = map(int, sys.argv[1:4])
    if sys.argv[4:] == ["yaml"]:
        write_yaml(n_nodes, n_pods, n_templates, sys.stdout)
    else:
        write_json(n_nodes, n_pods, n_templates, sys.stdout, has_status=sys.argv[4:] != ["written"])


def write_json(n_nodes, n_pods, n_templates, out, *, has_status=True):
    found = [pod(template) for template in range(n_templates)]
    if not has_status:
        for one in found:
            del one["status"]
    texts = [as_json(one) for one in found]
    out.write('{\n    "apiVersion": "v1",\n    "items": [\n        ')
    for i in range(n_nodes):
        out.write(as_json(node(i)) + ",\n        ")
    for i in range(n_pods):
        text = named(texts[i % n_templates], i, n_nodes, n_templates)
        out.write(text + (",\n        " if i < n_pods - 1 else "\n"))
    out.write('    ],\n    "kind": "List",\n    "metadata": {"resourceVersion": ""}\n}\n')


def write_yaml(n_nodes, n_pods, n_templates, out):
    texts = [as_yaml(dumped_pod(template)) for template in range(n_templates)]
    out.write("apiVersion: v1\nitems:\n")
    out.writelines(as_yaml(node(i)) for i in range(n_nodes))
    out.writelines(named(texts[i % n_templates], i, n_nodes, n_templates) for i in range(n_pods))
    out.write('kind: List\nmetadata:\n  resourceVersion: ""\n')


if __name__ == "__main__":
    main()
