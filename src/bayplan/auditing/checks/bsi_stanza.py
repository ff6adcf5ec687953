"""Deployments and StatefulSets of several replicas ask to be spread: by anti-affinity or spread constraints."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing.checks.n1_workloads import NO_PODS
from bayplan.auditing.layout import DECLARED
from bayplan.auditing.outcomes import BROKEN, HOLDS, Check, CheckOutcome, Facts, workloads_text


def _run(kind: str) -> Callable[[Facts], CheckOutcome]:
    def run(facts: Facts) -> CheckOutcome:
        if facts.workloads is None:
            return NO_PODS
        bare = tuple(name for name in facts.workloads.unspread if name.startswith(f"{kind} "))
        if not bare:
            return CheckOutcome(HOLDS, f"every {kind} of several replicas asks to be spread", (), DECLARED)
        message = f"neither anti-affinity nor spread constraints in {workloads_text(bare)}"
        fix = "add a stanza; --repair writes it"
        return CheckOutcome(BROKEN, message, (), DECLARED, fix, workloads=bare)

    return run


CHECKS = tuple(
    Check(f"bsi-stanza-{kind.lower()}", f"Every {kind} asks to be spread", "BSI APP.4.4.A19", _run(kind))
    for kind in ("Deployment", "StatefulSet")
)
