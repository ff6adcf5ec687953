"""How many more replicas a cluster can take: Karmada's general estimator, from what the cluster reports."""

from reference.fleet import component_sets, resource_models
from reference.fleet.free_resources import free_amount, free_pods
from reference.fleet.go_numbers import MAX_INT32, int32
from reference.objects import exact, rounded


def allocatable(binding, cluster, semantics):
    """The replicas that still fit; resources without replicas fit without limit."""
    if binding.replicas == 0 and not binding.components:
        return MAX_INT32
    if semantics["multiplePodTemplatesScheduling"] and component_sets.applicable(binding):
        estimate = component_sets.most(binding.components, cluster)
    else:
        estimate = most_replicas(binding.requirements, cluster)
    # -1 means "unknown", and the largest number "no limit known": then all requested replicas fit.
    return binding.replicas if estimate in (-1, MAX_INT32) else estimate


def most_replicas(requirements, cluster):
    if cluster.summary is None:
        return 0
    pods = free_pods(cluster.summary)
    if pods <= 0:
        return 0
    if requirements is None:
        return int32(pods)
    requests = requirements.get("resourceRequest") or {}
    if resource_models.usable(cluster):
        return int32(min(pods, resource_models.most_replicas(requests, cluster)))
    return int32(min(pods, by_summary(requests, cluster.summary, pods)))


def by_summary(requests, summary, most):
    """The scarcest resource decides; of a resource that the cluster does not report it has none."""
    for resource, text in requests.items():
        if exact(text) <= 0:
            continue
        if resource not in (summary.get("allocatable") or {}):
            return 0
        free = free_amount(resource, summary)
        if free <= 0:
            return 0
        most = min(most, rounded(resource, free) // rounded(resource, exact(text)))
    return most
