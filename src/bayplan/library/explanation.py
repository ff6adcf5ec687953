"""An explanation as a value: the verdict on each target, the rules behind it, and the changes that would help."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import ArgumentError, Fault
from bayplan.library import arguments
from bayplan.library.answers import DOCUMENT_FORMATS, Answer, frozen

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from bayplan.explaining.explanation import Explanation as Explained
    from bayplan.explaining.explanation import TargetVerdict
    from bayplan.explaining.patches import ManifestSource
    from bayplan.model.targets import Target

    OpenManifests = Callable[[Explained], AbstractContextManager[ManifestSource]]


class RuleFailure(msgspec.Struct, frozen=True):
    """
    One rule that rejects a target: its id, its reason as the scheduler words it, and the details.

    `term` is the path of the term in the manifest, `domain` the topology domain, `peers` the pods in the way.
    """

    rule: str
    reason: str
    detail: str
    term: str
    domain: str
    peers: tuple[str, ...]


class Verdict(msgspec.Struct, frozen=True):
    """
    The verdict of all rules on one node or cluster.

    `scores` are by rule. Only a cluster has a `tier`, `available` replicas, and `replicas`, which it is assigned.
    """

    target: str
    fits: bool
    chosen: bool
    score: int | None
    scores: Mapping[str, int]
    failures: tuple[RuleFailure, ...]
    tier: int | None = None
    available: int | None = None
    replicas: int | None = None


class SuggestedFix(msgspec.Struct, frozen=True):
    """A change that was tried and lets the workload fit: what changes, and on which targets it fits then."""

    change: str
    fits_on: tuple[str, ...]


class FixedManifests(msgspec.Struct, frozen=True):
    """
    The manifests that a fix changes, as dictionaries, to be applied.

    `deleted` names the objects, by kind, namespace and name, that are to be deleted, so that their controllers create
    them again.
    """

    manifests: tuple[Mapping[str, Any], ...]
    deleted: tuple[Mapping[str, str], ...]


class PickledFixes(msgspec.Struct, frozen=True):
    """What is made of the manifests when it is asked for: the document, and what each fix changes."""

    document: dict[str, Any]
    fixed: tuple[FixedManifests | None, ...]


class Explanation(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    Why a workload is placed where it is, or why it fits nowhere.

    `target` is the node, or the clusters with their replicas; empty if it is unschedulable, and `message` is the
    scheduler's message then. `current` is where it runs now. It would preempt the `victims` on the node `nominated`.
    `notes` say what was read, created and left out, `warnings` which of its rules have no effect. The text "all" has
    every target and every peer, instead of a summary.
    """

    workload: str
    target: str
    message: str
    current: str
    nominated: str
    victims: tuple[str, ...]
    verdicts: Mapping[str, Verdict]
    fixes: tuple[SuggestedFix, ...]
    notes: tuple[str, ...]
    warnings: tuple[Fault, ...]
    _found: Explained
    _manifests: OpenManifests | None = None
    _pickled: PickledFixes | None = None
    _targets: tuple[Target, ...] = ()
    _formats = ("text", "all", *DOCUMENT_FORMATS, "html", "csv", "jsonpath=", "custom-columns=")

    @property
    def fits(self) -> bool:
        """Whether it is placed, or would preempt others."""
        return bool(self.target or self.nominated)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import explanations

        if self._pickled is not None:
            return self._pickled.document
        if self._manifests is None:
            return explanations.document(self._found, current=self.current)
        with self._manifests(self._found) as source:
            return explanations.document(self._found, current=self.current, source=source)

    def apply_fix(self, number: int) -> FixedManifests:
        """The manifests that a fix changes, as they are after it; the fixes are counted from 1."""
        known = self._found.fixes
        if self._manifests is None and self._pickled is None:
            message = "the manifests of this explanation are not known: ask for an explanation of the workload alone"
            raise ArgumentError(message, argument="apply_fix")
        arguments.check_count("apply_fix", number)
        if number > len(known):
            counted = f"it has {len(known)}" if known else "it has none"
            raise ArgumentError(f"there is no fix {number} of {self.workload}: {counted}", argument="apply_fix")
        fixed = self._fixed(number) if self._pickled is None else copy.deepcopy(self._pickled.fixed[number - 1])
        if fixed is None:
            what = f"fix {number} ({known[number - 1].change})"
            raise ArgumentError(f"{what} changes an object whose manifest is not in the input", argument="apply_fix")
        return fixed

    def _fixed(self, number: int) -> FixedManifests | None:
        """The manifests that a fix changes, None if one of them is not in the input."""
        from bayplan.explaining import patches

        assert self._manifests is not None
        with self._manifests(self._found) as source:
            changed = patches.of_fix(self._found.fixes[number - 1].revisions, self._found.revised_workload, source)
        if changed is None:
            return None
        return FixedManifests(
            tuple(written for one in changed if (written := one.manifest()) is not None),
            tuple(one.object for one in changed if one.after is None),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        values = msgspec.structs.asdict(self)
        if self._manifests is not None:
            fixed = tuple(self._fixed(number) for number in range(1, len(self.fixes) + 1))
            values |= {"_pickled": PickledFixes(self.to_dict(), fixed), "_manifests": None}
        return _restored, ({**values, "_found": without_revisions(self._found)},)

    def _text(self, output: str, width: int | None, _: Any) -> str:
        from bayplan.writing import chosen_output, explanations

        if output == "csv":
            return chosen_output.table(explanations.table(self._found), None, output)
        if output == "html":
            from bayplan.library import drawn
            from bayplan.writing import html_report

            text = explanations.text(self._found, current=self.current)
            return html_report.explanation_page(self._found, text, drawn.of_explanation(self._found, self._targets))
        return explanations.text(self._found, current=self.current, every=output == "all", width=width)

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        for verdict in self.verdicts.values():
            rules = ", ".join(dict.fromkeys(failure.rule for failure in verdict.failures))
            yield {"target": verdict.target, "fits": verdict.fits, "score": verdict.score, "rejectedBy": rules}

    def _summary(self) -> str:
        if self.target:
            return f"{self.workload} is placed on {self.target}"
        if self.nominated:
            return f"{self.workload} would preempt others on {self.nominated}"
        return f"{self.workload} fits nowhere: {self.message}"


def explanation_of(
    found: Explained,
    current: str = "",
    manifests: OpenManifests | None = None,
    *,
    notes: tuple[str, ...] = (),
    warnings: tuple[Fault, ...] = (),
    targets: Iterable[Target] = (),
) -> Explanation:
    """The value of an explanation; `manifests` finds the objects that fixes change, `targets` are those drawn."""
    return Explanation(
        workload=found.workload,
        target=found.target,
        message=found.message,
        current=current,
        nominated=found.nominated,
        victims=tuple(found.victims),
        verdicts=frozen({one.name: _verdict(one) for one in found.targets}),
        fixes=tuple(SuggestedFix(one.change, tuple(one.fits_on)) for one in found.fixes),
        notes=notes,
        warnings=warnings,
        _found=found,
        _manifests=manifests,
        _targets=tuple(targets),
    )


def _verdict(one: TargetVerdict) -> Verdict:
    failures = tuple(
        RuleFailure(each.rule, each.reason, each.detail, each.term, each.domain, tuple(each.peers))
        for each in one.failures
    )
    score = one.score if one.fits else None
    return Verdict(
        one.name, one.fits, one.chosen, score, frozen(one.scores), failures, one.tier, one.available, one.share
    )


def without_revisions(found: Explained) -> Explained:
    """The same without the functions that change manifests, which cannot be pickled."""
    fixes = [msgspec.structs.replace(one, revisions=None) for one in found.fixes]
    return msgspec.structs.replace(found, fixes=fixes)


def _restored(values: dict[str, Any]) -> Explanation:
    return Explanation(**values)
