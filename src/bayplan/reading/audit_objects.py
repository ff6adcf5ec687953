"""
From raw objects, one by one, to what an audit is given. Where the objects come from is not known here.

What is odd but usable becomes a warning; what cannot be used is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bayplan.auditing import audit_input
from bayplan.auditing.audit_input import AuditInput, FileLine, Unlisted
from bayplan.errors import Fault, InputError
from bayplan.mapping import disruption_budgets
from bayplan.reading import collecting, json_documents
from bayplan.reading.documents import Document
from bayplan.reading.label_scenarios import Scenarios
from bayplan.wire import controllers, storage
from bayplan.wire.meta import ApiObject

_KINDS: dict[tuple[str, str], Any] = {
    ("", "Node"): audit_input.ObservedNode,
    ("", "Pod"): audit_input.ObservedPod,
    ("", "Namespace"): ApiObject,
    ("", "ConfigMap"): audit_input.ObservedConfigMap,
    ("", "PersistentVolume"): storage.PersistentVolume,
    ("apps", "Deployment"): audit_input.ObservedController,
    ("apps", "StatefulSet"): audit_input.ObservedController,
    ("coordination.k8s.io", "Lease"): audit_input.ObservedLease,
    ("discovery.k8s.io", "EndpointSlice"): audit_input.ObservedEndpointSlice,
    ("storage.k8s.io", "CSINode"): audit_input.ObservedCsiNode,
    ("policy", "PodDisruptionBudget"): controllers.PodDisruptionBudget,
    ("cluster.x-k8s.io", "Machine"): audit_input.ObservedMachine,
}
_CLUSTER_WIDE = frozenset({
    "Node", "Namespace", "PersistentVolume", "CSINode", "StorageClass", "PriorityClass",
})  # fmt: skip
_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
_SHARE = re.compile(r"\d+%")
_LEASE_SECONDS = 3600  # as API servers write into the lease that says who they are
_SHOWN = 3


class AuditObjects:
    """Takes raw objects as they come; `finish` makes the input of them."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._found: dict[str, list[Any]] = {kind: [] for _, kind in _KINDS}
        self._uid_of: dict[tuple[str, str, str], str] = {}
        self._doubles: list[str] = []
        self._live = False
        self._identities: set[str] = set()
        self._places: dict[str, FileLine] = {}
        self._scenarios = Scenarios()

    def begin_live(self) -> None:
        """From now on objects are a cluster's: one that a file has given already is meant to take its place."""
        self._live = True

    def add(self, item: Document | Fault) -> bool:
        """Take an object, or what is wrong with a file; whether the object is the first of its name."""
        if isinstance(item, Fault):
            self.faults.append(item)
            return False
        if not item.kind and not item.api_version:
            self.faults.extend(self._scenarios.add(item))
            return False
        wire_type = _KINDS.get((item.api_version.rpartition("/")[0], item.kind))
        item.namespace = "" if item.kind in _CLUSTER_WIDE else item.namespace or "default"
        if wire_type is None:
            return self._is_first(item, "")
        decoded = self._decoded(item, wire_type)
        if decoded is None or not self._is_first(item, decoded.metadata.uid):
            return False
        self._found[item.kind].append(decoded)
        if item.kind == "Node":
            self._places[item.name] = (item.file, item.line)
        return True

    def _decoded(self, item: Document, wire_type: Any) -> Any:
        try:
            decoded = collecting.decode(item, wire_type)
        except json_documents.UNDECODABLE as error:
            decoded = [item.fault(json_documents.invalid(error))]
        if not isinstance(decoded, list) and not item.name:
            decoded = [item.fault("expected a name", "metadata.name")]
        if isinstance(decoded, controllers.PodDisruptionBudget):
            decoded = list(_misread_shares(item, decoded)) or decoded
        if isinstance(decoded, list):
            self.faults.extend(decoded)
            return None
        # The items of a typed list do not say what they are, and nobody says which namespace is the default.
        decoded.kind, decoded.metadata.name, decoded.metadata.namespace = item.kind, item.name, item.namespace
        return decoded

    def _is_first(self, item: Document, uid: str) -> bool:
        key = (item.kind, item.namespace, item.name)
        if key == ("Namespace", "", "kube-system") and uid:
            self._identities.add(uid)  # what people take for the id of a cluster
        first = self._uid_of.get(key)
        if first is None:
            self._uid_of[key] = uid
            return True
        if self._live:
            return False
        self._doubles.append(item.subject)
        if item.kind == "Node" and first and uid and first != uid:
            self._identities |= {first, uid}
        return False

    def finish(self, scenario: str = "", unlisted: Sequence[Unlisted] = (), origin: str = "") -> AuditInput:
        """Everything that was taken; raises InputError with all that is wrong. `origin` is where it was looked for."""
        nodes, faults = self._scenarios.chosen(scenario)
        places = {**{node.metadata.name: self._scenarios.place for node in nodes}, **self._places}
        nodes = [*self._found["Node"], *nodes]
        faults = [*self.faults, *faults]
        if not faults and not nodes:
            faults.append(Fault("no Node among the objects", file=origin))
        if faults:
            raise InputError(faults)
        return AuditInput(
            nodes=nodes,
            pods=self._found["Pod"] or None,
            leases=_live(self._found["Lease"]),
            machines=self._found["Machine"],
            config_maps=self._found["ConfigMap"],
            endpoint_slices=self._found["EndpointSlice"],
            csi_nodes=self._found["CSINode"],
            volumes=self._found["PersistentVolume"],
            controllers=[*self._found["Deployment"], *self._found["StatefulSet"]],
            budgets=[disruption_budgets.budget_of(one) for one in self._found["PodDisruptionBudget"]],
            line_by_node=places,
            warnings=tuple(self._oddities(nodes, self._found["Pod"])),
            unlisted=tuple(unlisted),
        )

    def _oddities(
        self, nodes: Sequence[audit_input.ObservedNode], pods: Iterable[audit_input.ObservedPod]
    ) -> Iterator[str]:
        if len(self._doubles) == 1:
            yield f"{self._doubles[0]} is given more than once; the first one counts"
        elif self._doubles:
            more = ", …" if len(self._doubles) > _SHOWN else ""
            shown = ", ".join(self._doubles[:_SHOWN])
            yield f"{len(self._doubles)} objects are given more than once ({shown}{more}); the first of each counts"
        names = sorted({(node.metadata.annotations or {}).get(_CLUSTER_NAME, "") for node in nodes} - {""})
        if len(names) > 1:
            yield f"the nodes belong to {len(names)} clusters ({', '.join(names)}) and are judged as one"
        elif len(self._identities) > 1:
            yield "the objects come from several clusters, by their uids, and are judged as one"
        known = {node.metadata.name for node in nodes}
        adrift = sorted({pod.spec.node_name for pod in pods if pod.spec.node_name} - known)
        if adrift:
            noun = "an unknown node" if len(adrift) == 1 else f"{len(adrift)} unknown nodes"
            shown = ", ".join(adrift[:_SHOWN]) + (", …" if len(adrift) > _SHOWN else "")
            yield f"pods on {noun} ({shown}) are not counted"


def _misread_shares(item: Document, budget: controllers.PodDisruptionBudget) -> Iterator[Fault]:
    written = {"minAvailable": budget.spec.min_available, "maxUnavailable": budget.spec.max_unavailable}
    for field, value in written.items():
        if isinstance(value, str) and not _SHARE.fullmatch(value):
            yield item.fault(f"expected a whole number or a share such as 50%, got {value!r}", f"spec.{field}")


def _live(leases: Sequence[audit_input.ObservedLease]) -> list[audit_input.ObservedLease]:
    """The leases that had not run out when the last one was renewed: those of API servers long gone stay a while."""
    renewed = {id(lease): _time(lease.spec.renew_time) for lease in leases}
    latest = max((at for at in renewed.values() if at is not None), default=None)
    found = []
    for lease in leases:
        at, lasts = renewed[id(lease)], timedelta(seconds=lease.spec.lease_duration_seconds or _LEASE_SECONDS)
        if at is None or latest is None or at + lasts >= latest:
            found.append(lease)
    return found


def _time(text: str | None) -> datetime | None:
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found
