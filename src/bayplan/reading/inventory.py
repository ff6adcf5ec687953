"""
What an audit reads: dumps, scenarios of the retired upstream test, and inventories that say where machines stand.

Knows nothing of checks. What is odd but usable is told as a warning; what cannot be used is an InputError.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec

from bayplan.auditing.layout import CLOUD, HOST, LEVELS, RACK, REGION, ZONE
from bayplan.auditing.objects import ConfigMap, Lease, Machine, Node, Pod
from bayplan.auditing.surveying import Survey
from bayplan.errors import Fault, InputError
from bayplan.reading import decoding, files, json_documents, sources
from bayplan.reading.documents import Document
from bayplan.wire.meta import ObjectMeta

_KINDS: dict[tuple[str, str], type] = {
    ("", "Node"): Node,
    ("", "Pod"): Pod,
    ("", "ConfigMap"): ConfigMap,
    ("coordination.k8s.io", "Lease"): Lease,
    ("cluster.x-k8s.io", "Machine"): Machine,
}
_CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
# How inventories call the levels; OpenStack's own words are those of `openstack server list --long`.
_WORDS = {
    "machine": HOST,
    "host": HOST,
    "host-id": HOST,
    "hypervisor hostname": HOST,
    "rack": RACK,
    "zone": ZONE,
    "availability zone": ZONE,
    "region": REGION,
    "site": REGION,
    "cloud": CLOUD,
}

Place = tuple[str, int]


class Found(msgspec.Struct):
    """The objects, where each node stands in which file, and what is odd about them."""

    nodes: list[Node] = []
    pods: list[Pod] = []
    leases: list[Lease] = []
    machines: list[Machine] = []
    config_maps: list[ConfigMap] = []
    place_by_node: dict[str, Place] = {}
    warnings: list[str] = []
    scenarios: dict[str, list[Node]] = {}

    def survey(self, inventory: Mapping[str, Mapping[str, str]]) -> Survey:
        """Everything for `layout_of`."""
        return Survey(
            nodes=self.nodes,
            pods=self.pods or None,
            leases=self.leases,
            machines=self.machines,
            config_maps=self.config_maps,
            inventory=inventory,
        )


def load(paths: Sequence[str], *, recursive: bool = False, scenario: str = "", stdin: BinaryIO | None = None) -> Found:
    """All objects of all paths that an audit can use; raises InputError with everything that is wrong."""
    names, faults = sources.find(paths, recursive=recursive)
    found = Found()
    for name in names:
        source = sources.open_source(name, stdin or sys.stdin.buffer)
        if isinstance(source, Fault):
            faults.append(source)
            continue
        for item in files.read(source):
            faults.extend(_take(item, found))
    if not faults:
        faults.extend(_choose(found, scenario))
    if not faults and not found.nodes:
        faults.append(Fault("no Node among the objects", file=", ".join(names)))
    if faults:
        raise InputError(faults)
    found.warnings.extend(_oddities(found))
    return found


def _take(item: Document | Fault, found: Found) -> Iterable[Fault]:
    if isinstance(item, Fault):
        return [item]
    if not item.kind and not item.api_version:
        return _scenarios(item, found)
    group = item.api_version.rpartition("/")[0]
    wire_type = _KINDS.get((group, item.kind))
    if wire_type is None:
        return []
    try:
        decoded = decoding.decode(item, wire_type)
    except json_documents.UNDECODABLE as error:
        return [item.fault(json_documents.invalid(error))]
    if isinstance(decoded, list):
        return decoded
    kept_by_kind: dict[str, list[Any]] = {
        "Node": found.nodes,
        "Pod": found.pods,
        "Lease": found.leases,
        "Machine": found.machines,
        "ConfigMap": found.config_maps,
    }
    if item.kind == "Node":
        if not decoded.metadata.name:
            return [item.fault("expected a name", "metadata.name")]
        found.place_by_node.setdefault(decoded.metadata.name, (item.file, item.line))
    kept_by_kind[item.kind].append(decoded)
    return []


def _scenarios(document: Document, found: Found) -> Iterable[Fault]:
    """Labels by node, or that by the name of a scenario, as the upstream test had them."""
    root = document.locate().root
    if not all(isinstance(value, dict) for value in root.values()) or not root:
        return [document.fault("expected an object with apiVersion and kind, or labels by node", "kind")]
    flat = not any(isinstance(value, dict) for labels in root.values() for value in labels.values())
    for name, nodes in {"": root}.items() if flat else root.items():
        for node, labels in nodes.items():
            if not isinstance(labels, dict | None) or any(isinstance(v, dict | list) for v in (labels or {}).values()):
                return [document.fault("expected labels by node", f"{name}.{node}")]
        found.scenarios[str(name)] = [
            Node(metadata=ObjectMeta(name=str(node), labels={str(k): _text(v) for k, v in (labels or {}).items()}))
            for node, labels in nodes.items()
        ]
        for node in nodes:
            found.place_by_node.setdefault(str(node), (document.file, document.line))
    return []


def _text(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _choose(found: Found, scenario: str) -> Iterable[Fault]:
    """Take the nodes of the scenario that is meant: the one that is named, or the only one."""
    names = list(found.scenarios)
    if scenario and scenario not in names:
        return [Fault(f"no scenario {scenario}; there are {', '.join(names) or 'none'}")]
    if len(names) > 1 and not scenario:
        return [Fault(f"{len(names)} scenarios: choose one of {', '.join(names)} with --scenario")]
    for name in names:
        if name == (scenario or names[0]):
            found.nodes.extend(found.scenarios[name])
    return []


def _oddities(found: Found) -> Iterable[str]:
    names = [node.metadata.name for node in found.nodes]
    for name in sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else ():
        yield f"Node {name} is given more than once; the first one counts"
    clusters = {(node.metadata.annotations or {}).get(_CLUSTER_NAME, "") for node in found.nodes} - {""}
    if len(clusters) > 1:
        yield f"the nodes belong to {len(clusters)} clusters ({', '.join(sorted(clusters))}) and are judged as one"


def load_inventory(path: str) -> dict[str, dict[str, str]]:
    """
    The domain of each level by node, or by server id, of a file in YAML or JSON.

    Either `node: {host: …, zone: …}`, or the list that `openstack server list --long -f json` writes.
    """
    import yaml

    try:
        content = yaml.safe_load(pathlib.Path(path).read_bytes())
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=path)) from None
    except yaml.YAMLError as error:
        raise InputError(Fault(f"invalid YAML: {str(error).splitlines()[0]}", file=path)) from None
    if isinstance(content, list):
        return _of_servers(content, path)
    if not isinstance(content, dict) or not content:
        raise InputError(Fault("expected domains by node, or a list of servers", file=path))
    return {str(name): _levels(str(name), entry, path) for name, entry in content.items()}


def _levels(name: str, entry: object, path: str) -> dict[str, str]:
    if not isinstance(entry, dict):
        raise InputError(Fault("expected domains by level", file=path, path=name))
    found: dict[str, str] = {}
    for word, value in entry.items():
        level = _WORDS.get(str(word).casefold())
        if level is None:
            known = ", ".join(LEVELS)
            raise InputError(Fault(f"unknown level {word}; there are {known}", file=path, path=name))
        if value is not None:
            found[level] = str(value)
    return found


def _of_servers(rows: list[Any], path: str) -> dict[str, dict[str, str]]:
    """By id and, so that nodes without a provider id are found too, by name."""
    found: dict[str, dict[str, str]] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not (row.get("ID") or row.get("Name")):
            raise InputError(Fault("expected a server with ID or Name", file=path, path=f"[{index}]"))
        domains = {
            level: str(value) for word, value in row.items() if value and (level := _WORDS.get(str(word).casefold()))
        }
        for key in ("Name", "ID"):
            if row.get(key):
                found[str(row[key])] = domains
    return found


def unknown_entries(inventory: Mapping[str, Mapping[str, str]], nodes: Iterable[Node]) -> list[str]:
    """The entries of an inventory that belong to no node, by name nor by provider id."""
    used: set[int] = set()
    for node in nodes:
        for key in (node.metadata.name, node.spec.provider_id.rpartition("/")[2]):
            if key in inventory:
                used.add(id(inventory[key]))
    return [name for name, entry in inventory.items() if id(entry) not in used]


def by_node(inventory: Mapping[str, Mapping[str, str]], nodes: Iterable[Node]) -> dict[str, Mapping[str, str]]:
    """The entries under the names of nodes; without nodes, each server once, under the name that it has."""
    found: dict[str, Mapping[str, str]] = {}
    for node in nodes:
        for key in (node.metadata.name, node.spec.provider_id.rpartition("/")[2]):
            if key in inventory:
                found.setdefault(node.metadata.name, inventory[key])
    if found:
        return found
    first: dict[int, str] = {}
    for name, entry in inventory.items():
        first.setdefault(id(entry), name)
    return {name: inventory[name] for name in first.values()}
