"""What a Deployment asks of its pods, counted again over all of them each time."""

from bayplan.controllers import deletion_order


def active(pods, set_of, name):
    return [pod for pod in pods.values() if pod.active and set_of[pod.name] == name]


def numbers(pods, set_of, name):
    """How many pods of a ReplicaSet are active and ready."""
    found = active(pods, set_of, name)
    return len(found), sum(pod.ready for pod in found)


def exist_outside(pods, set_of, name):
    return any(set_of[pod.name] != name for pod in pods.values() if pod.active or pod.terminating)


def pending(pods):
    return [name for name, pod in pods.items() if pod.active and not pod.assigned]


def leaving(pods):
    return [name for name, pod in pods.items() if pod.terminating]


def first_deleted(pods, set_of, name, n_deleted, now):
    found = deletion_order.first_deleted(active(pods, set_of, name), n_deleted, pods.values(), now)
    return [pod.name for pod in found]
