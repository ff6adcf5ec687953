"""
The messages of Karmada's accurate estimator that Bayplan exchanges: what is asked of it, and its answer.

Field numbers are those of Karmada 1.18 (pkg/estimator/pb/estimator.proto) and of Kubernetes' own protobuf types, which
are nested as bytes. Needs the package protobuf of the extra `estimator`. Knows nothing of connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METHOD = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas"
_TEXT, _BYTES, _INT32, _INT64, _MESSAGE = 9, 12, 5, 3, 11  # types of fields, by their numbers in descriptor.proto
_OPTIONAL, _REPEATED = 1, 3
# Message → field → (number, type, whether repeated, the message that it holds). Of a map, the fields of its entries.
_FIELDS: dict[str, dict[str, tuple[int, int, bool, str]]] = {
    "Quantity": {"string": (1, _TEXT, False, "")},
    "Requirement": {"key": (1, _TEXT, False, ""), "operator": (2, _TEXT, False, ""), "values": (3, _TEXT, True, "")},
    "SelectorTerm": {
        "matchExpressions": (1, _MESSAGE, True, "Requirement"),
        "matchFields": (2, _MESSAGE, True, "Requirement"),
    },
    "NodeSelector": {"nodeSelectorTerms": (1, _MESSAGE, True, "SelectorTerm")},
    "Toleration": {
        "key": (1, _TEXT, False, ""),
        "operator": (2, _TEXT, False, ""),
        "value": (3, _TEXT, False, ""),
        "effect": (4, _TEXT, False, ""),
        "tolerationSeconds": (5, _INT64, False, ""),
    },
    "Label": {"key": (1, _TEXT, False, ""), "value": (2, _TEXT, False, "")},
    "Request": {"key": (1, _TEXT, False, ""), "value": (2, _BYTES, False, "")},
    "NodeClaim": {
        "nodeSelector": (2, _MESSAGE, True, "Label"),
        "nodeAffinityBytes": (4, _BYTES, False, ""),
        "tolerationsBytes": (5, _BYTES, True, ""),
    },
    "ReplicaRequirements": {
        "nodeClaim": (1, _MESSAGE, False, "NodeClaim"),
        "namespace": (3, _TEXT, False, ""),
        "priorityClassName": (4, _TEXT, False, ""),
        "resourceRequestBytes": (5, _MESSAGE, True, "Request"),
    },
    "MaxAvailableReplicasRequest": {
        "cluster": (1, _TEXT, False, ""),
        "replicaRequirements": (2, _MESSAGE, False, "ReplicaRequirements"),
    },
    "MaxAvailableReplicasResponse": {"maxReplicas": (1, _INT32, False, "")},
}


def _message_classes() -> dict[str, Any]:
    """The messages as classes, in a pool of their own. A map is a list of entries on the wire, and is one here."""
    file = descriptor_pb2.FileDescriptorProto(name="bayplan/estimator.proto", package="bayplan", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, kind, repeated, held) in fields.items():
            label: Any = _REPEATED if repeated else _OPTIONAL
            described = message.field.add(name=field, number=number, label=label)
            described.type = kind
            if held:
                described.type_name = f".bayplan.{held}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"bayplan.{name}")) for name in _FIELDS}


_CLASSES = _message_classes()


def request(cluster: str, claim: str) -> bytes:
    """The question how many more replicas fit on a cluster; `claim` is that of a ReplicaDemand."""
    made = _CLASSES["MaxAvailableReplicasRequest"](cluster=cluster)
    made.replicaRequirements.CopyFrom(_requirements(msgspec.json.decode(claim)))
    found: bytes = made.SerializeToString(deterministic=True)
    return found


def replicas(answer: bytes) -> int:
    """The number in an answer; raises ValueError if it is none."""
    found = _CLASSES["MaxAvailableReplicasResponse"]()
    try:
        found.ParseFromString(answer)
    except Exception as error:  # protobuf's own class depends on its implementation
        raise ValueError(str(error)) from error
    if found.maxReplicas < 0:
        raise ValueError(f"{found.maxReplicas} replicas")
    return int(found.maxReplicas)


def _requirements(written: Mapping[str, Any]) -> Any:
    made = _CLASSES["ReplicaRequirements"](
        namespace=written.get("namespace") or "", priorityClassName=written.get("priorityClassName") or ""
    )
    for name, amount in (written.get("resourceRequest") or {}).items():
        quantity = _CLASSES["Quantity"](string=str(amount)).SerializeToString()
        made.resourceRequestBytes.add(key=name, value=quantity)
    claim = written.get("nodeClaim")
    if claim:
        made.nodeClaim.CopyFrom(_node_claim(claim))
    return made


def _node_claim(written: Mapping[str, Any]) -> Any:
    made = _CLASSES["NodeClaim"]()
    for key, value in sorted((written.get("nodeSelector") or {}).items()):
        made.nodeSelector.add(key=key, value=value)
    affinity = written.get("hardNodeAffinity")
    if affinity:
        made.nodeAffinityBytes = _node_selector(affinity.get("nodeSelectorTerms") or ())
    for one in written.get("tolerations") or ():
        given = {name: value for name, value in one.items() if name in _FIELDS["Toleration"] and value is not None}
        made.tolerationsBytes.append(_CLASSES["Toleration"](**given).SerializeToString())
    return made


def _node_selector(terms: Iterable[Mapping[str, Any]]) -> bytes:
    made = _CLASSES["NodeSelector"]()
    for term in terms:
        added = made.nodeSelectorTerms.add()
        for field in ("matchExpressions", "matchFields"):
            for one in term.get(field) or ():
                getattr(added, field).add(key=one["key"], operator=one["operator"], values=one.get("values") or ())
    found: bytes = made.SerializeToString()
    return found
