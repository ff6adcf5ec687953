"""
Inventories of the failure domains of machines, by node or by server.

Uses only names and provider ids of API objects. Raises InputError for what cannot be used.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from bayplan.auditing.audit_input import SERVER_ID, entry_of
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
    notes: list[str] = []
    if isinstance(content, list):
        found = _of_servers(content, path, named, faults, notes)
    elif isinstance(content, dict) and content:
        found = {name: _levels(name, entry, path, named, faults) for name, entry in content.items()}
    else:
        raise InputError(Fault("expected domains by node, or a list of servers", file=path))
    if faults:
        raise InputError(faults)
    note = _leave_out_zones(found, path, is_server_list=is_server_list)
    return found, [*notes, note] if note else notes


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


def _of_servers(
    rows: list[Any], path: str, named: Collection[str], faults: list[Fault], notes: list[str]
) -> dict[str, dict[str, str]]:
    """By id, and by name where one server has it, so that nodes without a provider id are found too."""
    found: dict[str, dict[str, str]] = {}
    servers_of: dict[str, set[str]] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, dict) or not (row.get("ID") or row.get("Name")):
            faults.append(Fault("expected a server with ID or Name", file=path, path=f"[{index}]"))
            continue
        domains = {level: str(value) for word, value in row.items() if value and (level := _level(word, named))}
        if row.get("ID"):
            domains[SERVER_ID] = str(row["ID"])
        for key in ("Name", "ID"):
            if row.get(key):
                found[str(row[key])] = domains
        if row.get("Name"):
            servers_of.setdefault(str(row["Name"]), set()).add(str(row.get("ID") or index))
    shared = sorted(name for name, servers in servers_of.items() if len(servers) > 1)
    for name in shared:
        del found[name]
    if shared:
        notes.append(f"{path}: several servers are named {_listed(shared)}; they are matched by provider id only")
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def unknown_entries_text(path: str, names: Sequence[str]) -> str:
    """One warning for all entries that belong to no node."""
    return f"{path} names {'an unknown node' if len(names) == 1 else f'{len(names)} unknown nodes'}: {_listed(names)}"


def unknown_entries(inventory: Mapping[str, Mapping[str, str]], nodes: Iterable[ObservedNode]) -> list[str]:
    """The entries that belong to no node, neither by provider id nor by name."""
    used = {id(entry_of(node, inventory)) for node in nodes}
    return [name for name, entry in inventory.items() if id(entry) not in used]


def by_node(inventory: Mapping[str, Mapping[str, str]], nodes: Iterable[ObservedNode]) -> dict[str, Mapping[str, str]]:
    """The entries by node name; without nodes, each server once, by its own name."""
    found = {node.metadata.name: entry for node in nodes if (entry := entry_of(node, inventory)) is not None}
    if found:
        return found
    first: dict[int, str] = {}
    for name, entry in inventory.items():
        first.setdefault(id(entry), name)
    return {name: inventory[name] for name in first.values()}
