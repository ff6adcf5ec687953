"""The switches of the fleet rules, and the two presets. Other switches belong to the pod rules."""

UPSTREAM = {
    # Constraints by zone, provider and label apply to the chosen clusters (seed), or only require the property.
    "spreadByEveryField": False,
    # `overflowAffinities` under Duplicated and static weight: first tier alone (seed), or filled in order.
    "firstTierAlone": False,
    # A copy that is still draining from a cluster counts for anti-affinity there.
    "drainingCopiesCount": False,
    # Affinity does not count peers on clusters that a workload has to leave.
    "groupsMoveTogether": False,
    # `namespaces: []` of a workload term means the owner's own, or all.
    "emptyNamespacesMeanAll": False,
    # Karmada's gate of that name, off by default: whole sets of components are estimated.
    "multiplePodTemplatesScheduling": False,
}
DESIGN = {
    **UPSTREAM,
    "spreadByEveryField": True,
    "firstTierAlone": True,
    "drainingCopiesCount": True,
    "groupsMoveTogether": True,
    "emptyNamespacesMeanAll": True,
}
PRESETS = {"upstream": UPSTREAM, "design": DESIGN}


def chosen(options):
    preset = PRESETS[options.get("semantics") or "upstream"]
    changed = options.get("switches") or {}
    return {name: changed.get(name, default) for name, default in preset.items()}
