"""
Reads expectations: what is counted, for what, and how the number is limited.

One table says which words each subject knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.simulating.timeline import Bound, Expectation
from bayplan.simulating.timeline_fields import Fields, shown, written_duration

LIMITS = ("exactly", "atLeast", "atMost", "fewerThan", "moreThan")
_WORDS = {"exactly": "exactly", "atLeast": "at least", "atMost": "at most", "fewerThan": "fewer than", "moreThan": "more than"}  # fmt: skip # noqa: E501
CAUSES = ("enforcement", "preemption", "drain", "rebalancing", "taint")
DOMAIN_KEYS = {
    "node": "kubernetes.io/hostname", "zone": "topology.kubernetes.io/zone", "region": "topology.kubernetes.io/region",
}  # fmt: skip
# What can be counted → the further words that say of what.
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "pending": ("of", "longerThan"),
    "violations": ("longerThan",),
    "ready": ("of", "inEvery"),
    "pods": ("of", "inEvery"),
    "nodesReady": (),
    "evictions": ("of", "cause"),
    "moves": (),
    "unavailable": ("of",),
    "rollouts": ("of",),
}
_NEEDS_WORKLOAD = ("ready", "pods", "unavailable")
_NOUNS = {
    "pending": "pods pending", "violations": "violations", "ready": "pods ready", "pods": "pods running",
    "nodesReady": "nodes ready", "evictions": "evictions", "moves": "moves", "unavailable": "unavailable",
    "rollouts": "rollouts in progress",
}  # fmt: skip


def read(value: Any, path: str, fields: Fields, namespace: str) -> list[Expectation]:
    """The expectations of one step: a mapping, or a list of mappings."""
    found = []
    for item, at in fields.items(value, path):
        for subject, written in fields.mapping(item, at, SUBJECTS).items():
            one = _expectation(subject, written, f"{at}.{subject}", fields, namespace)
            if one is not None:
                found.append(one)
    return found


def _expectation(subject: str, value: Any, path: str, fields: Fields, namespace: str) -> Expectation | None:
    is_time = subject == "unavailable"
    if not isinstance(value, dict):
        value = {("atMost" if is_time else "exactly"): value}
    known = (*SUBJECTS[subject], *LIMITS)
    written = fields.mapping(value, path, known)
    given = [word for word in LIMITS if word in written]
    if len(given) > 1:
        fields.fault(path, f"expected one limit, got {', '.join(given)}")
        return None
    bound = Bound("exactly", 0.0)
    if given:
        at = f"{path}.{given[0]}"
        read_limit = fields.seconds if is_time else fields.number
        bound = Bound(given[0], read_limit(written[given[0]], at))
    elif subject in ("ready", "pods", "nodesReady", "unavailable"):
        fields.fault(path, f"expected a limit, one of {', '.join(LIMITS)}")
    of = fields.named(written["of"], f"{path}.of", namespace) if "of" in written else None
    if subject in _NEEDS_WORKLOAD and "of" not in written:
        fields.fault(path, "expected the workload in `of`, got nothing")
    longer = fields.seconds(written["longerThan"], f"{path}.longerThan") if "longerThan" in written else None
    cause = fields.text(written["cause"], f"{path}.cause") if "cause" in written else ""
    if cause and cause not in CAUSES:
        fields.fault(f"{path}.cause", f"expected one of {', '.join(CAUSES)}, got {shown(cause)}")
    key = fields.text(written["inEvery"], f"{path}.inEvery") if "inEvery" in written else ""
    _check_can_fail(bound, given, path, fields)
    one = Expectation(
        subject=subject,
        path=path,
        text="",
        bound=bound,
        of=of,
        longer_than=longer,
        domain_key=DOMAIN_KEYS.get(key, key),
        cause=cause,
    )
    return _with_text(one, key)


def _check_can_fail(bound: Bound, given: list[str], path: str, fields: Fields) -> None:
    """No number is fewer than none, and every number is at least none."""
    if bound.word == "fewerThan" and not bound.limit:
        fields.fault(f"{path}.{given[0]}", "no number is fewer than 0: use `exactly: 0`")
    if bound.word == "atLeast" and not bound.limit and given:
        fields.fault(f"{path}.{given[0]}", "every number is at least 0: this is always met")


def _with_text(one: Expectation, key: str) -> Expectation:
    """The expectation with a sentence for reports."""
    limit = written_duration(one.bound.limit) if one.subject == "unavailable" else f"{one.bound.limit:g}"
    text = f"{_WORDS[one.bound.word]} {limit} {_NOUNS[one.subject]}"
    if one.bound.word == "exactly":
        text = f"{'no' if not one.bound.limit else limit} {_NOUNS[one.subject]}"
    if one.cause:
        text += f" by {one.cause}"
    if one.of is not None:
        text += f" of {one.of.text}" if one.subject != "unavailable" else f": {one.of.text}"
    if key:
        text += f" in every {key}"
    if one.longer_than is not None:
        text += f" for longer than {written_duration(one.longer_than)}"
    return msgspec.structs.replace(one, text=text)
