"""
The differences that are rows of docs/differences.md: what `make agree` counts, and does not report.

A row explains a difference only if Bayplan gives the real answer as soon as the row's cause is taken out of the question,
or if the two answers differ in nothing but what the row says.
"""

import copy
import re

from agreeing import bayplan_answers, comparing
from reference import cycle, inter_pod_affinity, preemption, topology_spread

SPREAD = "terminating pods when preemption counts for a required spread constraint"
IMAGES = "the sizes and counts of images in a cluster that changes"
NOT_ASKED = "the message where no node was filtered"
WITHOUT_VICTIMS = re.compile(
    r"preemption: (not eligible due to .*\.|0/(\d+) nodes are available: \2 Preemption is not helpful for scheduling\.)"
)
ONCE = "ReadWriteOncePod"
NO_REGION = "could not translate pv: failed to get region from zones"


def _differs(found, question=None, *, kind=None):
    """What differs if Bayplan answers this question instead; steps go on from where the real scheduler placed pods."""
    kind = kind or found.kind
    ours = bayplan_answers.answer(kind, question or found.question, as_placed_by=found.real)
    return comparing.difference(kind, found.real, ours)


def _without_images(answer):
    """An answer as if ImageLocality did not score."""
    plain = copy.deepcopy(answer)
    for node in plain.get("nodes", {}).values():
        weighted = (node.get("scores") or {}).pop("ImageLocality", 0)
        if node.get("total") is not None:
            node["total"] -= weighted
    return plain | {"best": []}


def _counts_images_as_of_then(found):
    """Every decision differs in nothing but the score of ImageLocality, given where the real scheduler placed pods."""
    if "answers" not in found.real or not _changes_images(found.question):
        return False
    ours = bayplan_answers.answer(found.kind, found.question, as_placed_by=found.real)
    if "answers" not in ours:
        return False
    pairs = zip(found.real["answers"], ours["answers"], strict=True)
    return not any(comparing.difference("pods", _without_images(one), _without_images(other)) for one, other in pairs)


def _changes_images(question):
    """Whether a step adds, removes or changes a node, with other images than before."""
    images = {one["metadata"]["name"]: _images(one) for one in question["nodes"]}
    for step in question.get("steps", ()):
        ((what, one),) = step.items()
        if one.get("kind") != "Node":
            continue
        before = images.get(one["metadata"]["name"], [])
        images[one["metadata"]["name"]] = [] if what == "delete" else _images(one)
        if images[one["metadata"]["name"]] != before:
            return True
    return False


def _images(node):
    return node.get("status", {}).get("images", [])


def _fails_on_volumes(found):
    """Scheduling fails over an ephemeral volume whose claim belongs to another pod, or over a shared Azure disk."""
    real = found.real.get("answers", [found.real])
    if not any(_is_about_volume_limits(one.get("error", ""), found.question) for one in real):
        return False
    ours = bayplan_answers.answer(found.kind, found.question, as_placed_by=found.real)
    pairs = zip(real, ours.get("answers", [ours]), strict=True)
    return not any(
        comparing.difference(found.kind, one, other)
        for one, other in pairs
        if not _is_about_volume_limits(one.get("error", ""), found.question)
    )


def _is_about_volume_limits(error, question):
    refused = re.search(r"PVC (?:\"?)([\w.-]+)/([\w.-]+)(?:\"?) was not created for pod", error)
    if refused is None:
        return False
    return any(_is_of_another(one, refused[1], refused[2]) for one in _objects(question))


def _is_of_another(one, namespace, name):
    """Whether this is the claim, with no owner or another one than the pod that the error names."""
    meta = one["metadata"]
    return (one["kind"], meta.get("namespace"), meta["name"]) == ("PersistentVolumeClaim", namespace, name)


def _fails_on_translation(found):
    """Scheduling fails over a volume in several zones of which no region can be told."""
    real = found.real.get("answers", [found.real])
    if not any(NO_REGION in one.get("error", "") for one in real):
        return False
    ours = bayplan_answers.answer(found.kind, found.question, as_placed_by=found.real)
    pairs = zip(real, ours.get("answers", [ours]), strict=True)
    return not any(
        comparing.difference(found.kind, one, other) for one, other in pairs if NO_REGION not in one.get("error", "")
    )


def _frees_shared_ports(found):
    """The host ports of a node are a set: what two pods have is free as soon as one of them has left."""
    gone = {
        _key(step["delete"]) for step in found.question.get("steps", ()) if step.get("delete", {}).get("kind") == "Pod"
    }
    every = [one for one in _objects(found.question) if one["kind"] == "Pod" and one["spec"].get("nodeName")]
    freed = {(pod["spec"]["nodeName"], *port) for pod in every if _key(pod) in gone for port, _ in _host_ports(pod)}
    question = copy.deepcopy(found.question)
    for pod in _objects(question):
        if pod["kind"] == "Pod" and _key(pod) not in gone:
            for port, written in _host_ports(pod):
                if (pod["spec"].get("nodeName"), *port) in freed:
                    del written["hostPort"]
    return question != found.question and not _differs(found, question)


def _key(one):
    return one["metadata"].get("namespace", "default"), one["metadata"]["name"]


def _host_ports(pod):
    """Address, protocol and number of each, and the port as it is written."""
    for container in (*pod["spec"].get("containers", ()), *pod["spec"].get("initContainers", ())):
        for one in container.get("ports", ()):
            if one.get("hostPort"):
                yield (one.get("hostIP", "0.0.0.0"), one.get("protocol", "TCP"), one["hostPort"]), one


def _is_preemption_not_asked(found):
    """DynamicResources fails where it has not seen the pod, before DefaultPreemption is asked."""
    if found.kind != "preemption" or found.real.get("status") != "not found" or found.real.get("nominated"):
        return False
    return not found.ours.get("victims") and WITHOUT_VICTIMS.fullmatch(found.ours.get("message", "")) is not None


def _objects(question):
    """Every object of a question, also those of its steps."""
    steps = [one for step in question.get("steps", ()) for one in step.values()]
    return [*question.get("pods", ()), *question.get("objects", ()), *steps]


def _waiting(question):
    """The pods that are nominated to a node, wherever in the question."""
    return [one for one in _objects(question) if one.get("status", {}).get("nominatedNodeName")]


def _has_nominated_anti_affinity(found):
    """kube-scheduler skips InterPodAffinity where the pod has no terms and no running pod excludes it."""
    question = copy.deepcopy(found.question)
    for pod in _waiting(question):
        pod["spec"].get("affinity", {}).pop("podAntiAffinity", None)
    return question != found.question and _skips_affinity(found.question) and not _differs(found, question)


def _skips_affinity(question):
    """Whether no running pod excludes the incoming one, which requires nothing of others; of a sequence, for some pod."""
    if "steps" in question:
        return any(not _requires_others(step["decide"]) for step in question["steps"] if "decide" in step)
    running = [one for one in question["pods"] if not one.get("status", {}).get("nominatedNodeName")]
    return inter_pod_affinity.before_filter(cycle.Cycle(question | {"pods": running})) == cycle.SKIP


def _requires_others(pod):
    sides = (pod["spec"].get("affinity", {}).get(side, {}) for side in ("podAffinity", "podAntiAffinity"))
    return any(side.get("requiredDuringSchedulingIgnoredDuringExecution") for side in sides)


def _has_nominated_user(found):
    """A pod whose claims nobody uses skips VolumeRestrictions, also where a nominated pod is going to use them."""
    if "pod" in found.question and _has_running_user(found.question):
        return False
    question = copy.deepcopy(found.question)
    claims = [one for one in _objects(question) if one["kind"] == "PersistentVolumeClaim"]
    once = {one["metadata"]["name"] for one in claims if ONCE in one.get("spec", {}).get("accessModes", ())}
    for pod in _waiting(question):
        volumes = pod["spec"].get("volumes", ())
        kept = [one for one in volumes if one.get("persistentVolumeClaim", {}).get("claimName") not in once]
        if len(kept) < len(volumes):
            pod["spec"]["volumes"] = kept
    return question != found.question and not _differs(found, question)


def _has_running_user(question):
    """Whether a running pod uses a claim of the incoming pod."""
    own = _claims(question["pod"])
    running = (pod for pod in question["pods"] if pod["spec"].get("nodeName"))
    return any(own & _claims(pod) for pod in running)


def _claims(pod):
    volumes = (one.get("persistentVolumeClaim") for one in pod["spec"].get("volumes", ()))
    return {(pod["metadata"].get("namespace"), one["claimName"]) for one in volumes if one}


def _ends_nominations_of_deleted_pods(found):
    """In a cluster that changes, a pod that is deleted while it waits gives its node up at once."""
    question = copy.deepcopy(found.question)
    for pod in _waiting(question):
        pod["metadata"].pop("deletionTimestamp", None)
    return "steps" in question and question != found.question and not _differs(found, question)


def _counts_nominated_pods_of_empty_selectors(found):
    """A nominated pod counts for a spread constraint that selects everything, and for which running pods do not."""
    question = copy.deepcopy(found.question)
    incoming = (
        [question["pod"]] if "pod" in question else [one["decide"] for one in question["steps"] if "decide" in one]
    )
    for pod in incoming:
        for constraint in pod["spec"].get("topologySpreadConstraints", ()):
            if constraint.get("labelSelector") == {}:
                constraint["labelSelector"] = {"matchLabels": {"nominated": "yes"}}
    for pod in (*_waiting(question), *incoming):
        pod["metadata"].setdefault("labels", {})["nominated"] = "yes"
    return bool(_waiting(question)) and not _differs(found, question)


def _subtracts_terminating_pods(found):
    """kube-scheduler counts no terminating pod for a spread constraint, and subtracts it when it is a victim."""
    constraints = found.question.get("pod", {}).get("spec", {}).get("topologySpreadConstraints", ())
    if found.kind != "preemption" or not any(one["whenUnsatisfiable"] == "DoNotSchedule" for one in constraints):
        return False
    with topology_spread.subtracting_terminating_victims():
        theirs = preemption.answer(found.question)
    return not comparing.difference("preemption", found.real, theirs)


def _needs_an_earlier_point(found):
    """
    kube-scheduler starts with a plugin that lacks its preFilter or preScore, and no pod is ever placed.

    Without its preScore a node may still be nominated: preemption comes before scoring.
    """
    refused = re.search(
        r"plugin \"\w+\" needs (pre(?:Filter|Score)), where it is not enabled", found.ours.get("error", "")
    )
    real = found.real.get("answers", [found.real])
    if refused is None or any(one.get("best") for one in real):
        return False
    return refused[1] == "preScore" or not any(one.get("nominated") for one in real)


ROWS = {
    SPREAD: _subtracts_terminating_pods,
    "a `ReadWriteOncePod` claim that a nominated pod is going to use": _has_nominated_user,
    IMAGES: _counts_images_as_of_then,
    NOT_ASKED: _is_preemption_not_asked,
    "anti-affinity of a nominated pod against the incoming one": _has_nominated_anti_affinity,
    "a nominated pod under a spread constraint with an empty selector": _counts_nominated_pods_of_empty_selectors,
    "a nominated pod that is deleted and still there, because of a finalizer": _ends_nominations_of_deleted_pods,
    "a volume that NodeVolumeLimits cannot read": _fails_on_volumes,
    "a GCE persistent disk in several zones whose names have no region": _fails_on_translation,
    "a host port that several running pods of one node have, once one of them has left": _frees_shared_ports,
    "a KubeSchedulerConfiguration in which a plugin filters without its preFilter, or scores without its preScore, "
    "that it needs": _needs_an_earlier_point,
}


def reason(found):
    """The row that explains a difference; "" if there is none. All rows are about pods."""
    if found.kind not in ("pods", "preemption"):
        return ""
    return next((row for row, explains in ROWS.items() if explains(found)), "")
