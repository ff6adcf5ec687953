"""Valid files to begin with: the examples, the scenarios, recorded questions and small generated ones."""

import functools
import gzip
import io
import json
import pathlib
from datetime import UTC, datetime

import msgspec
import yaml

import fleet_scenarios
import preemption_scenarios
import rollout_scenes
import scenarios
from bayplan.reading import questions
from bayplan.writing.recordings import Recorder
from fuzzing.vocabulary import Vocabulary, encoded_length

ROOT = pathlib.Path(__file__).parents[2]
MAX_BYTES = 7000
_KEPT_OF_RECORDED = 60


@functools.cache
def manifests():
    """Clusters and what is to be placed on them, one list of objects each."""
    return [*_examples(lambda objects: not _is_fleet(objects)), *map(_objects_of, questions_of("pods")[::3])]


@functools.cache
def nodes():
    """Nodes alone, as in a file of nodes to add."""
    return [found for objects in manifests() if (found := [one for one in objects if one["kind"] == "Node"])]


@functools.cache
def updates():
    """What runs, and changed templates of it."""
    changed = [_read("18-stuck-rollout/web.yaml"), _read("18-stuck-rollout/web-without-surge.yaml")]
    scenes = [
        [rollout_scenes.controller(kind, image="web:2", **spec)]
        for kind, spec in (("DaemonSet", {}), ("StatefulSet", {}), ("Deployment", {"replicas": 5}), ("Job", {"parallelism": 3}))
    ]  # fmt: skip
    nodes = [rollout_scenes.node(name) for name in "abc"]
    running = []
    for (changed_one,) in scenes:
        owner = {**changed_one, "spec": {**changed_one["spec"], "template": rollout_scenes.template()}}
        pods = [rollout_scenes.pod_of(owner, f"web-{i}", node) for i, node in enumerate("abc")]
        running.append([*nodes, owner, *pods])
    return _plain({"state": [_read("18-stuck-rollout/state.yaml"), *running], "doc": [*changed, *scenes]})


@functools.cache
def fleets():
    found = [*_examples(_is_fleet), *map(_fleet_objects_of, questions_of("fleet")[::3])]
    clusters = next(objects for objects in found if any(one["kind"] == "PropagationPolicy" for one in objects))
    return [*found, clusters, clusters]


@functools.cache
def questions_of(kind):
    """Questions of `decide`, from documentation, scenarios and recorded decisions."""
    found = []
    for file in sorted((ROOT / "docs/reference").glob("*.jsonl")):
        for line in file.read_text().splitlines():
            question = json.loads(line)
            if {"pods": "pod", "preemption": "pod", "fleet": "binding", "admission": "object"}[kind] in question:
                found.append(question)
    if kind == "pods":
        found += [case.question for case in scenarios.all_cases()]
    elif kind == "preemption":
        found += [case.question for case in preemption_scenarios.all_cases()]
    elif kind == "fleet":
        cases, _ = fleet_scenarios.all_cases_and_triggers()
        found += [case.question for case in cases]
    with gzip.open(ROOT / f"tests/upstream/{kind}.jsonl.gz", "rt") as lines:
        recorded = [json.loads(line) for line in lines]
    small = [
        {key: value for key, value in one.items() if key != "expect"}
        for one in recorded
        if encoded_length(one) < MAX_BYTES
    ]
    found += small[:: max(1, len(small) // _KEPT_OF_RECORDED)]
    return [question for question in _plain(found) if encoded_length(question) < MAX_BYTES]


@functools.cache
def simulated():
    """Clusters of the examples of simulations."""
    return [
        _read("23-lose-a-zone/cluster.yaml"),
        _read("24-required-during-execution/cluster.yaml"),
        _read("25-control-plane-loses-a-machine/two-machines.yaml"),
    ]


@functools.cache
def timelines():
    """What happens to these clusters."""
    found = (
        "23-lose-a-zone/timeline.yaml",
        "24-required-during-execution/update-within-grace.yaml",
        "25-control-plane-loses-a-machine/timeline.yaml",
    )
    return [one for name in found for one in _read(name)]


@functools.cache
def audited():
    """Nodes, pods and what else an audit reads."""
    observed = [
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "control-1", "namespace": "kube-node-lease"},
         "spec": {"holderIdentity": "control-1", "renewTime": "2026-01-05T04:07:00.000000Z", "leaseDurationSeconds": 40}},
        {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "metadata": {"name": "m1", "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
         "spec": {"failureDomain": "a", "providerID": "x://1"}, "status": {"nodeRef": {"name": "control-1"}, "phase": "Running"}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "kubernetes", "namespace": "default", "labels":
         {"kubernetes.io/service-name": "kubernetes"}}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "zone": "a", "nodeName": "control-1"}]},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
         "data": {"ClusterConfiguration": "clusterName: c\netcd: {local: {dataDir: /x}}\n"}},
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "shop"},
         "spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "etcd-control-1", "namespace": "kube-system", "labels": {"component": "etcd", "tier": "control-plane"},
         "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [{"kind": "Node", "name": "control-1", "apiVersion": "v1", "uid": "u", "controller": True}]},
         "spec": {"nodeName": "control-1", "containers": [{"name": "etcd", "image": "etcd", "command": ["etcd", "--initial-cluster=a=https://10.0.0.1:2380"]}]},
         "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
    ]  # fmt: skip
    nodes, losses = _read("12-audit/nodes.yaml"), _read("13-losses/cluster.yaml")
    return _plain([nodes, losses, [*nodes, *observed], [*losses, *observed]])


@functools.cache
def acceptances():
    """Files of accepted findings, as `audit --accept` reads them."""
    machines = {"check": "scs-0214-cp-machines", "reason": "ordered", "expires": "2030-01-31", "nodes": ["n0", "n1"]}
    return [[machines, {"check": "fd-room-zone", "reason": "small", "expires": "2020-01-31", "cluster": "a"}]]


def inventories():
    by_node, servers = (
        yaml.safe_load((ROOT / "examples/12-audit" / name).read_text()) for name in ("hosts.yaml", "servers.json")
    )
    full = {name: {"host": "h", "rack": "r", "zone": "z", "region": "g", "power-feed": "f"} for name in by_node}
    return [by_node, servers, full]


@functools.cache
def labels_by_node():
    labels = {
        "topology.kubernetes.io/zone": "a",
        "topology.kubernetes.io/region": "r",
        "node-role.kubernetes.io/control-plane": "",
    }
    by_node = {f"n{i}": {**labels, "topology.kubernetes.io/zone": zone} for i, zone in enumerate("abc")}
    return [by_node, {"first": by_node, "second": {**by_node, "n3": labels}}]


@functools.cache
def configurations():
    text = (ROOT / "docs/reference/configuration-file.md").read_text()
    written = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    written["commands"]["audit"] = {"lose": ["zone"], "requireStage": ["machines"]}
    return [written, scheduler_configuration(), {**written, "scheduler": scheduler_configuration()}]


@functools.cache
def scheduler_configuration():
    found = yaml.safe_load((ROOT / "examples/07-tune-weights/scheduler.yaml").read_text())
    found["profiles"][0]["pluginConfig"] += [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 10, "ignorePreferredTermsOfExistingPods": True}},
        {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]}},
        {"name": "NodeAffinity", "args": {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}}},
        {"name": "DefaultPreemption", "args": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}},
        {"name": "NodeResourcesBalancedAllocation", "args": {"resources": [{"name": "cpu", "weight": 1}]}},
        {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 600, "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}},
    ]  # fmt: skip
    found["profiles"].append(
        {
            "schedulerName": "other",
            "percentageOfNodesToScore": 50,
            "plugins": {"multiPoint": {"disabled": [{"name": "*"}]}},
        }
    )
    return found | {
        "parallelism": 16,
        "percentageOfNodesToScore": 0,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 10,
    }


@functools.cache
def kubeconfigs():
    user = {
        "token": "t", "client-certificate-data": "aGk=", "client-key-data": "aGk=", "username": "a", "password": "b", "as": "c", "as-groups": ["d"],
        "as-user-extra": {"e": ["f"]},
    }  # fmt: skip
    plugin = {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "nothing", "args": ["a"], "env": [{"name": "A", "value": "b"}],
                 "interactiveMode": "Never", "provideClusterInfo": True, "installHint": "none"},
    }  # fmt: skip
    cluster = {
        "server": "https://10.0.0.1:6443", "certificate-authority-data": "aGk=", "insecure-skip-tls-verify": False, "tls-server-name": "x",
        "proxy-url": "http://10.0.0.2", "disable-compression": True, "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}],
    }  # fmt: skip
    return [
        {
            "apiVersion": "v1", "kind": "Config", "current-context": "test", "preferences": {},
            "clusters": [{"name": "here", "cluster": cluster}], "users": [{"name": "me", "user": who}],
            "contexts": [{"name": "test", "context": {"cluster": "here", "user": "me", "namespace": "shop"}}],
        }
        for who in (user, plugin, {"tokenFile": "token"}, {"auth-provider": {"name": "gcp", "config": {}}})
    ]  # fmt: skip


@functools.cache
def benchmark_inputs(kind):
    if kind == "pods":
        return [
            {"nodes": q["nodes"], "init": q.get("pods", []), "pods": [q["pod"]], "namespaces": q.get("namespaces", [])}
            for q in questions_of("pods")[::5]
        ]
    return [
        {"clusters": q["clusters"], "bindings": q.get("bindings", []), "pending": [q["binding"]]}
        for q in questions_of("fleet")[::5]
    ]


@functools.cache
def recordings():
    """Recordings of `run --record`, each a list of lines."""
    return [found for question in questions_of("pods")[::7] if (found := _recording(question))]


def _recording(question):
    try:
        situation = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    except (msgspec.ValidationError, ValueError):
        return None
    file, written = io.BytesIO(), []
    file.close = lambda: written.append(file.getvalue())
    header = {
        "semantics": situation.index.semantics,
        "seed": "",
        "identity": "fuzz",
        "scheduler": question.get("options", {}).get("config"),
    }
    recorder = Recorder(file, situation.index, header, lambda: datetime(2026, 1, 5, tzinfo=UTC))
    recorder.decided(situation.workload, "", "", [])
    target = next(iter(situation.index.slots.by_name), None)
    if target:
        situation.index.add(situation.workload, target)
        situation.index.remove(situation.workload.key)
        situation.index.remove_target(target)
    recorder.changed()
    recorder.decided(situation.workload, target or "", "", [])
    recorder.close()
    return _plain([json.loads(line) for line in written[0].splitlines()])


@functools.cache
def quotas():
    limits = {"research": "{cpu: 64, memory: 256Gi}", "_default": "{cpu: 0}"}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "bayplan-quota", "namespace": "bayplan-system"},
        "data": limits,
    }
    return _plain([[config_map, *_read("15-quota/cluster.yaml"), *_read("15-quota/waiting.yaml")]])


@functools.cache
def rebalanced():
    return _plain([[*_read("17-after-a-node-came-back/cluster.yaml"), *_read("17-after-a-node-came-back/pods.yaml")]])


@functools.cache
def broken():
    return _plain(
        [
            [*_read("16-broken-while-running/cluster.yaml"), *_read("16-broken-while-running/budget.yaml")],
            _read("16-broken-while-running/fleet.yaml"),
        ]
    )


@functools.cache
def vocabulary():
    return Vocabulary(
        [*manifests(), *fleets(), *audited(), *quotas(), *rebalanced(), *broken(), *configurations(), *kubeconfigs(), *inventories(),
         *questions_of("admission"), *questions_of("preemption")[:20], *questions_of("fleet")]
    )  # fmt: skip


def _examples(wanted):
    found = []
    for folder in sorted((ROOT / "examples").iterdir()):
        files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".yaml", ".json")]
        objects = [one for path in files for one in _read(path.relative_to(ROOT / "examples"))]
        if objects and all(isinstance(one, dict) and "kind" in one for one in objects) and wanted(objects):
            found.append(objects)
    return _plain(found)


def _read(path):
    found = []
    for document in yaml.safe_load_all((ROOT / "examples" / path).read_text()):
        found += document["items"] if isinstance(document, dict) and document.get("kind") == "List" else [document]
    return found


def _is_fleet(objects):
    return any(one["kind"] == "Cluster" for one in objects)


def _objects_of(question):
    named = [("Node", "nodes"), ("Namespace", "namespaces"), ("Pod", "pods")]
    listed = [{"apiVersion": "v1", "kind": kind, **one} for kind, field in named for one in question.get(field) or ()]
    return [*listed, {"apiVersion": "v1", "kind": "Pod", **question["pod"]}, *(question.get("objects") or ())]


def _fleet_objects_of(question):
    work, cluster = "work.karmada.io/v1alpha2", "cluster.karmada.io/v1alpha1"
    bindings = [_of_a_policy(one) for one in (*(question.get("bindings") or ()), question["binding"])]
    return [
        *({"apiVersion": cluster, "kind": "Cluster", **one} for one in question["clusters"]),
        *({"apiVersion": work, "kind": "ResourceBinding", **one} for one in bindings),
        *(question.get("resources") or ()),
    ]


def _of_a_policy(binding):
    """A scheduler leaves bindings of no policy alone."""
    metadata = binding.get("metadata") or {}
    labels = {"propagationpolicy.karmada.io/permanent-id": "p"} | (metadata.get("labels") or {})
    return {**binding, "metadata": {**metadata, "labels": labels}}


def _plain(value):
    """Without shared parts and Python's own types, such as dates."""
    return json.loads(json.dumps(value, default=str))
