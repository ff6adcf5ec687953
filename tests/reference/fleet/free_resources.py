"""The free resources of a cluster by its resource summary."""

from reference.objects import exact, rounded

PARTS = ("allocatable", "allocated", "allocating")


def free_pods(summary):
    """Each of the three is rounded up by itself."""
    allocatable, *used = [rounded("pods", exact((summary.get(part) or {}).get("pods") or 0)) for part in PARTS]
    return max(0, allocatable - sum(used))


def free_amount(resource, summary):
    """The exact amount, negative where more is used than allocatable."""
    allocatable, *used = [exact((summary.get(part) or {}).get(resource) or 0) for part in PARTS]
    return allocatable - sum(used)
