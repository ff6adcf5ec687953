"""Node labels from an inventory, as `kubectl label` commands or as manifests, with hashed values on request."""

from __future__ import annotations

import hashlib
import hmac
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.auditing.catalogue import KEYS
from bayplan.auditing.layout import LEVELS
from bayplan.auditing.repairing import instructions
from bayplan.errors import Fault, InputError
from bayplan.validating import names
from bayplan.writing import tables

_HASH_LENGTH = 40


class LabelChange(msgspec.Struct, frozen=True):
    """The labels to set on a node, and those that it has with another value, as (key, present value, value)."""

    node: str
    labels: Mapping[str, str]
    differing: tuple[tuple[str, str, str], ...] = ()


def changes(
    inventory: Mapping[str, Mapping[str, str]],
    *,
    present: Mapping[str, Mapping[str, str]] | None = None,
    hash_key: str = "",
    keys: Mapping[str, str] | None = None,
) -> list[LabelChange]:
    """
    The changes of every node, by name; raises InputError for values that are not valid label values.

    `present` are the labels of the nodes where they are known. A label that has the value already is no change.
    """
    key_of = {level: (keys or {}).get(level) or next(iter(KEYS[level]), "") for level in LEVELS}
    found, faults = [], []
    for node, domains in sorted(inventory.items()):
        if not node.isprintable():
            faults.append(Fault(f"expected the name of a node, got {node!r}", subject=tables.printable(node)))
        wanted = {
            key_of[level]: hashed(value, hash_key) if hash_key else value
            for level in LEVELS
            if (value := domains.get(level)) and key_of[level]
        }
        for key, value in wanted.items():
            if names.label_value(value):
                message = f"{value!r} is not a valid label value; --hash-key-file replaces it by a hash"
                faults.append(Fault(message, subject=node, path=key))
        before = (present or {}).get(node, {})
        differing = tuple((key, before[key], value) for key, value in wanted.items() if before.get(key, value) != value)
        found.append(LabelChange(node, {key: v for key, v in wanted.items() if key not in before}, differing))
    if faults:
        raise InputError(faults)
    if hash_key:
        values = {value for domains in inventory.values() for value in domains.values()}
        if len({hashed(value, hash_key) for value in values}) < len(values):
            raise InputError("two values have the same hash; use another key")
    return found


def commands(found: Sequence[LabelChange], *, overwrite: bool = False) -> str:
    """
    One command for each node whose labels change. Labels with another value are comments unless `overwrite`.

    A server that cannot be the name of a node is a comment too.
    """
    lines = []
    for change in found:
        labels = _to_set(change, overwrite=overwrite)
        forced = ["--overwrite"] if overwrite and change.differing else []
        if names.dns_subdomain(change.node):
            lines.append(f"# {shlex.quote(change.node)} cannot be the name of a node")
            continue
        if labels:
            words = [f"{key}={value}" for key, value in labels.items()]
            named = instructions.kubectl_words("node", change.node)
            lines.append(shlex.join(["kubectl", "label", *forced, *named, *words]))
        if not overwrite:
            lines += [f"# {line}" for line in differing_text(change)]
    return "".join(f"{line}\n" for line in lines)


def differing_text(change: LabelChange) -> list[str]:
    """A sentence for each label that the node has with another value."""
    return [
        f"{shlex.quote(change.node)} has {tables.printable(key)}={shlex.quote(tables.printable(before))}, and the "
        f"inventory says {shlex.quote(value)}: not changed without --overwrite"
        for key, before, value in change.differing
    ]


def manifests(found: Sequence[LabelChange], *, overwrite: bool = False) -> list[dict[str, Any]]:
    """A Node with only its labels for each node whose labels change, for `kubectl apply --server-side`."""
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": change.node, "labels": dict(labels)}}
        for change in found
        if (labels := _to_set(change, overwrite=overwrite)) and not names.dns_subdomain(change.node)
    ]


def _to_set(change: LabelChange, *, overwrite: bool) -> dict[str, str]:
    forced = {key: value for key, _, value in change.differing} if overwrite else {}
    return {**change.labels, **forced}


def hashed(value: str, hash_key: str) -> str:
    """The beginning of the HMAC-SHA-256 in hex: equal values have equal hashes, and the key is needed to guess them."""
    return hmac.new(hash_key.encode(), value.encode(), hashlib.sha256).hexdigest()[:_HASH_LENGTH]
