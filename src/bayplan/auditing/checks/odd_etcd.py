"""The number of etcd members is odd: one more tolerates no further loss."""

from __future__ import annotations

from bayplan.auditing.layout import ETCD
from bayplan.auditing.outcomes import BROKEN, HOLDS, Check, CheckOutcome, Facts, unknown_members


def _run(facts: Facts) -> CheckOutcome:
    absent = unknown_members(facts, ETCD)
    if absent is not None:
        return absent
    n = len(facts.layout.members[ETCD])
    evidence = facts.layout.component_evidence[ETCD]
    if n % 2:
        return CheckOutcome(HOLDS, f"{n} member{'s'[: n != 1]} of etcd", (), evidence)
    return CheckOutcome(BROKEN, f"{n} members of etcd survive no more losses than {max(n - 1, 0)} would", (), evidence)


CHECKS = (Check("fd-odd-etcd", "An odd number of etcd members", "etcd quorum", _run),)
