"""
Inventories of the failure domains of machines, by node or by server.

Uses only names and provider ids of API objects. Raises InputError for what cannot be used.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bayplan.auditing.catalogue import DEFAULT_ZONE
from bayplan.auditing.layout import CLOUD, HOST, LEVELS, RACK, REGION, ZONE
from bayplan.errors import Fault, InputError
from bayplan.reading import files
from bayplan.reading.documents import Source
from bayplan.wire.observed import ObservedNode

# The names of the levels in inventories, including the columns of `openstack server list --long`.
_LEVEL_OF_NAME = {
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


def load_inventory(
    path: str, named: Collection[str] = (), on_open: Callable[[Source], None] | None = None
) -> tuple[dict[str, dict[str, str]], list[str]]:
    """
    The domain of each level by node, or by server id, from a file in YAML or JSON, and notes on what is left out.

    The file holds either `node: {host: …, zone: …}`, or the output of `openstack server list --long -f json`. Other
    shared resources, such as a power feed, are read if they are `named`. Zones that tell nothing are left out.
    """
    from bayplan.reading import yaml_documents

    source = files.open_source(path, io.BytesIO())
    if isinstance(source, Fault):
        raise InputError(source)
    if on_open is not None:
        on_open(source)
    content = yaml_documents.read_value(source)
    faults: list[Fault] = []
    is_server_list = isinstance(content, list)
    if isinstance(content, list):
        found = _of_servers(content, path, named, faults)
    elif isinstance(content, dict) and content:
        found = {name: _levels(name, entry, path, named, faults) for name, entry in content.items()}
    else:
        raise InputError(Fault("expected domains by node, or a list of servers", file=path))
    if faults:
        raise InputError(faults)
    note = _leave_out_zones(found, path, is_server_list=is_server_list)
    return found, [note] if note else []


def _leave_out_zones(entries: dict[str, dict[str, str]], path: str, *, is_server_list: bool) -> str:
    """
    Remove zones that tell nothing, and say so: OpenStack's default zone, and one zone for all servers of a list.

    Every server of OpenStack has a zone, also where none was configured. In an inventory written by hand, one zone for
    all is a statement.
    """
    zones = {entry[ZONE] for entry in entries.values() if ZONE in entry}
    several = len({id(entry) for entry in entries.values()}) > 1
    useless = zones if is_server_list and several and len(zones) == 1 else zones & {DEFAULT_ZONE}
    for entry in entries.values():
        if entry.get(ZONE) in useless:
            del entry[ZONE]
    if not useless:
        return ""
    why = "the default of OpenStack" if useless == {DEFAULT_ZONE} else "the same for all servers"
    return f"{path}: zone {useless.pop()} tells nothing, as it is {why}; it is left out"


def _levels(name: str, entry: object, path: str, named: Collection[str], faults: list[Fault]) -> dict[str, str]:
    found: dict[str, str] = {}
    if not isinstance(entry, dict):
        faults.append(Fault("expected domains by level", file=path, path=name))
        return found
    for word, value in entry.items():
        level = _level(word, named)
        if level is None:
            known = f"there are {', '.join(LEVELS)}, and what --lose names"
            faults.append(Fault(f"unknown level {word}; {known}", file=path, path=name))
        elif isinstance(value, dict | list):
            faults.append(Fault("expected the name of a domain", file=path, path=f"{name}.{word}"))
        elif value is not None:
            found[level] = str(value)
    return found


def _level(word: object, named: Collection[str]) -> str | None:
    return _LEVEL_OF_NAME.get(str(word).casefold()) or (str(word) if str(word) in named else None)


def _of_servers(rows: list[Any], path: str, named: Collection[str], faults: list[Fault]) -> dict[str, dict[str, str]]:
    """By id and by name, so that nodes without a provider id are found too."""
    found: dict[str, dict[str, str]] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not (row.get("ID") or row.get("Name")):
            faults.append(Fault("expected a server with ID or Name", file=path, path=f"[{index}]"))
            continue
        domains = {level: str(value) for word, value in row.items() if value and (level := _level(word, named))}
        for key in ("Name", "ID"):
            if row.get(key):
                found[str(row[key])] = domains
    return found


def unknown_entries_text(path: str, names: Sequence[str]) -> str:
    """One warning for all entries that belong to no node."""
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"{path} names {'an unknown node' if len(names) == 1 else f'{len(names)} unknown nodes'}: {shown}"


def unknown_entries(inventory: Mapping[str, Mapping[str, str]], nodes: Iterable[ObservedNode]) -> list[str]:
    """The entries that belong to no node, neither by name nor by provider id."""
    used: set[int] = set()
    for node in nodes:
        for key in (node.metadata.name, node.spec.provider_id.rpartition("/")[2]):
            if key in inventory:
                used.add(id(inventory[key]))
    return [name for name, entry in inventory.items() if id(entry) not in used]


def by_node(inventory: Mapping[str, Mapping[str, str]], nodes: Iterable[ObservedNode]) -> dict[str, Mapping[str, str]]:
    """The entries by node name; without nodes, each server once, by its own name."""
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
