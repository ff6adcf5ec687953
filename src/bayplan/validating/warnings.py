"""
What an API server admits but warns about. Mirrors pkg/api/pod/warnings.go and pkg/api/node/util.go.

Two warnings are ours: a deprecated node label as the topology key of an affinity term, and fields of the seed that only
Bayplan knows. What policies are warned of is in `policy_warnings`.
"""

from __future__ import annotations

from bayplan.validating import admission, names, paths, pod_affinity, policy_warnings
from bayplan.validating.fields import Field

NO_SELECTOR = "a null labelSelector results in matching no pod"
DURING_EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
OURS = ("limit", "tolerateNamespaces")
DROPPED = "API servers drop this field; in a cluster it belongs into the annotation bayplan.io/affinity"
DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def of_object(obj: dict[str, object]) -> list[str]:
    """The warnings for an object of any kind, each as `path: message`."""
    return of_pod(obj) + policy_warnings.of_placement(obj)


def of_pod(obj: dict[str, object]) -> list[str]:
    """The warnings for a pod, or for an object with a pod template; none for any other object."""
    made = admission.pod_like(obj)
    if made is None:
        return []
    spec = made["spec"]
    return [
        *_node_selector(spec["nodeSelector"]),
        *_node_affinity(spec["affinity"]["nodeAffinity"]),
        *_spread(spec["topologySpreadConstraints"]),
        *_pod_affinity(spec["affinity"]),
    ]


def _node_selector(selector: Field) -> list[str]:
    return [
        f"{paths.entry(selector.path, key)}: {DEPRECATED_LABELS[key]}"
        for key in selector.names()
        if key in DEPRECATED_LABELS
    ]


def _node_affinity(affinity: Field) -> list[str]:
    found: list[str] = []
    for term in affinity[pod_affinity.REQUIRED]["nodeSelectorTerms"].items():
        found += _node_term(term, values_too=False)
    for item in affinity[pod_affinity.PREFERRED].items():
        found += _node_term(item["preference"], values_too=True)
    return found


def _node_term(term: Field, *, values_too: bool) -> list[str]:
    """Deprecated keys, and in preferred terms the values that no label can have: in required ones they are refused."""
    found: list[str] = []
    for requirement in term["matchExpressions"].items():
        found += _deprecated(requirement["key"])
        if values_too:
            found += [
                f"{value.path}: {value.text()} is invalid, {detail}"
                for value in requirement["values"].items()
                for detail in names.label_value(value.text())
            ]
    return found


def _spread(constraints: Field) -> list[str]:
    found: list[str] = []
    for constraint in constraints.items():
        found += _deprecated(constraint["topologyKey"])
        found += _null_selector(constraint)
    return found


def _pod_affinity(affinity: Field) -> list[str]:
    found: list[str] = []
    for term in pod_affinity.terms(affinity):
        found += _null_selector(term.field)
        found += _deprecated(term.field["topologyKey"])
        found += [f"{ours.path}: {DROPPED}" for ours in (term.field[name] for name in OURS) if ours.present]
    for sign in ("podAffinity", "podAntiAffinity"):
        if affinity[sign][DURING_EXECUTION].present:
            found.append(f"{affinity[sign][DURING_EXECUTION].path}: {DROPPED}")
    return found


def _null_selector(term: Field) -> list[str]:
    return [] if term["labelSelector"].present else [f"{term['labelSelector'].path}: {NO_SELECTOR}"]


def _deprecated(key: Field) -> list[str]:
    message = DEPRECATED_LABELS.get(key.text())
    return [f"{key.path}: {key.text()} is {message}"] if message else []
