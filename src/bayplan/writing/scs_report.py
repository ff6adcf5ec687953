"""
An audit as the report that the compliance runner of SCS writes, for whoever collects such reports.

It mirrors `create_report` of Tests/scs-compliance-check.py in SovereignCloudStack/standards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

# The certificate scope that the standard belongs to, as Tests/scs-compatible-kaas.yaml names itself.
SCOPE = {
    "uuid": "1fffebe6-fd4b-44d3-a36c-fc58b4bb0180",
    "name": "SCS-compatible KaaS",
    "url": "https://raw.githubusercontent.com/SovereignCloudStack/standards/main/Tests/scs-compatible-kaas.yaml",
}
_VALUES = {"PASS": 1, "DNF": 0, "FAIL": -1}
_SIGNALS = ("info", "warning", "error", "critical")


class ScsRun(msgspec.Struct, frozen=True, kw_only=True):
    """What only the caller knows: whom it is about, when and how it was run, and ids for the report."""

    subject: str
    checked_at: datetime
    argv: Sequence[str]
    exit_code: int
    run_id: str
    invocation_id: str


def report(lines: Sequence[str], results: Mapping[str, str], run: ScsRun) -> dict[str, Any]:
    """The report of one invocation: its lines, and 1, 0 or -1 for what passed, was not decided or failed."""
    invocation = {
        "id": run.invocation_id,
        "cmd": " ".join(["bayplan", *run.argv]),
        "results": {name: _VALUES[verdict] for name, verdict in results.items()},
        "rc": run.exit_code,
        "stdout": list(lines),
        "stderr": [],
        **{signal: sum(line.lower().startswith(signal) for line in lines) for signal in _SIGNALS},
    }
    return {
        "spec": dict(SCOPE),
        "checked_at": run.checked_at,
        "reference_date": run.checked_at.date(),
        "subject": run.subject,
        "run": {
            "uuid": run.run_id,
            "argv": list(run.argv),
            "assignment": {},
            "sections": None,
            "forced_version": None,
            "forced_tests": None,
            "invocations": {run.invocation_id: invocation},
        },
    }


def text(content: Mapping[str, Any]) -> str:
    """As the runner writes it: dates as dates, in the order of the content."""
    import yaml

    written: str = yaml.safe_dump(
        content, default_flow_style=False, sort_keys=False, explicit_start=True, allow_unicode=False, width=120
    )
    return written
