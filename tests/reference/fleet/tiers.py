"""
One notion of ordered tiers for Karmada's `overflowAffinities` and the four forms of the design document.

| Form | Terms tried | Tiers of a term |
|---|---|---|
| `clusterAffinity`, perhaps with `supplements` | one without a name | itself, its supplements |
| `clusterAffinities`, perhaps with `supplements` | each, in order | the term, its supplements |
| `clusterAffinities` with `overflowAffinities` | each, in order | the term, its overflow affinities |
| `clusterAffinities` under `affinityStrategy.mode: Inherited` | one, named as the first | each term |
| `preferredClusterAffinities` | one, named as the first | each term |

Choices that the design document leaves open:

- Two forms in one placement, supplements inside supplements, an unknown mode, `Inherited` without terms, and
  `preferredClusterAffinities` beside `clusterAffinity` or `clusterAffinities` make the workload unplaceable.
- An empty list of supplements or of preferred affinities is the same as none; an empty `overflowAffinities` still
  fills its single tier by capacity, as in Karmada.
- Resources without replicas use any tier of the document's forms, as Duplicated ones do; of Karmada's own only the first.
"""

from reference.fleet import cluster_affinity
from reference.fleet.failures import SchedulerError

NOWHERE = 1000  # Karmada's tier of a cluster that no affinity names
PLAIN, OVERFLOW, DESIGN = "plain", "overflow", "design"


class Term:
    def __init__(self, name, tiers, form=PLAIN, *, first_only=False):
        self.name = name
        self.tiers = tiers  # None: no affinity at all
        self.form = form
        self.first_only = first_only  # things without replicas stay in the first tier

    def admits(self, cluster, is_workload):
        if self.tiers is None:
            return True
        tiers = self.tiers if is_workload or not self.first_only else self.tiers[:1]
        return any(cluster_affinity.matches(cluster, tier) for tier in tiers)

    def tier(self, cluster):
        """The first tier that selects the cluster."""
        for number, tier in enumerate(self.tiers or [{}]):
            if cluster_affinity.matches(cluster, tier):
                return number
        return NOWHERE


def read(placement, semantics):
    """The terms to try in order, or None for a list of terms that is there and empty."""
    check_forms(placement)
    preferred = placement.get("preferredClusterAffinities")
    if preferred:
        return [Term(preferred[0].get("affinityName") or "", preferred, DESIGN)]
    terms = placement.get("clusterAffinities")
    if inherited(placement):
        return [Term(terms[0].get("affinityName") or "", terms, DESIGN)]
    single = placement.get("clusterAffinity")
    if single is not None and terms is None:
        supplements = single.get("supplements") or []
        return [Term("", [single, *supplements], DESIGN if supplements else PLAIN)]
    if terms is None:
        return [Term("", None)]
    if not terms:
        return None
    return [named(placement, term.get("affinityName") or "", semantics) for term in terms]


def named(placement, name, semantics):
    """Karmada looks terms up by name, so of two with the same name the first is used both times."""
    if placement.get("clusterAffinity") is not None:  # comes first wherever both are there
        return Term(name, [placement["clusterAffinity"]])
    same = [term for term in placement["clusterAffinities"] if (term.get("affinityName") or "") == name]
    first = same[0]
    if first.get("supplements"):
        return Term(name, [first, *first["supplements"]], DESIGN)
    tiers = [first, *(first.get("overflowAffinities") or [])]
    overflows = name != "" and any(term.get("overflowAffinities") is not None for term in same)
    first_only = not semantics["firstTierAlone"]
    return Term(name, tiers, OVERFLOW if overflows else PLAIN, first_only=first_only)


def inherited(placement):
    return (placement.get("affinityStrategy") or {}).get("mode") == "Inherited"


def check_forms(placement):
    single, terms = placement.get("clusterAffinity") or {}, placement.get("clusterAffinities") or []
    preferred = placement.get("preferredClusterAffinities") or []
    forms = {
        "supplements of clusterAffinity": bool(single.get("supplements")),
        "supplements of clusterAffinities": any(term.get("supplements") for term in terms),
        "overflowAffinities": any(term.get("overflowAffinities") for term in terms),
        "affinityStrategy": inherited(placement),
        "preferredClusterAffinities": bool(preferred),
    }
    used = [form for form, is_used in forms.items() if is_used]
    if len(used) > 1:
        raise SchedulerError(f"placement: more than one form of tiers: {', '.join(used)}")
    mode = (placement.get("affinityStrategy") or {}).get("mode") or "Exclusive"
    if mode not in ("Exclusive", "Inherited"):
        raise SchedulerError(f"placement.affinityStrategy.mode: expected Exclusive or Inherited, got {mode}")
    if inherited(placement) and (not terms or single):
        raise SchedulerError("placement.affinityStrategy: Inherited needs clusterAffinities and no clusterAffinity")
    if preferred and (terms or single):
        raise SchedulerError(
            "placement.preferredClusterAffinities: cannot co-exist with clusterAffinity or clusterAffinities"
        )
    supplements = [tier for term in [single, *terms] for tier in term.get("supplements") or []]
    if any(tier.get("supplements") for tier in [*supplements, *preferred]):
        raise SchedulerError("placement: supplements cannot be nested")
