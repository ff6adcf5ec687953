"""A cluster that the workload is being evicted from is rejected, even if it is still listed in the result."""

RULE = "ClusterEviction"
REASON = "cluster(s) is in the process of eviction"


def check(attempt, cluster):
    if attempt.binding.evicted_from(cluster.name):
        return [{"rule": RULE, "reason": REASON}]
    return []
