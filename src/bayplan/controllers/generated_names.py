"""Names as Kubernetes makes them up, except that the same input always gets the same ones."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator

import msgspec

# apimachinery/pkg/util/rand/rand.go: no vowels and no look-alikes, so that no name ever says something.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
LONGEST_BASE = 63 - _SUFFIX  # apiserver/pkg/storage/names/generate.go


def unique(base: str, taken: set[str], namespace: str) -> Iterator[str]:
    """Ever new names that start with `base`; each is put into `taken` as `namespace/name`."""
    base = base[:LONGEST_BASE]
    for attempt in itertools.count():
        name = base + _letters(fnv32(f"{namespace}/{base}/{attempt}".encode()))
        if f"{namespace}/{name}" not in taken:
            taken.add(f"{namespace}/{name}")
            yield name


def template_hash(template: object) -> str:
    """What stands for a pod template in names and labels: the same for equal templates."""
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(fnv32(msgspec.json.encode(template))))


def uid(kind: str, namespace: str, name: str) -> str:
    """An identity for an object that no API server has given one yet."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}/{namespace}/{name}"))


def fnv32(data: bytes) -> int:
    """FNV-1a of 32 bits, the hash that controllers use for templates."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def _letters(number: int) -> str:
    letters = []
    for _ in range(_SUFFIX):
        number, place = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[place])
    return "".join(letters)
