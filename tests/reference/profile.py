"""Which plugins run, in which order, with which weights and arguments: a KubeSchedulerConfiguration over the default."""

# pkg/scheduler/apis/config/v1/default_plugins.go, without those that no question of ours can reach
DEFAULT = {
    "NodeUnschedulable": 0,
    "NodeName": 0,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": 0,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": 0,
    "NodeVolumeLimits": 0,
    "VolumeBinding": 0,
    "VolumeZone": 0,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


class Profile:
    """`filters` and `scorers` are plugin names in order; `weight` and `args` are by plugin name."""

    def __init__(self, config, scheduler_name):
        profile = _choose((config or {}).get("profiles") or [], scheduler_name or "default-scheduler")
        plugins = profile.get("plugins") or {}
        everywhere = _merged(list(DEFAULT.items()), plugins.get("multiPoint") or {})
        self.filters = [name for name, _ in _at_point(everywhere, plugins.get("filter") or {})]
        scorers = _at_point(everywhere, plugins.get("score") or {})
        self.scorers = [name for name, _ in scorers]
        self.weight = {name: weight or 1 for name, weight in scorers}
        self.args = {entry["name"]: entry.get("args") or {} for entry in profile.get("pluginConfig") or []}


def _choose(profiles, scheduler_name):
    for profile in profiles:
        if (profile.get("schedulerName") or "default-scheduler") == scheduler_name:
            return profile
    return profiles[0] if profiles else {}


def _merged(defaults, changes):
    """The default list with plugins disabled, replaced in place (weight and all), or appended."""
    disabled = {entry["name"] for entry in changes.get("disabled") or []}
    enabled = {entry["name"]: entry.get("weight") or 0 for entry in changes.get("enabled") or []}
    kept = []
    if "*" not in disabled:
        for name, weight in defaults:
            if name not in disabled:
                kept.append((name, enabled.pop(name, weight)))
    return kept + [(name, weight) for name, weight in enabled.items() if name in DEFAULT]


def _at_point(everywhere, changes):
    """One extension point: what it names itself comes first, then the rest that it does not disable."""
    disabled = {entry["name"] for entry in changes.get("disabled") or []}
    enabled = {entry["name"]: entry.get("weight") or 0 for entry in changes.get("enabled") or []}
    known = dict(everywhere)
    overriding = [(name, weight or known[name]) for name, weight in enabled.items() if name in known]
    rest = [
        (name, weight)
        for name, weight in everywhere
        if name not in enabled and name not in disabled and "*" not in disabled
    ]
    new = [(name, weight) for name, weight in enabled.items() if name not in known and name in DEFAULT]
    return overriding + rest + new
