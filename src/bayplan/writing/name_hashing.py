"""
Replace every name of a cluster by a keyed hash. Equal names have equal hashes, so decisions stay the same.

All text is treated as a name unless it is a public word or its field holds something else, such as a quantity. A name
that Kubernetes composes of others (`web-0`, `data-web-0`) is composed of their hashes. The public words are those of
Kubernetes, Karmada and Bayplan, at the end of this file. A word that is missing there is hashed, so a gap in these
tables may change an answer, but never discloses a name.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from bayplan.controllers.binding_triggers import APPLIED_PLACEMENT
from bayplan.controllers.desired_state import INDEX_KEY
from bayplan.mapping.bindings import LABELS_ANNOTATION
from bayplan.model.groups import GROUP_AFFINITY, GROUP_MIN, GROUP_TOPOLOGY, GROUP_TOPOLOGY_PREFERRED
from bayplan.rules.volume_zone import SEPARATOR, TOPOLOGY_LABELS
from bayplan.validating import yaml_text
from bayplan.validating.affinity import AFFINITY_ANNOTATION
from bayplan.validating.placement_annotation import PLACEMENT_ANNOTATION
from bayplan.wire import kinds
from bayplan.wire.meta import WireObject

Encoded = dict[str, Any]

_HASH_LENGTH = 12  # characters of five bits: among a million names, no collision is expected
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NUMBERS = re.compile(r"[0-9][0-9,-]*%?")
_QUANTITY = re.compile(r"[+-]?[0-9.]+([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_HUGE_PAGES = re.compile(r"hugepages-[0-9]+[KMGT]i")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_ORDINAL_NAME = re.compile(r"(.+)-([0-9]+)")
_ANY_ADDRESS = ("", "0.0.0.0", "::", "127.0.0.1")  # noqa: S104 - compared, not bound
_NUMERIC_OPERATORS = ("Gt", "Lt")
_INDEX_KEYS = (INDEX_KEY, "apps.kubernetes.io/pod-index")
# Annotations that hold a document.
_DOCUMENTS = (AFFINITY_ANNOTATION, PLACEMENT_ANNOTATION, APPLIED_PLACEMENT, GROUP_AFFINITY)
_LABEL_MAPS = ("labels", "matchLabels", "nodeSelector", "selector", LABELS_ANNOTATION)
_AMOUNTS = (
    "allocatable", "allocated", "allocatedResources", "allocating", "capacity", "default", "defaultRequest", "hard",
    "limits", "max", "maxLimitRequestRatio", "min", "overhead", "podFixed", "requests", "resourceRequest", "used",
)  # fmt: skip
# What a quota counts is composed of the name of a resource.
_QUOTA_PREFIXES, _COUNTED, _OF_STORAGE_CLASS = ("requests.", "limits."), "count/", ".storageclass.storage.k8s.io/"


def _field_names(wire_type: type[WireObject]) -> Iterator[str]:
    for own in wire_type.__subclasses__():
        yield from own.__struct_encode_fields__
        yield from _field_names(own)


_FIELDS = frozenset(_field_names(WireObject))


class Renaming:
    """New names by a keyed hash. Call `learn` with every object first; `renamed` then returns it with new names."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._names: dict[str, str] = {}
        self._compared = set(_INDEX_KEYS)
        self._stateful: set[str] = set()
        self._claims: set[str] = set()
        self._by_field: Mapping[str, Callable[[str], str]] = self._table()

    # Before renaming: which names are composed of others, which labels are compared as numbers

    def learn(self, encoded: Encoded) -> None:
        """Note what the object shows about the names of other objects."""
        metadata, spec = encoded.get("metadata", {}), encoded.get("spec", {})
        kind, name = encoded.get("kind"), metadata.get("name", "")
        if kind == "StatefulSet":
            self._stateful.add(name)
            self._claims.update(one.get("metadata", {}).get("name", "") for one in spec.get("volumeClaimTemplates", ()))
        for owner in metadata.get("ownerReferences", ()):
            if owner.get("kind") == "StatefulSet":
                self._stateful.add(owner.get("name", ""))
            elif owner.get("kind") == "ReplicaSet":
                self._learn_replicaset(owner.get("name", ""))
        if kind == "ReplicaSet":
            self._learn_replicaset(name)
        if "resource" in spec:
            self._learn_binding(name, spec["resource"])
        self._learn_comparisons(encoded)

    def learn_pod(self, encoded: Encoded) -> None:
        """After `learn` of all objects: the names that derive from a pod's ordinal and from its volumes."""
        name = encoded["metadata"].get("name", "")
        found = _ORDINAL_NAME.fullmatch(name)
        if found is not None and found[1] in self._stateful:
            self._names[name] = f"{self.name(found[1])}-{found[2]}"
            for claim in self._claims:
                self._names[f"{claim}-{name}"] = f"{self.name(claim)}-{self._names[name]}"
        for volume in encoded.get("spec", {}).get("volumes", ()):
            if "ephemeral" in volume:
                own = volume.get("name", "")
                self._names[f"{name}-{own}"] = f"{self.name(name)}-{self.name(own)}"

    def learn_claim(self, encoded: Encoded) -> None:
        """The claims of a StatefulSet can exist before their pods."""
        name = encoded["metadata"].get("name", "")
        found = _ORDINAL_NAME.fullmatch(name)
        for claim in self._claims:
            owner = found[1].removeprefix(f"{claim}-") if found is not None else ""
            if found is not None and owner in self._stateful and found[1] == f"{claim}-{owner}":
                self._names[name] = f"{self.name(claim)}-{self.name(owner)}-{found[2]}"

    def _learn_replicaset(self, name: str) -> None:
        """The name of a ReplicaSet begins with that of its Deployment."""
        first, dash, rest = name.rpartition("-")
        if dash:
            self._names[name] = f"{self.name(first)}-{self._token(rest)}"

    def _learn_binding(self, name: str, resource: Mapping[str, str]) -> None:
        """Karmada names a binding after the resource that it binds."""
        bound, kind = resource.get("name", ""), resource.get("kind", "")
        if name == f"{bound.replace(':', '.')}-{kind}".lower():
            self._names[name] = f"{self.name(bound)}-{self.kind(kind)}".lower()

    def _learn_comparisons(self, value: object) -> None:
        if isinstance(value, list):
            for item in value:
                self._learn_comparisons(item)
        elif isinstance(value, dict):
            if value.get("operator") in _NUMERIC_OPERATORS:
                self._compared.add(value.get("key", ""))
            for item in value.values():
                self._learn_comparisons(item)

    # Renaming

    def renamed(self, encoded: Encoded) -> Encoded:
        """The object with every name replaced."""
        found: Encoded = self._walk("", encoded)
        return found

    def name(self, text: str) -> str:
        """The new name for a name, or for any text that is not known to be something else."""
        found = self._names.get(text)
        if found is None:
            found = self._names[text] = self._new_name(text)
        return found

    def _new_name(self, text: str) -> str:
        if text in WORDS or _TIME.fullmatch(text):
            return text
        for prefix in NAME_PREFIXES:
            if text.startswith(prefix):
                return prefix + self._token(text.removeprefix(prefix))
        return self._token(text)

    def _token(self, text: str) -> str:
        """Letters and digits that begin with a letter: valid as a name, as a label value and as a part of either."""
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return "x" + base64.b32encode(digest)[:_HASH_LENGTH].decode().lower()

    def kind(self, text: str) -> str:
        """The new name of a kind; only public kinds keep theirs."""
        return text if text in KINDS or not text else self._token(text).capitalize()

    def label_key(self, text: str) -> str:
        """The new key of a label, taint or topology."""
        prefix, slash, rest = text.rpartition("/")
        if not slash:
            return text if text in KEYS else self.name(text)
        if not _is_public(prefix):
            return f"{self.name(prefix)}/{self.name(rest)}"
        if prefix in OPEN_PREFIXES and rest not in ROLES:
            return f"{prefix}/{self.name(rest)}"
        return text

    def label_value(self, key: str, text: str) -> str:
        """The new value of a label; a number stays if a selector compares it."""
        if key in self._compared and _WHOLE.fullmatch(text):
            return text
        if key in TOPOLOGY_LABELS:
            return SEPARATOR.join(self.name(part) for part in text.split(SEPARATOR))
        return self.name(text)

    def _walk(self, field: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._by_field.get(field, self.name)(value)
        if isinstance(value, list):
            return [self._walk(field, item) for item in value]
        return self._mapping(field, value) if isinstance(value, dict) else value

    def _mapping(self, field: str, value: Encoded) -> Encoded:
        if field in _LABEL_MAPS and all(isinstance(item, str) for item in value.values()):
            return {self.label_key(key): self.label_value(key, item) for key, item in value.items()}
        # The overhead of a RuntimeClass has the amounts one step further down.
        if field in _AMOUNTS and not any(isinstance(item, dict) for item in value.values()):
            return {self._resource(key): _amount(item) for key, item in value.items()}
        if field == "annotations":
            return {self.label_key(key): self._annotation(key, text) for key, text in value.items()}
        if field == "disruptedPods":
            return {self.name(key): self._walk("", item) for key, item in value.items()}
        # A field that is not known can only come from an annotation, so its name is hashed, too.
        walked = {key if key in _FIELDS else self.name(key): self._walk(key, item) for key, item in value.items()}
        if isinstance(value.get("key"), str):
            walked.update(self._of_key(value["key"], value))
        elif field == "ranges":
            walked["name"] = self._resource(value.get("name", ""))
        return walked

    def _of_key(self, key: str, value: Encoded) -> Encoded:
        """A requirement, taint or toleration: the meaning of its values depends on its key."""
        found: Encoded = {"key": self.label_key(key)}
        if isinstance(value.get("value"), str):
            found["value"] = self.label_value(key, value["value"])
        if isinstance(value.get("values"), list):
            found["values"] = [self.label_value(key, str(item)) for item in value["values"]]
        return found

    def _annotation(self, key: str, text: str) -> str:
        if key in _INDEX_KEYS:
            return _if_matching(_NUMBERS, text)
        if key == GROUP_MIN:
            return _if_matching(_NUMBERS, text)
        if key in (GROUP_TOPOLOGY, GROUP_TOPOLOGY_PREFERRED):
            return ",".join(self.label_key(one.strip()) for one in text.split(","))
        if key not in (*_DOCUMENTS, LABELS_ANNOTATION):
            return self.name(text)
        try:
            content = yaml_text.parse(text)
        except ValueError:
            return self._token(text)  # not a document: hashed as a whole
        return msgspec.json.encode(self._walk(key, content)).decode()

    def _resource(self, text: str) -> str:
        if text in RESOURCES or _HUGE_PAGES.fullmatch(text):
            return text
        for prefix in _QUOTA_PREFIXES:
            if text.startswith(prefix):
                return prefix + self._resource(text.removeprefix(prefix))
        if text.startswith(_COUNTED):
            counted = text.removeprefix(_COUNTED)
            return text if counted in COUNTED_RESOURCES else _COUNTED + self._token(counted)
        named, of_class, rest = text.partition(_OF_STORAGE_CLASS)
        if of_class:
            return f"{self.name(named)}{of_class}{self._resource(rest)}"
        return self.label_key(text)

    def _group(self, text: str) -> str:
        """The new group of an `apiVersion`; its version stays."""
        group, slash, version = text.rpartition("/")
        if not _VERSION.fullmatch(version):
            return self.name(text)
        public = group in GROUPS or _is_public(group)
        return text if public else f"{self._token(group)}{slash}{version}"

    def _image(self, text: str) -> str:
        tagged = text if text.rfind(":") > text.rfind("/") else f"{text}:latest"
        return f"{self._token(tagged)}:latest" if text else text

    def _address(self, text: str) -> str:
        if text in _ANY_ADDRESS:
            return text
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return ".".join(("10", *(str(byte) for byte in digest[:3])))

    def _group_of_workloads(self, text: str) -> str:
        key, equals, value = text.partition("=")
        return f"{self.label_key(key)}={self.label_value(key, value)}" if equals else self.name(text)

    def _table(self) -> Mapping[str, Callable[[str], str]]:
        """Field → function, for fields whose text is not just a name."""
        keys = (
            "topologyKey", "matchLabelKeys", "mismatchLabelKeys", "groupByLabelKey", "spreadByLabel", "aliasLabelName",
            "provisioner",
        )  # fmt: skip
        numbers = ("resourceVersion", "completedIndexes", "minAvailable", "maxUnavailable")
        return {
            **dict.fromkeys(keys, self.label_key),
            **dict.fromkeys(numbers, lambda text: _if_matching(_NUMBERS, text)),
            **dict.fromkeys(("apiVersion", "groupVersion"), self._group),
            **dict.fromkeys(("image", "names", "reference"), self._image),
            **dict.fromkeys(("capacity", "maximumVolumeSize", "min", "max"), _amount),
            **dict.fromkeys(("affinityGroup", "antiAffinityGroup"), self._group_of_workloads),
            "kind": self.kind,
            "hostIP": self._address,
            "generateName": lambda text: f"{self.name(text.rstrip('-'))}-",
        }


def _is_public(domain: str) -> bool:
    return any(domain == public or domain.endswith(f".{public}") for public in DOMAINS)


def _amount(value: Any) -> Any:
    return _if_matching(_QUANTITY, value) if isinstance(value, str) else value


def _if_matching(pattern: re.Pattern[str], text: str) -> str:
    """The text if it has the form of its field, else empty, because it could be a name."""
    return text if pattern.fullmatch(text) else ""


DOMAINS = (
    "kubernetes.io", "k8s.io", "x-k8s.io", "karmada.io", "bayplan.io", "scs.community", "istio.io", "linkerd.io",
)  # fmt: skip
GROUPS = kinds.FORMER_GROUPS.union(row.group for row in kinds.KINDS.values() if "." not in row.group)
# Keys without a prefix that Kubernetes, kubeadm or Karmada set, and the fields of field selectors.
KEYS = frozenset({
    "app", "cluster", "component", "controller-revision-hash", "controller-uid", "istio-injection", "job-name",
    "k8s-app", "metadata.name", "pod-template-generation", "pod-template-hash", "provider", "region", "tier", "zone",
})  # fmt: skip
# Prefixes under which users define keys.
OPEN_PREFIXES = ("node-role.kubernetes.io", "node-restriction.kubernetes.io")
ROLES = frozenset({"control-plane", "etcd", "infra", "ingress", "master", "node", "worker"})
RESOURCES = frozenset({"count", "cpu", "ephemeral-storage", "memory", "persistentvolumeclaims", "pods", "storage"})
COUNTED_RESOURCES = frozenset(f"{row.plural}.{row.group}".rstrip(".") for row in kinds.KINDS.values())
# Karmada ignores objects whose names begin with these prefixes, so the prefixes stay.
NAME_PREFIXES = ("kube-", "karmada-es-")
KINDS = frozenset(row.kind for row in kinds.KINDS.values())
_NAMES = """
    default kube-system kube-public kube-node-lease karmada-system karmada-cluster kubernetes
    default-scheduler bayplan system-node-critical system-cluster-critical
    kube-apiserver kube-controller-manager kube-scheduler kube-proxy kube-dns etcd coredns control-plane
    linux windows amd64 arm64 arm ppc64le s390x riscv64 true false yes
"""
_VALUES = """
    In NotIn Exists DoesNotExist Gt Lt Equal
    NoSchedule PreferNoSchedule NoExecute DoNotSchedule ScheduleAnyway Honor Ignore
    TCP UDP SCTP Always OnFailure Never PreemptLowerPriority
    Indexed NonIndexed Complete Failed FailureTarget Suspended SuccessCriteriaMet
    Pending Running Succeeded Unknown Bound Available Released Lost
    True False Ready Initialized ContainersReady PodScheduled DisruptionTarget PodReadyToStartContainers
    Unschedulable SchedulingGated SchedulerError
    Immediate WaitForFirstConsumer Filesystem Block
    ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod
    Push Pull Duplicated Divided Aggregated Weighted AvailableReplicas
    Exclusive Inherited cluster region zone provider
    Immediately Graciously Gracefully Directly Never Lazy Abort Overwrite
    KubePriorityClass PodPriorityClass FederatedPriorityClass
    KubeadmControlPlane MachineSet ignore quorum
    Container Pod PersistentVolumeClaim
    Terminating NotTerminating BestEffort NotBestEffort PriorityClass CrossNamespacePodAffinity VolumeAttributesClass
    * */* CREATE UPDATE DELETE CONNECT Namespaced Cluster pods v1 enabled disabled ingress
"""
WORDS = frozenset({"", *_NAMES.split(), *_VALUES.split()})
