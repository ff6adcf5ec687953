"""`kubectl label` commands from an inventory, with hashed values on request."""

from __future__ import annotations

import hashlib
import hmac
import re
import shlex
from collections.abc import Mapping

from bayplan.auditing.catalogue import KEYS
from bayplan.auditing.layout import LEVELS
from bayplan.auditing.repairing import instructions
from bayplan.errors import Fault, InputError
from bayplan.writing import tables

MAX_LABEL_LENGTH = 63
_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_HASH_LENGTH = 40


def commands(
    inventory: Mapping[str, Mapping[str, str]], *, hash_key: str = "", keys: Mapping[str, str] | None = None
) -> str:
    """One command per node, ordered by name; raises InputError for values that are not valid label values."""
    key_of = {level: (keys or {}).get(level) or next(iter(KEYS[level]), "") for level in LEVELS}
    lines, faults = [], []
    for node, domains in sorted(inventory.items()):
        labels = {}
        if not node.isprintable():
            faults.append(Fault(f"expected the name of a node, got {node!r}", subject=tables.printable(node)))
        for level in LEVELS:
            value = domains.get(level)
            if value and key_of[level]:
                labels[key_of[level]] = hashed(value, hash_key) if hash_key else value
        for key, value in labels.items():
            if len(value) > MAX_LABEL_LENGTH or not _VALUE.fullmatch(value):
                faults.append(
                    Fault(
                        f"{value!r} is not a valid label value; --hash-key-file replaces it by a hash",
                        subject=node,
                        path=key,
                    )
                )
        if labels:
            words = [f"{key}={value}" for key, value in labels.items()]
            lines.append(
                shlex.join(["kubectl", "label", "--overwrite", *instructions.kubectl_words("node", node), *words])
            )
    if faults:
        raise InputError(faults)
    if hash_key:
        values = {value for domains in inventory.values() for value in domains.values()}
        if len({hashed(value, hash_key) for value in values}) < len(values):
            raise InputError("two values have the same hash; use another key")
    return "".join(f"{line}\n" for line in lines)


def hashed(value: str, hash_key: str) -> str:
    """The beginning of the HMAC-SHA-256 in hex: equal values have equal hashes, and the key is needed to guess them."""
    return hmac.new(hash_key.encode(), value.encode(), hashlib.sha256).hexdigest()[:_HASH_LENGTH]
