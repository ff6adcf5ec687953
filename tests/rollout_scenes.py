"""Scenes of updates in few words: nodes, running workloads, what changes, and the rollouts stepped through."""

import itertools

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.engine.engine import Engine
from bayplan.placing import pod_scheduler
from bayplan.placing.rollouts import Stepper
from bayplan.placing.volume_attaching import VolumeAttaching
from bayplan.placing.volume_provisioning import Provisioning
from bayplan.reading import cluster
from bayplan.reading.collecting import Inputs
from bayplan.rules import profiles
from bayplan.wire import kinds

RULES = profiles.pod_rules()
HOSTNAME = "kubernetes.io/hostname"
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}
        ]
    }
}


def node(name, cpu="4", **metadata):
    labels = {HOSTNAME: name} | metadata.pop("labels", {})
    taints = metadata.pop("taints", [])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def template(cpu="1", image="web:1", labels=None, **spec):
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": labels or {"app": "web"}}, "spec": {"containers": [container]} | spec}


def controller(kind, replicas=3, name="web", cpu="1", image="web:1", pod=None, annotations=None, **spec):
    labels = {"app": name}
    written = {"selector": {"matchLabels": labels}, "template": template(cpu, image, labels, **(pod or {}))} | spec
    if kind not in ("DaemonSet", "Job"):
        written["replicas"] = replicas
    version = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": name, "namespace": "shop", "uid": f"{kind}-{name}", "annotations": annotations or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": written}


def pod_of(owner, name, where, *, ready=True, labels=None, cpu=None, **metadata):
    """A pod of a controller; `where` is its node, "" while it is pending."""
    written = owner["spec"]["template"]
    status = {"phase": "Running" if where else "Pending"}
    if where:
        status["conditions"] = [{"type": "Ready", "status": str(bool(ready))}]
    meta = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "labels": written["metadata"]["labels"] | (labels or {}),
        "ownerReferences": [
            {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
             "uid": owner["metadata"]["uid"], "controller": True}
        ],
    }  # fmt: skip
    spec = written["spec"] | ({"nodeName": where} if where else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta | metadata, "spec": spec, "status": status}


def deployed(deployment, *where, hashed="old", revision="1", ready=None):
    """A Deployment that is rolled out: its ReplicaSet, and one pod on each of the nodes."""
    name = f"{deployment['metadata']['name']}-{hashed}"
    replica_set = msgspec.json.decode(msgspec.json.encode(deployment))
    labels = replica_set["spec"]["template"]["metadata"]["labels"] | {"pod-template-hash": hashed}
    replica_set["spec"]["template"]["metadata"]["labels"] = labels
    replicas = len(where)
    surge = replicas + -(-replicas // 4)
    replica_set |= {
        "kind": "ReplicaSet",
        "metadata": {
            "name": name, "namespace": "shop", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"deployment.kubernetes.io/revision": revision,
                            "deployment.kubernetes.io/desired-replicas": str(replicas),
                            "deployment.kubernetes.io/max-replicas": str(surge)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"],
                                 "uid": deployment["metadata"]["uid"], "controller": True}],
        },
    }  # fmt: skip
    replica_set["spec"] = {
        "replicas": replicas, "selector": {"matchLabels": labels}, "template": replica_set["spec"]["template"]
    }  # fmt: skip
    deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = revision
    pods = [
        pod_of(replica_set, f"{name}-{number}", place, ready=ready is None or ready[number])
        for number, place in enumerate(where)
    ]
    return [deployment, replica_set, *pods]


def stateful(controller_, *where, start=0, revision="web-old", ready=None):
    """A StatefulSet with one pod on each of the nodes, from the lowest ordinal on."""
    labels = {"controller-revision-hash": revision}
    controller_["status"] = {"currentRevision": revision, "updateRevision": revision}
    pods = [
        pod_of(controller_, f"{controller_['metadata']['name']}-{start + number}", place, labels=labels,
               ready=ready is None or ready[number])
        for number, place in enumerate(where)
    ]  # fmt: skip
    return [controller_, *pods]


def daemons(controller_, *where):
    """A DaemonSet with one pod on each of the nodes."""
    name = controller_["metadata"]["name"]
    labels = {"controller-revision-hash": "old"}
    return [controller_, *(pod_of(controller_, f"{name}-{place}", place, labels=labels) for place in where)]


def identity(written):
    metadata = written["metadata"]
    return ObjectKey(written["kind"], metadata.get("namespace", ""), metadata["name"])


def _typed(written):
    handling = kinds.handling_of(written["apiVersion"], written["kind"])
    return handling.row, msgspec.convert(written, handling.wire_type)


def inputs_of(state, *change):
    """The state after the change; objects of the change are given whole, as they are after they are applied."""
    changed = {identity(written): written for written in change}
    inputs = Inputs(change=set(changed))
    for written in itertools.chain(
        state, (one for key, one in changed.items() if key not in set(map(identity, state)))
    ):
        key = identity(written)
        row, typed = _typed(changed.get(key, written))
        if key in changed and changed[key] is not written:
            inputs.replaced[key] = _typed(written)[1]
            if changed[key]["spec"].get("template") != written["spec"].get("template"):
                inputs.rolled_out.add(key)
        inputs.list_of(row).append(typed)
        if row.kind == "Pod":
            inputs.inventory.add(typed)
    return inputs


def stepper(state, *change, preempts=True, **options):
    """The rollouts of the change, ready to be stepped through."""
    found = cluster.cluster_of(inputs_of(state, *change))
    engine = Engine(found.index, RULES)
    scheduler = pod_scheduler.PodScheduler(
        lambda _: engine,
        found.index,
        found.disruption_budgets,
        pod_scheduler.recreated_by_controller(found.index, found.spread_context),
        preempts=preempts,
    )
    for workload in found.pending:
        scheduler.add(workload)
    return Stepper(
        found.rollouts,
        scheduler,
        found.index,
        found.spread_context,
        provisioning=Provisioning(found.default_class, classes_known=found.classes_known),
        admission=found.admission,
        attaching=VolumeAttaching(found.csi_drivers, known=found.csi_drivers_known),
        **options,
    )


def roll_out(state, *change, final=False, **options):
    """The results by workload, and the nodes of each workload's pods."""
    steps = stepper(state, *change, **options)
    results = steps.end_state() if final else steps.run()
    return {result.workload.name: result for result in results}


def nodes_of(steps, name="web"):
    rollout = next(rollout for rollout in steps.rollouts if rollout.key.name == name)
    return sorted(pod.node for pod in rollout.pods.values())
