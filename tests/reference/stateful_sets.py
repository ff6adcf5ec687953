"""What a StatefulSet creates and deletes next, by looking at all its pods and ordinals each time."""

from bayplan.controllers.stateful_sets import NOTHING, StatefulSetActions, ordinal_of


def sync(state, pods):
    """What the controller does next; nothing while it waits for a pod to become ready or to be gone."""
    replicas = {}
    condemned = {}
    ordinals = range(state.start, state.start + state.replicas)
    for pod in pods:
        ordinal = ordinal_of(pod.name, state.name)
        if ordinal >= 0:
            (replicas if ordinal in ordinals else condemned)[ordinal] = pod
    if state.parallel:
        return _sync_parallel(state, replicas, condemned)
    for ordinal in ordinals:
        replica = replicas.get(ordinal)
        if replica is None:
            return StatefulSetActions(created=(ordinal,))
        if _is_finished(replica):
            return StatefulSetActions(deleted=(replica.name,))
        if not _is_available(replica):
            return NOTHING
    # All replicas are available, so the first unavailable pod is the lowest condemned one that is not.
    unavailable = next((condemned[at].name for at in sorted(condemned) if not _is_available(condemned[at])), "")
    for ordinal in sorted(condemned, reverse=True):
        pod = condemned[ordinal]
        if pod.terminating or (not _is_available(pod) and pod.name != unavailable):
            return NOTHING
        return StatefulSetActions(deleted=(pod.name,))
    return _update(state, replicas)


def _sync_parallel(state, replicas, condemned):
    """Missing pods and those beyond the replicas at once, without waiting; updates still go one by one."""
    ordinals = range(state.start, state.start + state.replicas)
    created = tuple(ordinal for ordinal in ordinals if ordinal not in replicas)
    finished = [pod.name for _, pod in sorted(replicas.items()) if _is_finished(pod)]
    surplus = [condemned[at].name for at in sorted(condemned, reverse=True) if not condemned[at].terminating]
    if created or finished or surplus:
        return StatefulSetActions(created, (*finished, *surplus))
    return _update(state, replicas)


def _update(state, replicas):
    """Delete the highest pod of another revision, if no pod above it is unavailable."""
    if state.on_delete:
        return NOTHING
    for ordinal in range(state.start + state.replicas - 1, state.start + state.partition - 1, -1):
        pod = replicas[ordinal]
        if pod.revision != state.update_revision and not pod.terminating:
            return StatefulSetActions(deleted=(pod.name,))
        if not _is_available(pod):
            return NOTHING
    return NOTHING


def _is_finished(pod):
    return not pod.active and not pod.terminating


def _is_available(pod):
    return pod.ready and pod.active
