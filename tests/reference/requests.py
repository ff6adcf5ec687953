"""How much of each resource a pod requests. Knows nothing of nodes."""

from fractions import Fraction

from reference.objects import exact, rounded

# pkg/scheduler/util/pod_resources.go: what scoring assumes where a container asks for nothing
ASSUMED = {"cpu": exact("100m"), "memory": exact("200Mi")}


def requests(pod, *, placed, assuming=None, pod_level=True):
    """
    The pod's requests as {resource: amount}; `assuming` fills in what a container leaves out.

    A placed pod counts with the most of what it requests, what it was allocated and what it uses, while it is resized.
    """
    total = _of_containers(pod, placed, assuming or {})
    if pod_level:
        for resource, amount in pod_level_requests(pod).items():
            total[resource] = exact(amount)
    for resource, amount in (pod.spec.get("overhead") or {}).items():
        total[resource] = total.get(resource, 0) + exact(amount)
    return {resource: rounded(resource, amount) for resource, amount in total.items()}


def assumed_requests(pod):
    """Of a placed pod: cpu and memory with the assumed amounts filled in."""
    asked = requests(pod, placed=True)
    assuming = ASSUMED
    if pod_level_requests(pod):
        assuming = {resource: amount for resource, amount in ASSUMED.items() if resource not in asked}
    return requests(pod, placed=True, assuming=assuming)


def pod_level_requests(pod):
    asked = (pod.spec.get("resources") or {}).get("requests") or {}
    return {
        name: amount for name, amount in asked.items() if name in ("cpu", "memory") or name.startswith("hugepages-")
    }


def _of_containers(pod, placed, assuming):
    total, sidecars, largest = {}, {}, {}
    for container in pod.containers:
        total = plus(total, _of_container(pod, container, "containerStatuses", placed, assuming))
    for container in pod.init_containers:
        asked = _of_container(pod, container, "initContainerStatuses", placed, assuming)
        if container.get("restartPolicy") == "Always":
            total = plus(total, asked)
            sidecars = plus(sidecars, asked)
            asked = sidecars
        else:
            asked = plus(sidecars, asked)
        largest = most(largest, asked)
    return most(total, largest)


def _of_container(pod, container, statuses, placed, assuming):
    asked = _amounts((container.get("resources") or {}).get("requests"))
    status = next((s for s in pod.status.get(statuses) or [] if s.get("name") == container.get("name")), None)
    running_on = statuses == "containerStatuses" or container.get("restartPolicy") == "Always"
    if placed and running_on and status is not None and status.get("resources") is not None:
        given = most(_amounts(status["resources"].get("requests")), _amounts(status.get("allocatedResources")))
        asked = given if _resize_infeasible(pod) else most(asked, given)
    return {**assuming, **asked}


def _resize_infeasible(pod):
    return any(
        condition.get("type") == "PodResizePending" and condition.get("reason") == "Infeasible"
        for condition in pod.status.get("conditions") or []
    )


def _amounts(texts):
    """As an API server stores them: rounded up to thousandths."""
    return {resource: Fraction(-int(-exact(text) * 1000 // 1), 1000) for resource, text in (texts or {}).items()}


def plus(one, other):
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def most(one, other):
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
