"""The differences that are rows of docs/differences.md: what `make agree` counts, and does not report."""


def _is_steps_of_images(found):
    return found.difference == "steps: score of ImageLocality"


def _fails_on_volumes(found):
    text = found.real.get("error", "") + "".join(one.get("error", "") for one in found.real.get("answers", ()))
    return found.difference.removeprefix("steps: ").startswith("only kube fails") and "(pod is not owner)" in text


def _is_preemption_not_asked(found):
    """DynamicResources fails where it has not seen the pod, before DefaultPreemption is asked."""
    return found.kind == "preemption" and found.difference == "message" and found.real.get("status") == "not found"


def _has_nominated_anti_affinity(found):
    """kube-scheduler looks for anti-affinity only on nodes where running pods have some."""
    waiting = [one for one in found.question.get("pods", ()) if one.get("status", {}).get("nominatedNodeName")]
    return "didn't satisfy existing pods anti-affinity rules" in found.difference and any(
        "podAntiAffinity" in one["spec"].get("affinity", {}) for one in waiting
    )


def _has_nominated_user(found):
    """A pod whose claims nobody uses skips VolumeRestrictions, also where a nominated pod is going to use them."""
    waiting = [one for one in found.question.get("pods", ()) if one.get("status", {}).get("nominatedNodeName")]
    return "ReadWriteOncePod access mode already in-use" in found.difference.partition(" | ")[2] and any(
        "persistentVolumeClaim" in volume for one in waiting for volume in one["spec"].get("volumes", ())
    )


def _subtracts_terminating_pods(found):
    """kube-scheduler counts no terminating pod for a spread constraint, and subtracts it when it is a victim."""
    constraints = found.question.get("pod", {}).get("spec", {}).get("topologySpreadConstraints", ())
    is_terminating = any("deletionTimestamp" in one["metadata"] for one in found.question.get("pods", ()))
    required = any(one["whenUnsatisfiable"] == "DoNotSchedule" for one in constraints)
    return found.kind == "preemption" and is_terminating and required


ROWS = {
    "terminating pods when preemption counts for a required spread constraint": _subtracts_terminating_pods,
    "a `ReadWriteOncePod` claim that a nominated pod is going to use": _has_nominated_user,
    "the sizes and counts of images in a cluster that changes": _is_steps_of_images,
    "the message where no node was filtered": _is_preemption_not_asked,
    "anti-affinity of a nominated pod against the incoming one": _has_nominated_anti_affinity,
    "a volume that NodeVolumeLimits cannot read": _fails_on_volumes,
}


def reason(found):
    """The row that explains a difference; "" if there is none."""
    return next((row for row, explains in ROWS.items() if explains(found)), "")
