"""
`matchLabelKeys` and `mismatchLabelKeys`: what the API server writes into selectors when a pod is created.

Doing it twice changes nothing, so a pod fresh from a file and the same pod read back from a cluster end up equal.
"""

import copy
import json

import yaml

ANNOTATION = "bayplan.io/affinity"
LISTS = (
    "requiredDuringSchedulingRequiredDuringExecution",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def expand(pod):
    """
    The pod with the requirements of its label keys in its selectors; the same pod if there is nothing to add.

    What a server has stored has the labels of its creation in its affinity, whatever labels it has now.
    """
    pod = copy.deepcopy(pod)
    meta = pod.get("metadata") or {}
    labels = meta.get("labels") or {}
    spec = pod.get("spec") or {}
    if not (meta.get("uid") or meta.get("resourceVersion")):
        expand_affinity(spec.get("affinity") or {}, labels)
    for constraint in spec.get("topologySpreadConstraints") or []:
        expand_keys(constraint, labels, "matchLabelKeys", "In")
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    if annotations.get(ANNOTATION):
        written = yaml.safe_load(annotations[ANNOTATION]) or {}
        affinity = copy.deepcopy(written)
        expand_affinity(affinity, labels)
        if affinity != written:
            annotations[ANNOTATION] = json.dumps(affinity)
    return pod


def expand_affinity(affinity, labels):
    for sign in ("podAffinity", "podAntiAffinity"):
        for name in LISTS:
            for entry in (affinity.get(sign) or {}).get(name) or []:
                term = entry.get("podAffinityTerm", entry)
                # What was merged when the pod was created stays, also if the pod has another value now.
                selector = term.get("labelSelector") or {}
                expressions = selector.get("matchExpressions") or []
                written = {one.get("key") for one in expressions} | (selector.get("matchLabels") or {}).keys()
                excluded = {one.get("key") for one in expressions if is_merged_mismatch(one)}
                expand_keys(term, without(labels, written), "matchLabelKeys", "In")
                expand_keys(term, without(labels, excluded), "mismatchLabelKeys", "NotIn")


def is_merged_mismatch(requirement):
    """A user may write the key of a mismatch into the selector too, as in `tenant Exists`."""
    return requirement.get("operator") == "NotIn" and len(requirement.get("values") or []) == 1


def without(labels, keys):
    return {key: value for key, value in labels.items() if key not in keys}


def expand_keys(term, labels, field, operator):
    """Append a requirement for each key that the pod has; a null selector stays null."""
    selector = term.get("labelSelector")
    if selector is None:
        return
    for key in term.get(field) or []:
        if key not in labels:
            continue
        requirement = {"key": key, "operator": operator, "values": [labels[key]]}
        if requirement not in (selector.get("matchExpressions") or []):
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or []), requirement]
