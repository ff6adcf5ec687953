"""What a DaemonSet creates and deletes next, by looking at all its nodes and pods each time."""

from bayplan.controllers.daemon_set_updates import DaemonSetActions
from bayplan.controllers.scaled_values import scaled


def sync(state, nodes, pods):
    """
    What the controller does next. `nodes` are all nodes by name, in the order in which they are updated.

    A sync that creates or deletes pods for another reason does not also update some.
    """
    by_node = {}
    for pod in pods:
        if pod.node:
            by_node.setdefault(pod.node, []).append(pod)
    managed = _manage(state, nodes, by_node)
    if managed or state.on_delete:
        return managed
    for name, node in nodes.items():
        if node.runs:
            by_node.setdefault(name, [])
    n_desired = sum(node.runs for node in nodes.values())
    max_unavailable = scaled(state.max_unavailable, n_desired, up=True)
    max_surge = scaled(state.max_surge, n_desired, up=True)
    if n_desired and not max_unavailable and not max_surge:
        max_unavailable = 1
    ordered = {name: by_node[name] for name in nodes if name in by_node}
    if not max_surge:
        return _replace(state, ordered, max_unavailable)
    return _surge(state, nodes, ordered, max_surge, n_desired)


def _manage(state, nodes, by_node):
    """One pod for each node that runs one; pods that finished or are one too many go."""
    created, deleted = [], []
    for name, node in nodes.items():
        pods = by_node.get(name)
        if node.runs and pods is None:
            created.append(name)
        elif node.keeps:
            deleted += sorted(pod.name for pod in pods or () if not pod.active and not pod.terminating)
            running = sorted(
                (pod for pod in pods or () if pod.active), key=lambda pod: (not pod.assigned, pod.created, pod.name)
            )
            if not state.surges:
                deleted += [pod.name for pod in running[1:]]
            elif len(running) > 1:
                deleted += _surplus(state, running)
            elif not running and node.runs:
                created.append(name)
        else:
            deleted += [pod.name for pod in pods or () if not pod.terminating]
    gone = (pod for name, pods in by_node.items() if name not in nodes for pod in pods)
    deleted += [pod.name for pod in gone if not pod.assigned and not pod.terminating]
    return DaemonSetActions(tuple(created), tuple(deleted))


def _surplus(state, running):
    """While it surges, a node keeps one old pod that is ready and one new pod that is not yet."""
    new = next((pod for pod in running if pod.revision == state.revision), None)
    old = next((pod for pod in running if pod.revision != state.revision), None)
    surplus = [pod.name for pod in running if pod is not new and pod is not old]
    if new is not None and old is not None and (not old.ready or new.ready):
        surplus.append(old.name)
    return surplus


def _updated_and_old(state, pods):
    """The node's pod of the present template and its old one; None if it has several of a sort."""
    staying = [pod for pod in pods if not pod.terminating]
    new = [pod for pod in staying if state.is_updated(pod)]
    old = [pod for pod in staying if not state.is_updated(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return new[0] if new else None, old[0] if old else None


def _replace(state, by_node, max_unavailable):
    """Delete old pods that are unavailable, and as many others as may be unavailable."""
    n_unavailable, unavailable, candidates = 0, [], []
    for pods in by_node.values():
        found = _updated_and_old(state, pods)
        new, old = found or (None, None)
        if found is None or (new is None) == (old is None):
            n_unavailable += 1
        elif old is None:
            n_unavailable += new is not None and not new.ready
        elif not old.ready or not old.active:
            unavailable.append(old.name)
            n_unavailable += 1
        else:
            candidates.append(old.name)
    n_more = max(0, max_unavailable - n_unavailable)
    return DaemonSetActions(deleted=(*unavailable, *candidates[:n_more]))


def _surge(
    state,
    nodes,
    by_node,
    max_surge,
    n_desired,
):
    """Create new pods beside old ones; an old pod goes once the new one is available."""
    n_surging, n_available = 0, 0
    deleted = []
    leaving = []
    allowed = []
    candidates = []
    for name, pods in by_node.items():
        found = _updated_and_old(state, pods)
        if found is None:
            n_surging += 1
            continue
        new, old = found
        counted = old or new
        n_available += counted is not None and counted.ready
        if old is None:
            continue
        if new is None:
            if not nodes[name].runs:
                (leaving if old.ready else deleted).append(old.name)
            else:
                (candidates if old.ready else allowed).append(name)
        elif new.ready:
            deleted.append(old.name)
        else:
            n_surging += 1
    deleted += leaving[: max(0, n_available - n_desired)]
    return DaemonSetActions((*allowed, *candidates[: max(0, max_surge - n_surging)]), tuple(deleted))
