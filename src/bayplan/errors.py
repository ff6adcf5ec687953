"""
Every exception that Bayplan raises on purpose.

    BayplanError
     ├── InputError      what the user gave us cannot be used: exit code 2
     └── ClusterError    the world outside refused or failed: exit code 3; its kinds are in `kube_api.errors`

"It fits nowhere" is not here: that is an answer (`model.reasons.Decision`). A bug of ours is not here either: it
crashes as whatever it is and is never shown as a reason for refusing a target.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """One thing wrong with the input, with everything needed to find and mend it."""

    message: str
    file: str = ""
    line: int = 0
    subject: str = ""
    path: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        head = ", ".join(part for part in (place, self.subject) if part)
        return ": ".join(part for part in (head, self.path, self.message) if part)


class BayplanError(Exception):
    """Anything that a front door turns into a message and an exit code."""


class InputError(BayplanError):
    """All that is wrong with the input, not only the first thing."""

    def __init__(self, faults: Iterable[Fault] | Fault | str) -> None:
        if isinstance(faults, str):
            faults = Fault(faults)
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class ClusterError(BayplanError):
    """What we tried, against what, and what came back."""
