"""Clusters, bindings and everything else of a question, read from plain JSON. Knows nothing of rules."""

import json
from datetime import datetime

from reference.fleet import semantics
from reference.fleet.failures import Failure, SchedulerError
from reference.objects import annotations_of, labels_of, name_of

LABELS_ANNOTATION = "bayplan.io/workload-labels"

DUPLICATED, STATIC_WEIGHT = "Duplicated", "StaticWeight"
DYNAMIC_WEIGHT, AGGREGATED = "DynamicWeight", "Aggregated"


class Cluster:
    def __init__(self, manifest):
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        self.name = name_of(manifest)
        self.labels = labels_of(manifest)
        self.deleting = bool((manifest.get("metadata") or {}).get("deletionTimestamp"))
        self.provider = spec.get("provider") or ""
        self.region = spec.get("region") or ""
        self.zones = spec.get("zones") or []
        self.taints = spec.get("taints") or []
        self.resource_models = spec.get("resourceModels") or []
        self.api_enablements = status.get("apiEnablements") or []
        self.summary = status.get("resourceSummary")  # null: nothing is known, so nothing fits


class Binding:
    def __init__(self, manifest):
        spec, status = manifest.get("spec") or {}, manifest.get("status") or {}
        self.manifest = manifest
        self.name = name_of(manifest)
        self.namespace = (manifest.get("metadata") or {}).get("namespace") or ""
        self.annotations = annotations_of(manifest)
        self.resource = spec.get("resource") or {}
        self.replicas = spec.get("replicas") or 0
        self.requirements = spec.get("replicaRequirements")  # {} is a workload, null is none
        self.components = spec.get("components") or []
        self.placement = spec.get("placement") or {}
        self.clusters = [(target["name"], target.get("replicas") or 0) for target in spec.get("clusters") or []]
        self.eviction_tasks = spec.get("gracefulEvictionTasks") or []
        self.groups = spec.get("workloadAffinityGroups") or {}
        self.observed = status.get("schedulerObservingAffinityName") or ""
        self.fresh = _after(spec.get("rescheduleTriggeredAt"), status.get("lastScheduledTime"))

    @property
    def is_workload(self):
        return self.replicas > 0 or self.requirements is not None or bool(self.components)

    @property
    def is_divisible(self):
        """Whether replicas are divided; other resources are propagated to every selected cluster as a whole."""
        return (self.replicas > 0 or self.requirements is not None) and len(self.components) <= 1

    @property
    def uid(self):
        return self.resource.get("uid") or ""

    @property
    def strategy(self):
        """One of the four names above, or empty for a combination that the scheduler does not know."""
        scheduling = self.placement.get("replicaScheduling")
        if scheduling is None or scheduling.get("replicaSchedulingType") == "Duplicated":
            return DUPLICATED
        if scheduling.get("replicaSchedulingType") != "Divided":
            return ""
        preference = scheduling.get("replicaDivisionPreference")
        if preference == "Aggregated":
            return AGGREGATED
        if preference == "Weighted":
            return DYNAMIC_WEIGHT if (scheduling.get("weightPreference") or {}).get("dynamicWeight") else STATIC_WEIGHT
        return ""

    @property
    def spread_constraints(self):
        return self.placement.get("spreadConstraints") or []

    def targets(self, cluster_name):
        return any(name == cluster_name for name, _ in self.clusters)

    def assigned(self, cluster_name):
        for name, replicas in self.clusters:
            if name == cluster_name:
                return replicas
        return 0

    def evicted_from(self, cluster_name):
        return any(task.get("fromCluster") == cluster_name for task in self.eviction_tasks)


class Fleet:
    """Everything of a question: `binding` is the one to schedule, `bindings` are the others."""

    def __init__(self, question):
        self.options = question.get("options") or {}
        self.semantics = semantics.chosen(self.options)
        self.clusters = [Cluster(manifest) for manifest in question.get("clusters") or []]
        self.cluster_by_name = {cluster.name: cluster for cluster in self.clusters}
        self.bindings = [Binding(manifest) for manifest in question.get("bindings") or []]
        self.binding = Binding(question["binding"])
        self.resources = question.get("resources") or []

    def template(self, binding):
        """The object that the binding propagates, or None if the question does not contain it."""
        wanted = tuple(binding.resource.get(key) or "" for key in ("apiVersion", "kind", "namespace", "name"))
        for thing in self.resources:
            if _reference(thing) == wanted:
                return thing
        return None

    def workload_labels(self, binding):
        """The template's labels, else the annotation's, else none; raises if the annotation is invalid."""
        template = self.template(binding)
        if template is not None:
            return labels_of(template)
        text = binding.annotations.get(LABELS_ANNOTATION)
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise SchedulerError(f"metadata.annotations[{LABELS_ANNOTATION}]: expected labels in JSON, got {text!r}")
        return found

    def peer_labels(self, peer):
        """A peer whose labels cannot be read has none."""
        try:
            return self.workload_labels(peer)
        except Failure:
            return {}

    def namespace_labels(self, namespace):
        """The labels of a Namespace among the resources; one that is not in the question has none."""
        for thing in self.resources:
            if thing.get("kind") == "Namespace" and name_of(thing) == namespace:
                return labels_of(thing)
        return {}


def _reference(thing):
    metadata = thing.get("metadata") or {}
    return (
        thing.get("apiVersion") or "",
        thing.get("kind") or "",
        metadata.get("namespace") or "",
        metadata.get("name") or "",
    )


def _after(triggered, scheduled):
    """Whether a rebalance was requested after the last scheduling; false for a binding that was never scheduled."""
    if not triggered or not scheduled:
        return False
    return datetime.fromisoformat(triggered) > datetime.fromisoformat(scheduled)
