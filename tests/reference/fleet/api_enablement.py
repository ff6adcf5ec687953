"""A cluster must serve the kind that is propagated; clusters that already hold the workload are exempt."""

RULE = "APIEnablement"
REASON = "cluster(s) did not have the API resource"


def check(attempt, cluster):
    binding = attempt.binding
    if binding.targets(cluster.name) or enabled(cluster, binding.resource):
        return []
    return [{"rule": RULE, "reason": REASON}]


def enabled(cluster, resource):
    for served in cluster.api_enablements:
        if (served.get("groupVersion") or "") != group_version(resource.get("apiVersion") or ""):
            continue
        if any(kind.get("kind") == resource.get("kind") for kind in served.get("resources") or []):
            return True
    return False


def group_version(text):
    """As schema.ParseGroupVersion parses it: more than one slash is no version."""
    if text.count("/") > 1:
        return ""
    return text.removeprefix("/")
