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
    """The pod with the requirements of its label keys in its selectors; the same pod if there is nothing to add."""
    pod = copy.deepcopy(pod)
    labels = (pod.get("metadata") or {}).get("labels") or {}
    spec = pod.get("spec") or {}
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
                # A key that the selector has was merged when the pod was created, maybe with another value.
                selector = term.get("labelSelector") or {}
                merged = {one.get("key") for one in selector.get("matchExpressions") or []}
                others = {
                    key: labels[key] for key in labels.keys() - merged - (selector.get("matchLabels") or {}).keys()
                }
                expand_keys(term, others, "matchLabelKeys", "In")
                expand_keys(term, others, "mismatchLabelKeys", "NotIn")


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
