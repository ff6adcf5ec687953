"""`kubectl label` lines from an inventory, with values hidden by a keyed hash on request. Knows nothing of files."""

from __future__ import annotations

import hashlib
import hmac
import re
import shlex
from collections.abc import Mapping

from bayplan.auditing.catalogue import KEYS
from bayplan.auditing.layout import LEVELS
from bayplan.errors import Fault, InputError

LONGEST = 63
_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_HASHED = 40


def commands(
    inventory: Mapping[str, Mapping[str, str]], *, hash_key: str = "", keys: Mapping[str, str] | None = None
) -> str:
    """One line per node, in order of names; raises InputError for values that no label can hold."""
    key_of = {level: (keys or {}).get(level) or next(iter(KEYS[level]), "") for level in LEVELS}
    lines, faults = [], []
    for node, domains in sorted(inventory.items()):
        labels = {}
        for level in LEVELS:
            value = domains.get(level)
            if value and key_of[level]:
                labels[key_of[level]] = obfuscated(value, hash_key) if hash_key else value
        for key, value in labels.items():
            if len(value) > LONGEST or not _VALUE.fullmatch(value):
                faults.append(Fault(f"{value!r} cannot be a label; --hash-key makes one of it", subject=node, path=key))
        if labels:
            words = [f"{key}={value}" for key, value in labels.items()]
            lines.append(shlex.join(["kubectl", "label", "--overwrite", "node", node, *words]))
    if faults:
        raise InputError(faults)
    if hash_key:
        _refuse_collisions(inventory, hash_key)
    return "".join(f"{line}\n" for line in lines)


def obfuscated(value: str, hash_key: str) -> str:
    """HMAC-SHA-256 in hex, cut: equal values stay equal, and names are not to be had from it without the key."""
    return hmac.new(hash_key.encode(), value.encode(), hashlib.sha256).hexdigest()[:_HASHED]


def _refuse_collisions(inventory: Mapping[str, Mapping[str, str]], hash_key: str) -> None:
    values = {value for domains in inventory.values() for value in domains.values()}
    if len({obfuscated(value, hash_key) for value in values}) < len(values):
        raise InputError("two values have the same hash; use another key")
