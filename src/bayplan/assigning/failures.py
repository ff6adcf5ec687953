"""
The failures of Karmada's last two stages and of evictions, with what they mean and what to do.

No rule of a single cluster gives them. Texts have <placeholders>. Knows nothing of when they are raised.
"""

from __future__ import annotations

from bayplan.model.reasons import DocumentedReason, Reason, StatusCode

SELECT, ASSIGN, EVICT = "select-clusters", "assign-replicas", "evict"


def _page(name: str, text: str, means: str, to_do: str) -> DocumentedReason:
    return DocumentedReason(Reason(name, text, StatusCode.UNSCHEDULABLE), means, to_do)


_FEWER = "Lower minGroups, or let more clusters fit: explain names what rejects each of the others."
SELECTING = (
    _page(
        "no-capacity-in-clusters",
        "no enough resource when selecting <n> clusters",
        "The spread constraint selects at most this many clusters, and no such set has room for all replicas.",
        "Raise maxGroups, request less, scale down, or add capacity.",
    ),
    _page(
        "too-few-clusters",
        "the number of feasible clusters is less than spreadConstraint.MinGroups",
        "Fewer clusters fit than minGroups of the spread constraint by cluster requires.",
        _FEWER,
    ),
    _page(
        "too-few-regions",
        "the number of feasible region is less than spreadConstraint.MinGroups",
        "The clusters that fit are in fewer regions than minGroups of the spread constraint by region requires.",
        _FEWER,
    ),
    _page(
        "too-few-clusters-in-regions",
        "the number of clusters is less than the cluster spreadConstraint.MinGroups",
        "No permitted set of regions has as many clusters that fit as minGroups of the constraint by cluster requires.",
        _FEWER,
    ),
    _page(
        "unsupported-spread",
        "just support cluster and region spread constraint",
        "Karmada spreads by cluster and by region only, and the placement has neither constraint.",
        "Add a spread constraint by cluster, or use the switch spreadByEveryField.",
    ),
    _page(
        "no-set-meets-spread",
        "no set of feasible clusters meets the spread constraints",
        "With the switch spreadByEveryField all constraints hold at once, and no set of clusters meets them.",
        "Relax one of the constraints, or let more clusters fit.",
    ),
    _page(
        "spread-unmet",
        "spans <n>, <limit> is <n>",
        "The workload is placed, but the clusters that got replicas do not meet minGroups or maxGroups: aggregated "
        "replicas may need fewer clusters than were selected, static weights ignore constraints, and of zones and "
        "providers a cluster only has to have one.",
        "Divide by dynamic weights, or use the switch spreadByEveryField where zones and providers have to count.",
    ),
)
ASSIGNING = (
    _page(
        "no-capacity",
        "Clusters available replicas <n> are not enough to schedule.",
        "The selected clusters have room for fewer replicas than the workload needs.",
        "Request less, scale down, add capacity, or add clusters to the group or as a further tier.",
    ),
    _page(
        "no-capacity-in-tiers",
        "Clusters available replicas are not enough to schedule.",
        "All tiers of the group together have room for fewer replicas than the workload has.",
        "Request less, scale down, add capacity, or add clusters to a tier or as a further tier.",
    ),
    _page(
        "unsupported-strategy",
        "unsupported replica scheduling strategy, <strategy>",
        "Karmada does not know this combination of replicaSchedulingType and replicaDivisionPreference.",
        "Use Duplicated, or Divided with Aggregated or Weighted.",
    ),
)
EVICTING = (
    _page(
        "evicted",
        "evicted, and not scheduled again, because <why>",
        "In a what-if a cluster is lost, drained or tainted, and Karmada evicts the binding from it. No scheduler "
        "places it again, so it only keeps its other clusters.",
        "Resume scheduling of a suspended binding, or give its template a policy.",
    ),
)
