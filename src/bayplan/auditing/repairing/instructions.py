"""A repair plan as text: in sentences, as commands for Cluster API, as commands for OpenStack."""

from __future__ import annotations

import shlex

from bayplan.auditing.layout import ETCD, HOST, Layout
from bayplan.auditing.repairing.plans import LEARNER, NOT_YET, REMOVE_FIRST, NodeMove, RepairPlan, is_new


def summary(found: RepairPlan) -> list[str]:
    """The plan in sentences, one per step, in order."""
    lines = [f"start {component} on {node}" for component, node in found.starts]
    lines += [f"add {move.node} ({', '.join(move.components)}) on {_where(move)}{_manner(move)}" for move in found.adds]
    lines += [
        f"move {move.node} from {', '.join(move.source.values())} to {_where(move)}{_manner(move)}"
        for move in found.moves
    ]
    lines += [f"{n} further {_plural(level, n)} needed" for level, n in found.further.items() if n]
    return [*lines, *found.notes]


def cluster_api(found: RepairPlan, layout: Layout) -> list[str]:
    """Shell commands and comments for the operator of the management cluster."""
    lines = [
        "# The control-plane controller spreads over failure domains, not over machines: before anything is",
        "# replaced, list the target zones in the cluster's failure domains and give the machine template a server",
        "# group with the policy anti-affinity. The number of replicas stays odd.",
    ]
    known = layout.by_name()
    for move in found.moves:
        notes = known[move.node].annotations
        machine = notes.get("cluster.x-k8s.io/machine", "")
        if not machine:
            lines.append(f"# {move.node}: find its Machine, and have it replaced on {_where(move)}{_manner(move)}")
            continue
        namespace = notes.get("cluster.x-k8s.io/cluster-namespace", "default")
        mark = "remediate-machine" if move.how == REMOVE_FIRST else "delete-machine"
        lines.append(f"# {move.node} to {_where(move)}{_manner(move)}")
        lines.append(
            f'kubectl -n {_quoted(namespace)} annotate {_object("machine", machine)} cluster.x-k8s.io/{mark}=""'
        )
    if found.adds:
        n = len(layout.control_plane) + sum(move.components != (ETCD,) for move in found.adds)
        owner = next((node.annotations.get("cluster.x-k8s.io/owner-name", "") for node in layout.control_plane), "")
        lines.append(f"kubectl scale {_object('kubeadmcontrolplane', owner or 'NAME')} --replicas={n}")
    return [*lines, "# One at a time: wait until every member is healthy, then run the audit again."]


def openstack(found: RepairPlan, layout: Layout) -> list[str]:
    """Shell commands and comments for the operator of the cloud; a move is a live migration."""
    n = len(layout.control_plane) + len(found.adds)
    lines = [
        "# A group with soft anti-affinity, or servers created in parallel, may end up on one machine again.",
        f"# A hard group needs a machine for each of the {n} servers and one more while they are rolled over.",
        "openstack server group create --policy anti-affinity control-plane",
    ]
    known = layout.by_name()
    for move in found.moves:
        node = known[move.node]
        server = node.provider_id.rpartition("/")[2] or move.node
        dashes = "-- " if server.startswith("-") else ""  # it is a name and no option
        lines.append(f"# {move.node} to {_where(move)}")
        lines.append(f"openstack server migrate --live-migration --host HYPERVISOR --wait {dashes}{_quoted(server)}")
        key = node.keys.get(HOST)
        if key:
            host = move.target.get(HOST, "")
            value = _quoted(host) if host and not is_new(host) else "HOST-ID"
            lines.append("# The label is set once, when the node joins: update it.")
            lines.append(f"kubectl label {_object('node', move.node)} {_quoted(key)}={value} --overwrite")
    lines += [f"# create {move.node} on {_where(move)}, in the server group" for move in found.adds]
    return [*lines, "# One at a time: wait until every member is healthy, then run the audit again."]


def _where(move: NodeMove) -> str:
    texts = [
        f"a new {level} ({domain})" if level in move.new else f"{level} {domain}"
        for level, domain in move.target.items()
    ]
    return ", ".join(texts) or "any machine"


def _manner(move: NodeMove) -> str:
    return {
        REMOVE_FIRST: "; it leaves before its successor joins",
        LEARNER: "; it joins as a learner and votes once it has caught up",
        NOT_YET: "; not before the members that are down work again",
    }.get(move.how, "")


def _plural(level: str, n: int) -> str:
    noun = "machine" if level == HOST else level
    return f"{noun} is" if n == 1 else f"{noun}s are"


def kubectl_words(kind: str, name: str) -> list[str]:
    """The words by which kubectl knows an object; a name that begins with a dash is never an option."""
    return [f"{kind}/{name}"] if name.startswith("-") else [kind, name]


def _object(kind: str, name: str) -> str:
    return " ".join(map(_quoted, kubectl_words(kind, name)))


def _quoted(text: str) -> str:
    """Quoted for a shell, on one line: names come from untrusted input."""
    return shlex.quote("".join(c for c in text if c.isprintable()))
