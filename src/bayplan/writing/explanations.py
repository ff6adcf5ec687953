"""
An explanation as text and as a document.

The text groups rejected targets by what rejects them, because there can be thousands: the rules, and in each domain the
peers. For a terminal it is laid out to its width. It does not know the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bayplan.explaining import group_wait, patches
from bayplan.explaining.explanation import CLUSTER, Explanation, TargetVerdict
from bayplan.explaining.fixes import Fix
from bayplan.explaining.patches import ManifestSource
from bayplan.model.workloads import WorkloadKey
from bayplan.rules.rule import Failure
from bayplan.writing import tables, versioned

MAX_UNGROUPED_TARGETS = 20  # if more targets are rejected, they are grouped by reason
MIN_EQUAL_TARGETS = 3  # that are one group, even if there are few targets
MAX_GROUPS_OF_A_REASON = 6  # if there are more, only the first target is shown for all of them
MAX_FEASIBLE_SHOWN = 10
MAX_NAMES_SHOWN = 5
NO_FIX = "No change of the pod, of other pods or of nodes was found that makes it fit."
_INDENT = "  "
_NUMBERED = re.compile(r"(?:\d+\.|-) ")
_UNLIMITED_REPLICAS = 2**31 - 1


class FailureLine(msgspec.Struct, frozen=True):
    """One failure; `name` is the target or group, empty if it is the same as on the line above."""

    name: str
    failure: Failure


def text(explanation: Explanation, *, current: str = "", every: bool = False, width: int | None = None) -> str:
    """
    The result, the verdict on each target, and the changes that would help; `current` is where it runs now.

    Lines are wrapped to `width` columns, and not at all if that is None.
    """
    blocks = [
        [f"{_named(explanation.workload)} runs on {current}. If it were scheduled again:"] if current else [],
        [_headline(explanation)],
        _other_groups(explanation),
        _group_of_pods(explanation),
        _feasible([verdict for verdict in explanation.targets if verdict.fits], every=every),
        _rejected([v for v in explanation.targets if not v.fits], every=every, noun=explanation.noun, width=width),
    ]
    lines = [line for block in blocks for line in block]
    lines += _fixes(explanation)
    printed = (tables.printable(line) for line in lines)
    return "".join(f"{line}\n" for one in printed for line in _wrapped(one, width))


def _named(key: str) -> str:
    """The name of a workload, which is NAMESPACE/NAME unless it belongs to no namespace."""
    return key.removeprefix("/")


def _fixes(explanation: Explanation) -> Iterator[str]:
    """The changes that would help, or that none was found."""
    wait = explanation.group_wait
    if explanation.fixes and wait is not None and wait.failing is not None:
        yield from ("", f"What would make {wait.failing.key} fit beside the others:")
    elif explanation.fixes:
        yield from ("", "What would make it fit:")
    elif explanation.searched or explanation.advice:
        yield from ("", explanation.advice or NO_FIX)
    for number, fix in enumerate(explanation.fixes, 1):
        moved = ", ".join(f"{key} on {node}" for key, node in fix.moved)
        then = f" (then {moved})" if moved else ""
        yield f"{_INDENT}{number}. {fix.change}: fits on {tables.listed(fix.fits_on, MAX_NAMES_SHOWN)}{then}"


def _wrapped(line: str, width: int | None) -> list[str]:
    """The line in parts that are no wider than `width`; those after the first are indented like what they continue."""
    if width is None or len(line) <= width:
        return [line]
    import textwrap

    bare = line.lstrip()
    start = len(line) - len(bare)
    if numbered := _NUMBERED.match(bare):
        indent = start + numbered.end()
    else:  # a detail follows the last gap of at least two spaces
        indent = line.rfind("  ") + 2 if "  " in bare else start + len(_INDENT)
    start, indent = min(start, width // 3), min(indent, width // 3)
    longest = max(map(len, bare.split()))
    if longest + len(_INDENT) <= width < indent + longest:  # a path is not broken if it fits further to the left
        if len(bare) < width:
            return [" " * min(start, width - len(bare)) + bare]
        start, indent = (min(one, width - longest) for one in (start, indent))
    return textwrap.wrap(
        bare,
        width,
        initial_indent=" " * start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _headline(explanation: Explanation) -> str:
    workload, target = _named(explanation.workload), explanation.target
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
    """The cluster affinity groups that failed or were not tried, if there is more than one group."""
    if explanation.not_tried:
        tried = explanation.failed[0][0] if explanation.failed else explanation.group
        names = tables.listed(explanation.not_tried, MAX_NAMES_SHOWN)
        yield f"{_INDENT}not tried: {names}; scheduling continues with {tried}, the group observed last"
    if explanation.target or len(explanation.failed) > 1:
        for group, error in explanation.failed:
            yield f"{_INDENT}group {group} failed: {error}"
    if not explanation.target and explanation.group and explanation.targets:
        yield f"{_INDENT}clusters of group {explanation.group}:"


def _group_of_pods(explanation: Explanation) -> Iterator[str]:
    """Why the group of a pod waits, domain by domain, before the verdicts for the member that does not fit."""
    wait = explanation.group_wait
    if wait is None:
        return
    for line in group_wait.lines(wait):
        yield f"{_INDENT}{line}"
    if wait.failing is not None:
        n = len(wait.beside)
        yield f"{wait.failing.key}, beside {n} other member{'' if n == 1 else 's'} of the group:"


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


def _rejected(verdicts: Sequence[TargetVerdict], *, every: bool, noun: str, width: int | None = None) -> Iterator[str]:
    grouped = not every and len(verdicts) > MAX_UNGROUPED_TARGETS
    groups = _groups_of(verdicts) if grouped else _equal_ones(verdicts, every=every)
    lines = [line for group in groups for line in _lines(group)]
    name_width = max((len(line.name) for line in lines), default=0)
    rule_width = max((len(line.failure.rule) for line in lines), default=0)
    # Beside long names there is no room for details at a terminal: names get lines of their own.
    if width is not None and name_width + rule_width > width // 2:
        name_width = 0
        if rule_width > width // 3:
            rule_width = 0
    for line in lines:
        name = line.name
        if len(name) > name_width:
            yield f"{_INDENT}{name}"
            name = ""
        head = f"{_INDENT}{name.ljust(name_width)}{_INDENT}{line.failure.rule.ljust(rule_width)}  "
        yield head + (line.failure.detail or line.failure.reason)
        for further in _evidence(line.failure, every=every):
            yield " " * len(head) + further
    if any(not group.is_uniform for group in groups):
        yield f"{_INDENT}(a line with 'such as' shows the first {noun} of its group; --all shows every {noun})"
    elif len(groups) < len(verdicts):
        yield f"{_INDENT}(--all shows every {noun})"


class RejectedGroup(msgspec.Struct, frozen=True):
    """Targets that the same rules reject; `is_uniform` if for the same peers, domains and details too."""

    members: tuple[TargetVerdict, ...]
    is_uniform: bool = True

    @property
    def label(self) -> str:
        first, n_more = self.members[0].name, len(self.members) - 1
        if not n_more:
            return first
        return f"{first} and {n_more} more" if self.is_uniform else f"{n_more + 1} such as {first}"


def _groups_of(verdicts: Sequence[TargetVerdict]) -> list[RejectedGroup]:
    """The largest group first; what differs from target to target is one group, so that it does not hide the rest."""
    by_reason: dict[tuple[tuple[str, str], ...], dict[tuple[Failure, ...], list[TargetVerdict]]] = {}
    for verdict in verdicts:
        reasons = tuple((f.rule, f.reason) for f in verdict.failures)
        by_reason.setdefault(reasons, {}).setdefault(tuple(map(_as_shown, verdict.failures)), []).append(verdict)
    groups: list[RejectedGroup] = []
    for uniform in by_reason.values():
        if len(uniform) <= MAX_GROUPS_OF_A_REASON:
            groups += [RejectedGroup(tuple(members)) for members in uniform.values()]
        else:
            groups.append(RejectedGroup(tuple(one for members in uniform.values() for one in members), False))
    return sorted(groups, key=lambda group: -len(group.members))


def _equal_ones(verdicts: Sequence[TargetVerdict], *, every: bool) -> list[RejectedGroup]:
    """Several targets that are rejected for the same in every detail are one group; all others are shown by name."""
    equal: dict[tuple[Failure, ...], list[TargetVerdict]] = {}
    for verdict in verdicts:
        equal.setdefault(tuple(map(_as_shown, verdict.failures)), []).append(verdict)
    groups: list[RejectedGroup] = []
    for members in equal.values():
        is_one = not every and len(members) >= MIN_EQUAL_TARGETS
        groups += [RejectedGroup(tuple(members))] if is_one else [RejectedGroup((one,)) for one in members]
    return sorted(groups, key=lambda group: group.members[0].name)


def _as_shown(failure: Failure) -> Failure:
    """The failure without its domain, of which the detail says what matters."""
    return msgspec.structs.replace(failure, domain="") if failure.detail else failure


def _lines(group: RejectedGroup) -> Iterator[FailureLine]:
    """The failures of the first target, those in both directions between the same peers on one line."""
    merged: list[Failure] = []
    for failure in group.members[0].failures:
        both = _in_both_directions(merged[-1], failure) if merged else None
        if both is None:
            merged.append(failure)
        else:
            merged[-1] = both
    for position, failure in enumerate(merged):
        yield FailureLine("" if position else group.label, failure)


def _in_both_directions(first: Failure, second: Failure) -> Failure | None:
    """One failure for two whose details begin with the same peers in the same domain; None for any others."""
    if not first.peers or (first.rule, first.peers, first.domain) != (second.rule, second.peers, second.domain):
        return None
    start, middle, _ = second.detail.partition(f" in {first.domain} ")
    subject = f"{start}{middle}"
    if first.reason == second.reason or not middle or not first.detail.startswith(subject):
        return None
    path = f" by {second.term}" if second.term != first.term else ""
    return msgspec.structs.replace(first, detail=f"{first.detail}, and {second.detail.removeprefix(subject)}{path}")


def _evidence(failure: Failure, *, every: bool) -> Iterator[str]:
    """The term and the conflicting peers, where the detail does not name them."""
    detail = failure.detail or failure.reason
    if failure.term and failure.term not in detail:
        yield f"by {failure.term}"
    if any(peer not in detail for peer in failure.peers):
        yield f"peers: {tables.listed([_named(peer) for peer in failure.peers], None if every else MAX_NAMES_SHOWN)}"


def table(explanation: Explanation) -> tables.Table:
    """One row for each target that fits, and one for each failure of the others."""
    rows: list[tuple[str, ...]] = []
    for verdict in explanation.targets:
        if verdict.fits:
            rows.append((verdict.name, "yes", str(verdict.score), "", "", "", "", ""))
        for one in verdict.failures:
            detail = one.detail or one.reason
            rows.append((verdict.name, "no", "", one.rule, detail, one.term, one.domain, " ".join(one.peers)))
    return tables.Table(("TARGET", "FITS", "SCORE", "RULE", "DETAIL", "TERM", "DOMAIN", "PEERS"), rows)


def document(explanation: Explanation, *, current: str = "", source: ManifestSource | None = None) -> dict[str, Any]:
    """The explanation as a versioned document; `current` is where the workload runs. With patches from a `source`."""
    return versioned.document("Explanation", {**content(explanation, source), "current": current})


def content(explanation: Explanation, source: ManifestSource | None = None) -> dict[str, Any]:
    """The explanation without version and kind, as a part of another document."""
    return {
        "workload": explanation.workload,
        "target": explanation.target,
        "message": explanation.message,
        "verdicts": {verdict.name: _verdict(verdict) for verdict in explanation.targets},
        "fixes": [_fix(fix, explanation.revised_workload, source) for fix in explanation.fixes],
        **_groups(explanation),
        **_preemption(explanation),
        **_waiting(explanation),
    }


def _fix(fix: Fix, workload: WorkloadKey, source: ManifestSource | None) -> dict[str, Any]:
    """One fix; its patches are null if a manifest is not known."""
    found: dict[str, Any] = {"change": fix.change, "fitsOn": list(fix.fits_on)}
    if fix.moved:
        found["moved"] = [{"pod": key, "fitsOn": node} for key, node in fix.moved]
    if source is not None and fix.revisions is not None:
        known = patches.of_fix(fix.revisions, workload, source)
        found["patches"] = known and [{"object": one.object, "patch": one.patch} for one in known]
    return found


def _waiting(explanation: Explanation) -> dict[str, Any]:
    """The field for pods whose group waits only."""
    wait = explanation.group_wait
    if wait is None:
        return {}
    found: dict[str, Any] = {
        "group": wait.group,
        "minMembers": wait.min_members,
        "members": wait.n_members,
        "placed": wait.n_placed,
        "problem": wait.problem,
        "undecided": wait.undecided,
        "conflict": list(wait.conflict),
        "domains": [
            {"domain": one.domain, "fitting": one.n_fitting, "pod": one.pod, "message": one.message}
            for one in wait.attempts
        ],
    }
    return {"groupWait": found}


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
