"""A pod's affinity and anti-affinity terms, of its spec and of its annotation, as flat lists. Knows nothing of nodes."""

import yaml

from reference.label_keys import ANNOTATION
from reference.selecting import selects, selects_all

EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Term:
    def __init__(self, owner_namespace, raw, weight=0):
        self.owner_namespace = owner_namespace
        self.selector = raw.get("labelSelector")
        self.topology_key = raw.get("topologyKey") or ""
        self.namespaces = raw.get("namespaces")  # None is absent, [] is empty
        self.namespace_selector = raw.get("namespaceSelector")
        self.tolerated = raw.get("tolerateNamespaces") or []
        self.limit = raw.get("limit") or 0
        self.weight = weight

    def matches(self, pod, namespace_labels, semantics, *, incoming=False):
        """
        Whether the term selects the pod, whose namespace has these labels.

        `incoming` says that the term belongs to the pod being placed: only those suffer from kubernetes#141526.
        """
        if pod.namespace in self.tolerated:
            return False
        if not self._looks_into(pod.namespace, namespace_labels, semantics, incoming):
            return False
        return selects(self.selector, pod.labels)

    def _looks_into(self, namespace, namespace_labels, semantics, incoming):
        if self.namespace_selector is None and not self.namespaces:
            if self.namespaces == [] and semantics.empty_namespaces_mean_all:
                return True
            return namespace == self.owner_namespace
        if namespace in (self.namespaces or []):
            return True
        if self.namespace_selector is None:
            return False
        if selects_all(self.namespace_selector) or selects(self.namespace_selector, namespace_labels):
            return True
        return incoming and semantics.negative_namespace_selector_matches_all and selects(self.namespace_selector, {})

    def keys(self, semantics):
        if self.topology_key == "" and semantics.empty_topology_key_means_any:
            return list(semantics.default_topology_keys) or [""]
        return [self.topology_key]

    def domains(self, node, semantics):
        """The (key, value) pairs that the node has of the term's keys: none if it lacks the label."""
        return [(key, node.labels[key]) for key in self.keys(semantics) if key in node.labels]


class Terms:
    def __init__(self):
        self.required, self.anti_required, self.preferred, self.anti_preferred = [], [], [], []


def read(pod):
    """The spec's terms, then the annotation's. Terms required during execution are required during scheduling too."""
    terms = Terms()
    annotation = (pod.manifest.get("metadata") or {}).get("annotations") or {}
    sources = [pod.spec.get("affinity") or {}]
    if annotation.get(ANNOTATION):
        sources.append(yaml.safe_load(annotation[ANNOTATION]) or {})
    for affinity in sources:
        near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
        terms.required += _required(pod, near)
        terms.anti_required += _required(pod, far)
        terms.preferred += _preferred(pod, near)
        terms.anti_preferred += _preferred(pod, far)
    return terms


def _required(pod, side):
    return [Term(pod.namespace, raw) for raw in [*(side.get(EXECUTION) or []), *(side.get(REQUIRED) or [])]]


def _preferred(pod, side):
    return [
        Term(pod.namespace, entry.get("podAffinityTerm") or {}, entry.get("weight") or 0)
        for entry in side.get(PREFERRED) or []
    ]
