"""What is left of a cluster's resources by its own report."""

from reference.objects import exact, rounded

PARTS = ("allocatable", "allocated", "allocating")


def free_pods(summary):
    """Each of the three is rounded up by itself."""
    allocatable, *used = [rounded("pods", exact((summary.get(part) or {}).get("pods") or 0)) for part in PARTS]
    return max(0, allocatable - sum(used))


def free_amount(resource, summary):
    """Exact, and below zero where more is used than there is."""
    allocatable, *used = [exact((summary.get(part) or {}).get(resource) or 0) for part in PARTS]
    return allocatable - sum(used)
