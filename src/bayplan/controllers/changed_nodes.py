"""
Nodes that a change gives other taints or labels, and the running pods that have to leave them for it.

The taint manager evicts pods that do not tolerate a taint of the effect NoExecute; a DaemonSet deletes its pods on
nodes that it no longer selects. Where these pods would run again is not judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bayplan.controllers import daemon_sets
from bayplan.controllers.desired_state import DesiredState, ObjectKey
from bayplan.model.labels import NO_EXECUTE, Taint, tolerated
from bayplan.model.workloads import Workload
from bayplan.wire.controllers import Controller
from bayplan.wire.nodes import Node

_MAX_NAMES_SHOWN = 3


def evicting(state: DesiredState, running: Iterable[tuple[Workload, str]]) -> Iterator[tuple[ObjectKey, str]]:
    """Each changed node that running pods must leave, with a sentence that names them."""
    changed = {
        node.metadata.name: node for node in state.nodes if ObjectKey("Node", "", node.metadata.name) in state.replaced
    }
    if not changed:
        return
    leaving: dict[str, list[str]] = {}
    for workload, name in running:
        if name in changed and _must_leave(workload, changed[name], state):
            leaving.setdefault(name, []).append(f"{workload.namespace}/{workload.name}")
    for name, pods in leaving.items():
        shown = ", ".join(pods[:_MAX_NAMES_SHOWN]) + (" …" if len(pods) > _MAX_NAMES_SHOWN else "")
        counted = "1 running pod" if len(pods) == 1 else f"{len(pods)} running pods"
        yield ObjectKey("Node", "", name), f"its change drives out {counted} ({shown}), which are not placed again here"


def _must_leave(workload: Workload, node: Node, state: DesiredState) -> bool:
    taints = (Taint(one.key, one.value, one.effect) for one in node.spec.taints or () if one.effect == NO_EXECUTE)
    if not all(tolerated(taint, workload.needs.tolerations) for taint in taints):
        return True
    owner = workload.controller
    if owner is None or owner.kind != "DaemonSet":
        return False
    for controller in state.controllers["DaemonSet"]:
        meta = controller.metadata
        if isinstance(controller, Controller) and (meta.namespace, meta.name) == (workload.namespace, owner.name):
            spec = daemon_sets.with_tolerations(controller.spec.template.spec)
            return not daemon_sets.runs_on(spec, node, (NO_EXECUTE,))
    return False
