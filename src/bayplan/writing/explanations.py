"""
An explanation as text and as a document.

The text groups rejected targets by the rules that reject them, because there can be thousands. It does not know the
rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from bayplan.explaining.explanation import CLUSTER, Explanation, TargetVerdict
from bayplan.rules.rule import Failure
from bayplan.writing import tables, versioned

MAX_UNGROUPED_TARGETS = 20  # if more targets are rejected, they are grouped by reason
MAX_FEASIBLE_SHOWN = 10
MAX_NAMES_SHOWN = 5
_INDENT = "  "
_UNLIMITED_REPLICAS = 2**31 - 1


class FailureLine(msgspec.Struct, frozen=True):
    """One failure; `name` is the target or group, empty if it is the same as on the line above."""

    name: str
    failure: Failure


def text(explanation: Explanation, *, current: str = "", every: bool = False) -> str:
    """The result, the verdict on each target, and the changes that would help; `current` is where it runs now."""
    blocks = [
        [f"{explanation.workload} runs on {current}. If it were scheduled again:"] if current else [],
        [_headline(explanation)],
        _other_groups(explanation),
        _feasible([verdict for verdict in explanation.targets if verdict.fits], every=every),
        _rejected([v for v in explanation.targets if not v.fits], every=every, noun=explanation.noun),
    ]
    lines = [line for block in blocks for line in block]
    if explanation.fixes:
        lines += ["", "What would make it fit:"]
        lines += [
            f"{_INDENT}- {fix.change}: fits on {tables.listed(fix.fits_on, MAX_NAMES_SHOWN)}"
            for fix in explanation.fixes
        ]
    return "".join(f"{tables.printable(line)}\n" for line in lines)


def _headline(explanation: Explanation) -> str:
    workload, target = explanation.workload, explanation.target
    if explanation.nominated:
        victims = tables.listed(explanation.victims, MAX_NAMES_SHOWN)
        return f"{workload} would preempt {victims} on {explanation.nominated}. Without that: {explanation.message}"
    if not target:
        return explanation.message
    if explanation.noun == CLUSTER:
        group = f" (group {explanation.group})" if explanation.group else ""
        return f"{workload} is placed on {target}{group}."
    best = next(verdict for verdict in explanation.targets if verdict.chosen)
    return f"{workload} is placed on {target} with a score of {best.score}."


def _other_groups(explanation: Explanation) -> Iterator[str]:
    """The cluster affinity groups that failed, if there is more than one group."""
    if explanation.target or len(explanation.failed) > 1:
        for group, error in explanation.failed:
            yield f"{_INDENT}group {group} failed: {error}"
    if not explanation.target and explanation.group and explanation.targets:
        yield f"{_INDENT}clusters of group {explanation.group}:"


def _feasible(verdicts: Sequence[TargetVerdict], *, every: bool) -> Iterator[str]:
    ranked = sorted(verdicts, key=lambda v: (not v.chosen, v.tier or 0, -v.score, v.name))
    kept = ranked if every else ranked[:MAX_FEASIBLE_SHOWN]
    width = max((len(verdict.name) for verdict in kept), default=0)
    for verdict in kept:
        if verdict.available is not None:
            yield f"{_INDENT}{verdict.name.ljust(width)}  {_cluster(verdict)}"
            continue
        scores = ", ".join(f"{rule} {score}" for rule, score in verdict.scores.items() if score)
        yield f"{_INDENT}{verdict.name.ljust(width)}  fits  {verdict.score}  {scores}".rstrip()
    if len(ranked) > len(kept):
        yield f"{_INDENT}and {len(ranked) - len(kept)} more that fit (--all shows them)"


def _cluster(verdict: TargetVerdict) -> str:
    share = "" if verdict.share is None else f"  assigned {verdict.share}" if verdict.share else "  assigned"
    is_unlimited = verdict.available is not None and verdict.available >= _UNLIMITED_REPLICAS
    available = "unlimited" if is_unlimited else verdict.available
    return f"fits  tier {verdict.tier}  score {verdict.score}  available {available}{share}"


def _rejected(verdicts: Sequence[TargetVerdict], *, every: bool, noun: str) -> Iterator[str]:
    grouped = not every and len(verdicts) > MAX_UNGROUPED_TARGETS
    lines = list(_grouped(verdicts) if grouped else _ungrouped(verdicts))
    name_width = max((len(line.name) for line in lines), default=0)
    rule_width = max((len(line.failure.rule) for line in lines), default=0)
    for line in lines:
        head = f"{_INDENT}{line.name.ljust(name_width)}  {line.failure.rule.ljust(rule_width)}  "
        yield head + (line.failure.detail or line.failure.reason)
        for further in _evidence(line.failure, every=every):
            yield " " * len(head) + further
    if grouped:
        yield f"{_INDENT}(each line shows the first {noun} of its group; --all shows every {noun})"


def _ungrouped(verdicts: Iterable[TargetVerdict]) -> Iterator[FailureLine]:
    for verdict in verdicts:
        for position, failure in enumerate(verdict.failures):
            yield FailureLine("" if position else verdict.name, failure)


def _grouped(verdicts: Sequence[TargetVerdict]) -> Iterator[FailureLine]:
    """The failures of the first target of each group, the largest group first."""
    groups: dict[tuple[tuple[str, str], ...], list[TargetVerdict]] = {}
    for verdict in verdicts:
        groups.setdefault(tuple((f.rule, f.reason) for f in verdict.failures), []).append(verdict)
    for members in sorted(groups.values(), key=len, reverse=True):
        first = members[0]
        name = first.name if len(members) == 1 else f"{first.name} and {len(members) - 1} more"
        for position, failure in enumerate(first.failures):
            yield FailureLine("" if position else name, failure)


def _evidence(failure: Failure, *, every: bool) -> Iterator[str]:
    """The term and the conflicting peers, where the detail does not name them."""
    detail = failure.detail or failure.reason
    if failure.term and failure.term not in detail:
        yield f"by {failure.term}"
    if any(peer not in detail for peer in failure.peers):
        yield f"peers: {tables.listed(failure.peers, None if every else MAX_NAMES_SHOWN)}"


def document(explanation: Explanation, *, current: str = "") -> dict[str, Any]:
    """The explanation as a versioned document; `current` is where the workload runs."""
    return versioned.document("Explanation", {**content(explanation), "current": current})


def content(explanation: Explanation) -> dict[str, Any]:
    """The explanation without version and kind, as a part of another document."""
    return {
        "workload": explanation.workload,
        "target": explanation.target,
        "message": explanation.message,
        "verdicts": {verdict.name: _verdict(verdict) for verdict in explanation.targets},
        "fixes": [{"change": fix.change, "fitsOn": list(fix.fits_on)} for fix in explanation.fixes],
        **_groups(explanation),
        **_preemption(explanation),
    }


def _preemption(explanation: Explanation) -> dict[str, Any]:
    """Fields for pods that would preempt others only."""
    if not explanation.nominated:
        return {}
    return {"nominated": explanation.nominated, "victims": list(explanation.victims)}


def _groups(explanation: Explanation) -> dict[str, Any]:
    """Fields for bindings only: the affinity group, the assigned replicas, and the groups that failed."""
    if explanation.noun != CLUSTER:
        return {}
    chosen = [verdict for verdict in explanation.targets if verdict.share is not None]
    return {
        "affinity": explanation.group,
        "clusters": [{"name": verdict.name, "replicas": verdict.share} for verdict in chosen],
        "failedAffinities": [{"affinity": group, "message": error} for group, error in explanation.failed],
    }


def _verdict(verdict: TargetVerdict) -> dict[str, Any]:
    """Tier and available replicas are None for a node."""
    return {
        "fits": verdict.fits,
        "tier": verdict.tier,
        "score": verdict.score if verdict.fits else None,
        "available": verdict.available,
        "scores": verdict.scores,
        "failures": [_failure(failure) for failure in verdict.failures],
    }


def _failure(failure: Failure) -> dict[str, Any]:
    return {
        "rule": failure.rule,
        "reason": failure.reason,
        "detail": failure.detail,
        "term": failure.term,
        "domain": failure.domain,
        "peers": list(failure.peers),
    }
