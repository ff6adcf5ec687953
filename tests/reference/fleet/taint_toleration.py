"""An untolerated taint rejects a cluster, unless the cluster holds the workload already."""

from reference.taint_toleration import tolerated

RULE = "TaintToleration"
HARD = ("NoSchedule", "NoExecute")


def check(attempt, cluster):
    if attempt.binding.targets(cluster.name):
        return []
    tolerations = attempt.binding.placement.get("clusterTolerations") or []
    for taint in cluster.taints:
        if taint.get("effect") in HARD and not tolerated(taint, tolerations):
            return [{"rule": RULE, "reason": f"cluster(s) had untolerated taint {{{text(taint)}}}"}]
    return []


def text(taint):
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key') or ''}{value}:{taint['effect']}"
