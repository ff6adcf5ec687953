"""The nodes on which a DaemonSet runs a pod, and the pod's spec there (pkg/controller/daemon). Creates no pods."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from bayplan.mapping import selectors
from bayplan.model.labels import HARD_EFFECTS, NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, tolerated
from bayplan.wire.nodes import Node
from bayplan.wire.pods import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    WireNodeAffinity,
    WireToleration,
)

# pkg/controller/daemon/util/daemonset_util.go, AddOrUpdateDaemonPodTolerations
_TOLERATED = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def with_tolerations(spec: PodSpec) -> PodSpec:
    """The template's spec and the tolerations of every daemon pod, which replace its own for the same taint."""
    tolerated = (*_TOLERATED, _TOLERATED_ON_HOST_NETWORK) if spec.host_network else _TOLERATED
    own = [t for t in spec.tolerations or () if (t.key, t.effect) not in tolerated]
    added = [WireToleration(key=key, operator="Exists", effect=effect) for key, effect in tolerated]
    return msgspec.structs.replace(spec, tolerations=own + added)


def runs_on(spec: PodSpec, node: Node, effects: Container[str] = HARD_EFFECTS) -> bool:
    """
    Whether the DaemonSet runs a pod there: node name, selector, required affinity and hard taints allow it.

    A pod that runs already stays if it tolerates the taints of the effect NoExecute.
    """
    name, labels = node.metadata.name, node.metadata.labels or {}
    if spec.node_name and spec.node_name != name:
        return False
    affinity = selectors.node_affinity_of(spec.affinity.node_affinity if spec.affinity else None, spec.node_selector)
    if any(labels.get(key) != value for key, value in affinity.selector):
        return False
    if affinity.required is not None and not any(term.matches(name, labels) for term in affinity.required):
        return False
    tolerations = [Toleration(t.key, t.operator, t.value, t.effect) for t in spec.tolerations or ()]
    found = (Taint(t.key, t.value, t.effect) for t in node.spec.taints or ())
    return all(tolerated(taint, tolerations) for taint in found if taint.effect in effects)


def bound_to(spec: PodSpec, node_name: str) -> PodSpec:
    """The spec for the pod of one node: its required node affinity is replaced by the node's name."""
    name_is = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node_name])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name_is])])
    affinity = spec.affinity or Affinity()
    node_affinity = msgspec.structs.replace(
        affinity.node_affinity or WireNodeAffinity(), required_during_scheduling_ignored_during_execution=required
    )
    return msgspec.structs.replace(spec, affinity=msgspec.structs.replace(affinity, node_affinity=node_affinity))
