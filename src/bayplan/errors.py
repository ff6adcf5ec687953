"""
Every exception that Bayplan raises deliberately.

    BayplanError
     ├── InputError      the input cannot be used: exit code 2
     ├── ArgumentError   an argument of a call, or an option of a command, cannot be used: exit code 2
     └── ClusterError    an API server rejected a request or failed: exit code 3; subclasses are in `kube_api.errors`

"No target fits" is not an exception: it is a decision with a reason per target (`model.reasons.Reason`). A bug is not
listed either: it raises whatever it raises and is never reported as a reason for rejecting a target.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """One fault of the input, with everything needed to find and correct it."""

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
    """An error that a command reports as a message and an exit code."""


class InputError(BayplanError):
    """All faults of the input, not only the first."""

    def __init__(self, faults: Iterable[Fault] | Fault | str) -> None:
        if isinstance(faults, str):
            faults = Fault(faults)
        self.faults: tuple[Fault, ...] = (faults,) if isinstance(faults, Fault) else tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class ArgumentError(BayplanError, ValueError):
    """
    An argument of a call that cannot be used: the name of the argument, and what of its value is wrong.

    On the command line the argument is an option.
    """

    def __init__(self, message: str, *, argument: str = "", value: str = "") -> None:
        self.message, self.argument, self.value = message, argument, value
        super().__init__(": ".join(filter(None, (" ".join(filter(None, (argument, value))), message))))


class ClusterError(BayplanError):
    """A request to an API server that failed: the request, the server and its answer."""
