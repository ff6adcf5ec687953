"""
An explanation as text and as a document.

Of thousands of refused targets those with the same rules against them are told together. Knows nothing of rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from bayplan.explaining.explanation import CLUSTER, Explanation, TargetVerdict
from bayplan.rules.rule import Failure
from bayplan.writing import tables, versioned

MOST_LINES = 20  # refused targets told one by one
MOST_FITTING = 10
MOST_PEERS = 5
_INDENT = "  "
_ENDLESS = 2**31 - 1


class Line(msgspec.Struct, frozen=True):
    """One failure: `name` is whom it concerns, empty where it is the same as on the line above."""

    name: str
    failure: Failure


def text(explanation: Explanation, *, current: str = "", every: bool = False) -> str:
    """The sentence, the targets with what is for and against them, and what would help; `current` is where it runs."""
    blocks = [
        _now(explanation, current) if current else [],
        [_headline(explanation)],
        _other_groups(explanation),
        _fitting([verdict for verdict in explanation.targets if verdict.fits], every=every),
        _refused([v for v in explanation.targets if not v.fits], every=every, noun=explanation.noun),
    ]
    lines = [line for block in blocks for line in block]
    if explanation.fixes:
        lines += ["", "What would make it fit:", *_fixes(explanation)]
    return "".join(f"{tables.printable(line)}\n" for line in lines)


def _now(explanation: Explanation, current: str) -> list[str]:
    if explanation.noun == CLUSTER:
        return [f"{explanation.workload} is on {current}. Decided now:"]
    return [f"{explanation.workload} runs on {current}. Placed anew:"]


def _headline(explanation: Explanation) -> str:
    if not explanation.target:
        return explanation.message
    if explanation.noun == CLUSTER:
        group = f" (group {explanation.group})" if explanation.group else ""
        return f"{explanation.workload} goes to {explanation.target}{group}."
    best = next(verdict for verdict in explanation.targets if verdict.chosen)
    return f"{explanation.workload} goes to {explanation.target}, which scores {best.score}."


def _other_groups(explanation: Explanation) -> Iterator[str]:
    """Which groups of clusters were tried in vain, where it was not the only one."""
    if explanation.target or len(explanation.failed) > 1:
        for group, error in explanation.failed:
            yield f"{_INDENT}group {group} had no place: {error}"
    if not explanation.target and explanation.group and explanation.targets:
        yield f"{_INDENT}of group {explanation.group}:"


def _fitting(verdicts: Sequence[TargetVerdict], *, every: bool) -> Iterator[str]:
    ranked = sorted(verdicts, key=lambda v: (not v.chosen, v.tier or 0, -v.score, v.name))
    kept = ranked if every else ranked[:MOST_FITTING]
    width = max((len(verdict.name) for verdict in kept), default=0)
    for verdict in kept:
        if verdict.available is not None:
            yield f"{_INDENT}{verdict.name.ljust(width)}  {_as_cluster(verdict)}"
            continue
        scores = ", ".join(f"{rule} {score}" for rule, score in verdict.scores.items() if score)
        yield f"{_INDENT}{verdict.name.ljust(width)}  fits  {verdict.score}  {scores}".rstrip()
    if len(ranked) > len(kept):
        yield f"{_INDENT}and {len(ranked) - len(kept)} more that fit (--all shows them)"


def _as_cluster(verdict: TargetVerdict) -> str:
    share = "" if verdict.share is None else f"  gets {verdict.share}" if verdict.share else "  chosen"
    room = "any number" if verdict.available is not None and verdict.available >= _ENDLESS else verdict.available
    return f"fits  tier {verdict.tier}  score {verdict.score}  room for {room}{share}"


def _refused(verdicts: Sequence[TargetVerdict], *, every: bool, noun: str) -> Iterator[str]:
    grouped = not every and len(verdicts) > MOST_LINES
    lines = list(_grouped(verdicts) if grouped else _each(verdicts))
    name_width = max((len(line.name) for line in lines), default=0)
    rule_width = max((len(line.failure.rule) for line in lines), default=0)
    for line in lines:
        head = f"{_INDENT}{line.name.ljust(name_width)}  {line.failure.rule.ljust(rule_width)}  "
        yield head + (line.failure.detail or line.failure.reason)
        for further in _evidence(line.failure, every=every):
            yield " " * len(head) + further
    if grouped:
        yield f"{_INDENT}(each line tells of its first {noun}; --all shows every {noun})"


def _each(verdicts: Iterable[TargetVerdict]) -> Iterator[Line]:
    for verdict in verdicts:
        for position, failure in enumerate(verdict.failures):
            yield Line("" if position else verdict.name, failure)


def _grouped(verdicts: Sequence[TargetVerdict]) -> Iterator[Line]:
    """The failures of the first target of each group, the largest group first."""
    groups: dict[tuple[tuple[str, str], ...], list[TargetVerdict]] = {}
    for verdict in verdicts:
        groups.setdefault(tuple((f.rule, f.reason) for f in verdict.failures), []).append(verdict)
    for members in sorted(groups.values(), key=len, reverse=True):
        first = members[0]
        name = first.name if len(members) == 1 else f"{first.name} and {len(members) - 1} more"
        for position, failure in enumerate(first.failures):
            yield Line("" if position else name, failure)


def _evidence(failure: Failure, *, every: bool) -> Iterator[str]:
    """What the detail does not say: the term behind it and the peers in the way."""
    said = failure.detail or failure.reason
    if failure.term and failure.term not in said:
        yield f"by {failure.term}"
    if any(peer not in said for peer in failure.peers):
        yield f"peers: {_some(failure.peers, None if every else MOST_PEERS)}"


def _some(names: Sequence[str], most: int | None) -> str:
    kept = list(itertools.islice(names, most))
    rest = len(names) - len(kept)
    return ", ".join(kept) + (f" and {rest} more" if rest else "")


def _fixes(explanation: Explanation) -> Iterator[str]:
    for fix in explanation.fixes:
        yield f"{_INDENT}- {fix.change}: fits on {_some(fix.fits_on, MOST_PEERS)}"


def document(explanation: Explanation, *, current: str = "") -> dict[str, Any]:
    """The explanation as a versioned document: a verdict per target, and the fixes; `current` is where it runs."""
    return versioned.document("Explanation", {**content(explanation), "current": current})


def content(explanation: Explanation) -> dict[str, Any]:
    """The explanation without version and kind, to stand inside another document."""
    return {
        "workload": explanation.workload,
        "target": explanation.target,
        "message": explanation.message,
        "verdicts": {verdict.name: _verdict(verdict) for verdict in explanation.targets},
        "fixes": [{"change": fix.change, "fitsOn": list(fix.fits_on)} for fix in explanation.fixes],
        **_groups(explanation),
    }


def _groups(explanation: Explanation) -> dict[str, Any]:
    """What is said of bindings alone: the group, the shares, and the groups that had no place."""
    if explanation.noun != CLUSTER:
        return {}
    chosen = [verdict for verdict in explanation.targets if verdict.share is not None]
    return {
        "affinity": explanation.group,
        "clusters": [{"name": verdict.name, "replicas": verdict.share} for verdict in chosen],
        "failedAffinities": [{"affinity": group, "message": error} for group, error in explanation.failed],
    }


def _verdict(verdict: TargetVerdict) -> dict[str, Any]:
    """Tiers and available replicas are of clusters; a node has neither."""
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
