"""Clusters in shorthand: `3x cp z1/h1` is three control-plane nodes in zone z1 on host h1; `-` is a missing label."""

from bayplan.auditing import audit, profiles, surveying, survival, workload_groups
from bayplan.auditing.audit_input import AuditInput
from bayplan.wire.meta import ObjectMeta, OwnerReference
from bayplan.wire.observed import (
    ObservedAddress,
    ObservedCondition,
    ObservedContainer,
    ObservedNode,
    ObservedNodeInfo,
    ObservedNodeSpec,
    ObservedNodeStatus,
    ObservedPod,
    ObservedPodSpec,
    ObservedPodStatus,
)

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
ETCD_ROLE = "node-role.kubernetes.io/etcd"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOST = "topology.scs.community/host-id"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def node(name, role, place, *, region="r", ready=True, uuid="", labels=None, role_value="", provider_id="", ip=""):
    zone, _, host = place.partition("/")
    given = {ZONE: zone, HOST: host, REGION: region}
    found = {key: value for key, value in given.items() if value not in ("", "-")}
    if role in ("cp", "cp+etcd"):
        found[CONTROL_PLANE] = role_value
    if role in ("etcd", "cp+etcd"):
        found[ETCD_ROLE] = role_value
    return ObservedNode(
        metadata=ObjectMeta(name=name, labels={**found, **(labels or {})}),
        spec=ObservedNodeSpec(provider_id=provider_id),
        status=ObservedNodeStatus(
            conditions=[ObservedCondition(type="Ready", status="True" if ready else "False")],
            node_info=ObservedNodeInfo(system_uuid=uuid),
            addresses=[ObservedAddress(type="InternalIP", address=ip)] if ip else None,
        ),
    )


def nodes(*rows):
    """`cp z1/h1` per node, `3x worker z1/h1` for several."""
    found = []
    for row in rows:
        number, _, rest = row.partition("x ") if row[0].isdigit() else ("1", "", row)
        role, place, *region = rest.split()
        for _ in range(int(number)):
            found.append(node(f"{role}-{len(found)}", role, place, region=region[0] if region else "r"))
    return found


def pod(component, node_name, *, phase="Running", labels=None, args=(), **metadata):
    return ObservedPod(
        metadata=ObjectMeta(
            name=f"{component}-{node_name}",
            namespace="kube-system",
            labels={"component": component, "tier": "control-plane", **(labels or {})},
            **metadata,
        ),
        spec=ObservedPodSpec(node_name=node_name, containers=[ObservedContainer(name=component, command=list(args))]),
        status=ObservedPodStatus(phase=phase),
    )


def stacked(given):
    """All four components on each control-plane node."""
    return [
        pod(part, one.metadata.name) for one in given for part in COMPONENTS if CONTROL_PLANE in one.metadata.labels
    ]


def owned(name, node_name, owner, *, kind="ReplicaSet", namespace="shop", template="", **pod_fields):
    """A pod of a controller; with a template hash its ReplicaSet is a Deployment's."""
    labels = {"app": owner, **({"pod-template-hash": template} if template else {})}
    reference = OwnerReference(kind=kind, name=f"{owner}-{template}" if template else owner, controller=True)
    annotations = pod_fields.pop("annotations", None)
    metadata = ObjectMeta(
        name=name, namespace=namespace, labels=labels, owner_references=[reference], annotations=annotations
    )
    spec = ObservedPodSpec(node_name=node_name, **pod_fields)
    return ObservedPod(metadata=metadata, spec=spec, status=ObservedPodStatus(phase="Running"))


def replicas(owner, *node_names, **more):
    """The replicas of one Deployment, on these nodes."""
    return [owned(f"{owner}-{i}", name, owner, template="5d9f", **more) for i, name in enumerate(node_names)]


def layout_of(given, pods=None, *, catalogue=None, **more):
    return surveying.layout_of(AuditInput(nodes=given, pods=pods, **more), catalogue)


def judge(given, pods=None, *, profile=profiles.DEFAULT, stages=(), catalogue=None, preferences=None, **more):
    """The audit without placing anything again."""
    source = AuditInput(nodes=given, pods=pods, **more)
    layout = surveying.layout_of(source, catalogue)
    workloads = workload_groups.workloads_of(source, layout, preferences or workload_groups.NO_PREFERENCES)
    levels = survival.survey_losses(layout, workloads.all if workloads else None)
    counted = survival.Survival(
        asked=survival.ALL_LEVELS, levels=tuple(levels), risks=survival.risks(layout, levels), note="not asked for"
    )
    weighed = profiles.PROFILES[profile]
    return audit.run_audit(layout, weighed, required_stages=stages, workloads=workloads, survival=counted)


def verdicts(result):
    return {one.id: one.verdict for one in result.results}


def finding(result, check):
    return next(one for one in result.results if one.id == check)
