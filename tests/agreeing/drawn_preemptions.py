"""Questions of `decide preemption`: a pod of some priority, nodes full of others, and budgets that protect some."""

from agreeing import drawn_configs, drawn_crowds, drawn_questions
from agreeing.drawing import POD_LABELS, Theme, thing
from reference.strategies import label_selector, match_labels

# What evictions can make room in, or cannot.
THEMES = ("requests", "requests", "anti-affinity", "ports", "spread", "claims", "attach-limits", "disks", "nominated",
          "resize", "pod-level", "affinity", "taints", "configuration", "mixed", "zones", "node-name")  # fmt: skip
PRIORITIES = (-10, 0, 0, 1, 5, 10, 50)


def question(seed, number):
    """Two of three are about nodes that nothing but pods of lower priority keeps from being chosen."""
    if number % 3:
        return _crowded(seed, number)
    name = THEMES[number // 3 % len(THEMES)]
    theme = Theme(name, f"preemption/{seed}/{number}")
    theme.features = (*theme.features, "requests", "scarce") if theme.often(3) else theme.features
    drawn = drawn_questions.question_of(theme, theme.number(1, 6), 24)
    _crowd(theme, drawn)
    _use_once(drawn)
    drawn["objects"] += budgets(theme, drawn["pods"])
    return {"name": f"{name}-{seed}-{number}", **drawn}


def _crowded(seed, number):
    theme = drawn_crowds.theme_of("mixed", f"crowded/{seed}/{number}")
    drawn = drawn_crowds.question_of(theme)
    drawn["objects"] += budgets(theme, drawn["pods"])
    if theme.rarely(10):
        theme.features = ("plugins", "weights")
        config = drawn_configs.config(theme)
        drawn |= {"options": {"config": config}} if config else {}
    return {"name": f"crowded-{seed}-{number}", **drawn}


def _use_once(drawn):
    """Leave a ReadWriteOncePod claim to one running pod: how kube-scheduler counts more is in docs/differences.md."""
    claims = [one for one in drawn["objects"] if one["kind"] == "PersistentVolumeClaim"]
    once = {one["metadata"]["name"] for one in claims if "ReadWriteOncePod" in one["spec"]["accessModes"]}
    used = set()
    for pod in drawn["pods"]:
        volumes = pod["spec"].get("volumes", ())
        if volumes:
            pod["spec"]["volumes"] = [one for one in volumes if _claim_name(one) not in used]
        used |= once & {_claim_name(one) for one in volumes}


def _claim_name(volume):
    return volume.get("persistentVolumeClaim", {}).get("claimName", "")


def _crowd(theme, drawn):
    """Give pods priorities and different ages: of equal ones kube-scheduler evicts any."""
    for number, pod in enumerate(drawn["pods"]):
        pod["spec"]["priority"] = theme.pick(PRIORITIES)
        status, meta = pod["status"], pod["metadata"]
        if "startTime" in status and status["phase"] not in ("Succeeded", "Failed"):
            status["startTime"] = f"2026-01-{1 + theme.below(20):02}T00:{theme.below(60):02}:{number:02}Z"
        if "deletionTimestamp" in meta and theme.often(3):
            status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
        if status.get("nominatedNodeName"):
            pod["spec"]["priority"] = theme.pick((0, 10, 100, 1000))
    pod = drawn["pod"]
    pod["spec"]["priority"] = theme.pick((100, 100, 100, 1000, 10, 0))
    if theme.often(2):
        wanted = {"cpu": theme.pick(("1", "2", "3")), "memory": theme.pick(("1Gi", "2Gi", "4Gi"))}
        first = pod["spec"]["containers"][0]
        if "resources" not in pod["spec"] and "resources" not in first:
            first["resources"] = {"requests": wanted}
    if theme.rarely(8):
        pod["status"]["nominatedNodeName"] = theme.pick(drawn["nodes"])["metadata"]["name"]


def budgets(theme, pods):
    """Budgets that allow some disruptions or none, also overlapping ones."""
    found = []
    for number in range(theme.pick((0, 0, 1, 1, 2, 3))):
        namespace = theme.pick(pods)["metadata"]["namespace"] if pods else "default"
        selector = {"matchLabels": match_labels(theme, POD_LABELS)} if theme.often(3) else label_selector(theme)
        status = {
            "disruptionsAllowed": theme.pick((0, 0, 1, 2)),
            "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3,
        }  # fmt: skip
        if pods and theme.rarely(4):
            status["disruptedPods"] = {theme.pick(pods)["metadata"]["name"]: "2026-01-04T00:00:00Z"}
        spec = {"selector": selector, "maxUnavailable": 1}
        found.append(
            thing("PodDisruptionBudget", f"b{number}", "policy/v1", namespace=namespace, spec=spec, status=status)
        )
    return found
