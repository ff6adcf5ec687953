"""Nodes, pods and everything else of a question, read from plain JSON. Knows nothing of rules."""

from fractions import Fraction

from bayplan.model import quantities
from reference import affinity_terms, label_keys

FINISHED = ("Succeeded", "Failed")


def labels_of(manifest):
    return (manifest.get("metadata") or {}).get("labels") or {}


def annotations_of(manifest):
    return (manifest.get("metadata") or {}).get("annotations") or {}


def name_of(manifest):
    return (manifest.get("metadata") or {}).get("name") or ""


def namespace_of(manifest):
    return (manifest.get("metadata") or {}).get("namespace") or "default"


class Pod:
    """A pod, pending or placed; what the API server does at creation (label keys into selectors) is done here."""

    def __init__(self, manifest):
        self.manifest = label_keys.expand(manifest)
        self.name = name_of(manifest)
        self.namespace = namespace_of(manifest)
        self.labels = labels_of(manifest)
        self.spec = self.manifest.get("spec") or {}
        self.status = self.manifest.get("status") or {}
        self.node_name = self.spec.get("nodeName") or ""
        self.terminating = bool((manifest.get("metadata") or {}).get("deletionTimestamp"))
        self.finished = self.status.get("phase") in FINISHED
        self.tolerations = self.spec.get("tolerations") or []
        self.volumes = self.spec.get("volumes") or []
        self.containers = self.spec.get("containers") or []
        self.init_containers = self.spec.get("initContainers") or []
        self.terms = affinity_terms.read(self)

    @property
    def node_affinity(self):
        return (self.spec.get("affinity") or {}).get("nodeAffinity") or {}

    @property
    def claims(self):
        """Names of the claims that its volumes name outright (not those of ephemeral volumes)."""
        named = [volume.get("persistentVolumeClaim") for volume in self.volumes]
        return [source.get("claimName") or "" for source in named if source is not None]


class Node:
    def __init__(self, manifest):
        spec = manifest.get("spec") or {}
        status = manifest.get("status") or {}
        self.manifest = manifest
        self.name = name_of(manifest)
        self.labels = labels_of(manifest)
        self.taints = spec.get("taints") or []
        self.unschedulable = bool(spec.get("unschedulable"))
        self.images = status.get("images") or []
        allocatable = status.get("allocatable")
        if allocatable is None:  # the API server fills it in from the capacity
            allocatable = status.get("capacity")
        self.allocatable = {name: quantities.amount(name, text) for name, text in (allocatable or {}).items()}
        self.pods = []
        self.ended = []  # terminating pods that preemption has removed
        self.freed_ports = set()  # of pods that were removed: kube-scheduler forgets that others have them too


class Cluster:
    """Everything but the pending pod. A pod on a node that does not exist is known, but is on no node."""

    def __init__(self, question):
        self.nodes = [Node(manifest) for manifest in question.get("nodes") or []]
        self.node_by_name = {node.name: node for node in self.nodes}
        self.namespaces = {name_of(manifest): labels_of(manifest) for manifest in question.get("namespaces") or []}
        self.objects = question.get("objects") or []
        self.placed = []  # every pod that holds a place somewhere
        for manifest in question.get("pods") or []:
            pod = Pod(manifest)
            if not pod.node_name or pod.finished:
                continue
            self.placed.append(pod)
            if pod.node_name in self.node_by_name:
                self.node_by_name[pod.node_name].pods.append(pod)

    def namespace_labels(self, namespace):
        """The labels of a namespace; one that is not in the question has none."""
        return self.namespaces.get(namespace) or {}

    def of_kind(self, kind):
        return [thing for thing in self.objects if thing.get("kind") == kind]

    def find(self, kind, name, namespace=None):
        for thing in self.of_kind(kind):
            if name_of(thing) == name and (namespace is None or namespace_of(thing) == namespace):
                return thing
        return None


def exact(text):
    return quantities.parse(text)


def rounded(resource, value: Fraction):
    """As the scheduler counts: cpu in thousandths, everything else whole, rounded up."""
    scaled = value * 1000 if resource == "cpu" else value
    return min(-int(-scaled // 1), quantities.MAX_VALUE)
