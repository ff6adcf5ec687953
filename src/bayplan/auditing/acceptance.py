"""
Findings that were accepted, each with a reason and until a date.

What is accepted stays a finding, and the standard is not met; it only decides no exit code. Knows no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bayplan.auditing.audit import FAILED, UNDECIDED, WARN, Audit, CheckResult

_FINDINGS = (FAILED, WARN, UNDECIDED)


class Acceptance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    A check whose finding is accepted through the day `expires` (YYYY-MM-DD).

    With `nodes`, it covers a finding that concerns these nodes and no other; with `cluster`, one of that cluster.
    """

    check: str
    reason: str
    expires: str
    nodes: tuple[str, ...] = ()
    cluster: str = ""

    def covers(self, result: CheckResult) -> bool:
        concerned = not self.nodes or (bool(result.nodes) and set(result.nodes) <= set(self.nodes))
        return self.check == result.id and result.verdict in _FINDINGS and concerned


def accept(audit: Audit, acceptances: Sequence[Acceptance], today: str) -> tuple[Audit, list[str]]:
    """
    The audit with its accepted findings marked, and a note for each acceptance that has expired or covers nothing.

    `today` is a date in the form of `expires`, so that the two compare as text.
    """
    in_force = [one for one in acceptances if one.expires >= today]
    results = []
    used: set[Acceptance] = set()
    for result in audit.results:
        covering = next((one for one in in_force if one.covers(result)), None)
        if covering is None:
            results.append(result)
        else:
            used.add(covering)
            accepted, until = covering.reason, covering.expires
            results.append(msgspec.structs.replace(result, accepted=accepted, accepted_until=until))
    notes = [_expired_text(one, audit) for one in acceptances if one not in in_force]
    notes += [_unused_text(one, audit) for one in in_force if one not in used]
    return msgspec.structs.replace(audit, results=tuple(results)), notes


def _expired_text(one: Acceptance, audit: Audit) -> str:
    covers = any(one.covers(result) for result in audit.results)
    return f"the acceptance of {one.check} expired on {one.expires}" + (
        "" if covers else "; there is nothing to accept"
    )


def _unused_text(one: Acceptance, audit: Audit) -> str:
    if any(one.covers(result) for result in audit.results):
        return f"the acceptance of {one.check} through {one.expires} has no effect: another one comes before it"
    others = [result for result in audit.results if result.id == one.check and result.verdict in _FINDINGS]
    if others:
        return f"the acceptance of {one.check} does not cover its finding: other nodes are concerned too"
    return f"the acceptance of {one.check} has nothing to accept"
