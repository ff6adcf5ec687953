"""A repair plan as text: in sentences, as commands for Cluster API, as commands for OpenStack."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping

from bayplan.auditing.layout import CLOUD, ETCD, HOST, REGION, ZONE, AuditNode, Layout
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


def cluster_api(found: RepairPlan, before: Layout, after: Layout) -> list[str]:
    """Shell commands and comments for the operator of the management cluster; `after` is the layout planned."""
    lines = [
        "# The control-plane controller spreads over failure domains, not over machines: before anything is",
        "# replaced, list the target zones in the cluster's failure domains and give the machine template a server",
        f"# group with the policy {_group_policy(after)}.",
    ]
    if len(before.control_plane) % 2 and len(after.control_plane) % 2:
        lines.append("# The number of control-plane replicas stays odd.")
    known = before.by_name()
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
        n = len(before.control_plane) + sum(move.components != (ETCD,) for move in found.adds)
        owner = next((node.annotations.get("cluster.x-k8s.io/owner-name", "") for node in before.control_plane), "")
        lines.append(f"kubectl scale {_object('kubeadmcontrolplane', owner or 'NAME')} --replicas={n}")
    return [*lines, _ONE_AT_A_TIME]


def openstack(found: RepairPlan, before: Layout, after: Layout) -> list[str]:
    """Shell commands and comments for the operator of the cloud; a move is a live migration."""
    lines = ["# Servers created in parallel may end up on one machine again, whatever their group."]
    touched = {node.name for node in after.control_plane} & {move.node for move in (*found.moves, *found.adds)}
    if touched:
        n = len(after.control_plane)
        policy = _group_policy(after)
        if policy == _HARD:
            lines.append(
                f"# A hard group needs a machine for each of the {n} servers, and one more while they are replaced."
            )
        else:
            lines.append("# Two of these servers share a machine, which a hard group would not allow.")
        lines.append(f"openstack server group create --policy {policy} control-plane")
    known, planned = before.by_name(), after.by_name()
    for move in found.moves:
        node = known[move.node]
        server = node.provider_id.rpartition("/")[2] or move.node
        dashes = "-- " if server.startswith("-") else ""  # it is a name and no option
        lines.append(f"# {move.node} to {_where(move)}")
        left = next((one for one in (CLOUD, REGION, ZONE) if _leaves(one, node, planned[move.node])), "")
        if left in (CLOUD, REGION):
            lines.append(f"# It leaves its {left}: create a server there that replaces it, in the server group.")
        else:
            if left:
                lines.append(
                    "# It leaves its zone: if the cloud cannot migrate it there, create a server that replaces it."
                )
            lines.append(
                f"openstack server migrate --live-migration --host HYPERVISOR --wait {dashes}{_quoted(server)}"
            )
        lines += _label_lines(node.labels, planned[move.node], "Labels are set once, when the node joins: update them.")
    for move in found.adds:
        lines.append(f"# create {move.node} on {_where(move)}, in the server group")
        lines += _label_lines({}, planned[move.node], "Once it has joined:")
    return [*lines, _ONE_AT_A_TIME]


def _leaves(level: str, node: AuditNode, planned: AuditNode) -> bool:
    return node.at(level) is not None and node.at(level) != planned.at(level)


_ONE_AT_A_TIME = "# One at a time: wait until every member is healthy, then run the audit again."
_HARD, _SOFT = "anti-affinity", "soft-anti-affinity"


def _group_policy(after: Layout) -> str:
    """A hard server group, unless the plan itself leaves two servers of the control plane on one machine."""
    hosts = Counter(host for node in after.control_plane if (host := node.at(HOST)))
    return _SOFT if any(n > 1 for n in hosts.values()) else _HARD


def _label_lines(labels: Mapping[str, str], planned: AuditNode, remark: str) -> list[str]:
    """The command that sets the labels of a planned node that differ from `labels`, after a remark."""
    words = []
    new = []
    for level, key in planned.keys.items():
        value = planned.labels.get(key, "")
        if value and labels.get(key) != value:
            words.append(f"{_quoted(key)}={_quoted(value)}")
            new += [f"{value} by the label of the new {level}"] if is_new(planned.at(level) or "") else []
    if not words:
        return []
    lines = [f"# {remark}" + (f" Replace {', '.join(new)}." if new else "")]
    return [*lines, f"kubectl label {_object('node', planned.name)} {' '.join(words)} --overwrite"]


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
