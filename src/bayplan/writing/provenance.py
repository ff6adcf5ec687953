"""What a report was made from: its inputs with their hashes, the date, the version, the standard."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from bayplan.reading.documents import Source


class ReportInput(msgspec.Struct, frozen=True):
    """A file, or a live cluster, which has no hash."""

    name: str
    sha256: str = ""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """`date` is in UTC, to the second, as Kubernetes writes times."""

    inputs: Sequence[ReportInput]
    date: str
    version: str
    standard: str

    def lines(self) -> list[str]:
        """For people: a sentence, then a line for each input."""
        inputs = [f"{one.name} {f'sha256:{one.sha256}' if one.sha256 else '(live)'}" for one in self.inputs]
        return [f"audited {self.date} with Bayplan {self.version} against {self.standard}", *inputs]

    def document(self) -> dict[str, Any]:
        return {
            "date": self.date,
            "version": self.version,
            "standard": self.standard,
            "inputs": [{"name": one.name, "sha256": one.sha256 or None} for one in self.inputs],
        }


def hashed(source: Source) -> ReportInput:
    """The input as it is read."""
    return ReportInput(source.name, hashlib.sha256(source.data).hexdigest())
