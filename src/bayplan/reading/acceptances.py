"""Files of accepted findings. Raises InputError with everything that is wrong in one."""

from __future__ import annotations

import datetime as dt
import difflib
import io
from collections.abc import Callable, Collection
from typing import Any

from bayplan.auditing.acceptance import Acceptance
from bayplan.errors import Fault, InputError
from bayplan.reading import files, yaml_documents
from bayplan.reading.documents import Source

_REQUIRED = ("check", "reason", "expires")
_OPTIONAL = ("nodes", "cluster")


def load_acceptances(
    path: str, checks: Collection[str], on_open: Callable[[Source], None] | None = None
) -> list[Acceptance]:
    """The acceptances of a file, a list of `{check, reason, expires, nodes, cluster}`; `checks` are all ids."""
    source = files.open_source(path, io.BytesIO())
    if isinstance(source, Fault):
        raise InputError(source)
    if on_open is not None:
        on_open(source)
    content = yaml_documents.read_value(source)
    if not isinstance(content, list):
        raise InputError(Fault("expected a list of accepted findings", file=path))
    faults: list[Fault] = []
    found = [_acceptance(entry, f"[{i}]", path, checks, faults) for i, entry in enumerate(content)]
    if faults:
        raise InputError(faults)
    return [one for one in found if one is not None]


def nearest(check: str, checks: Collection[str]) -> str:
    """` did you mean …?`, or nothing."""
    close = difflib.get_close_matches(check, list(checks), 1, 0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _acceptance(entry: Any, place: str, path: str, checks: Collection[str], faults: list[Fault]) -> Acceptance | None:
    if not isinstance(entry, dict):
        faults.append(Fault("expected check, reason and expires", file=path, path=place))
        return None
    n_faults = len(faults)

    def fault(field: str, message: str) -> None:
        faults.append(Fault(message, file=path, path=f"{place}.{field}"))

    for field in entry:
        if field not in (*_REQUIRED, *_OPTIONAL):
            fault(str(field), f"unknown field; there are {', '.join((*_REQUIRED, *_OPTIONAL))}")
    for field in _REQUIRED:
        if not str(entry.get(field) or "").strip():
            fault(field, "expected a value: an acceptance needs a check, a reason and a date")
    check = str(entry.get("check") or "")
    if check and check not in checks:
        fault("check", f"there is no check {check}{nearest(check, checks)}")
    expires = str(entry.get("expires") or "")
    try:
        expires = dt.date.fromisoformat(expires).isoformat() if expires else ""
    except ValueError:
        fault("expires", f"expected a date such as 2027-01-31, got {expires!r}")
    nodes = entry.get("nodes") or []
    if not isinstance(nodes, list) or not all(isinstance(name, str) for name in nodes):
        fault("nodes", "expected a list of names of nodes")
        nodes = []
    cluster = entry.get("cluster") or ""
    if not isinstance(cluster, str):
        fault("cluster", "expected the name of a cluster")
    if len(faults) > n_faults:
        return None
    return Acceptance(check, str(entry["reason"]).strip(), expires, tuple(nodes), cluster)
