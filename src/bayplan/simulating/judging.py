"""
Whether the expectations of a timeline are met: each is judged once everything has settled at its time.

An expectation with an end is judged at every moment until then, and fails at the first at which it is not met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.simulating import measuring
from bayplan.simulating.cluster_api import MOVED, ClusterApi
from bayplan.simulating.measuring import Measures
from bayplan.simulating.node_lifecycle import NodeLifecycle
from bayplan.simulating.store import key_of
from bayplan.simulating.timeline import Expectation, Step
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod


class Verdict(msgspec.Struct, frozen=True):
    """An expectation as it was judged: when, whether it is met, and what was found."""

    at: float
    text: str
    path: str
    line: int
    met: bool
    found: str


class _Open(msgspec.Struct, eq=False):
    """An expectation that is judged until `until`; `failed_at` is when it first was not met."""

    expectation: Expectation
    since: float
    until: float
    failed_at: float | None = None
    found: str = ""


class Judge:
    """Judges expectations. `line_of` gives the line of a field of the timeline."""

    def __init__(
        self,
        api: ClusterApi,
        measures: Measures,
        lifecycle: NodeLifecycle,
        clock: Callable[[], float],
        *,
        rollouts: Callable[[], Iterable[ObjectKey]],
        line_of: Callable[[str], int],
    ) -> None:
        self._api, self._store, self._measures, self._lifecycle = api, api.store, measures, lifecycle
        self._clock, self._rollouts, self._line_of = clock, rollouts, line_of
        self.verdicts: list[Verdict] = []
        self._due: list[Expectation] = []
        self._open: list[_Open] = []

    @property
    def is_asked(self) -> bool:
        """Whether anything is to be judged at this moment."""
        return bool(self._due or self._open)

    def begin(self, step: Step, until: float | None) -> None:
        """Take in the expectations of a step, which is at this time."""
        if until is None:
            self._due += step.expectations
        else:
            self._open += [_Open(one, self._clock(), until) for one in step.expectations]

    def settled(self) -> None:
        """Judge what is due."""
        now = self._clock()
        for one in self._due:
            met, found = self._judge(one)
            self._add(one, now, found, met=met)
        self._due.clear()
        for pending in self._open:
            if pending.failed_at is None and now <= pending.until + 1e-6:
                met, found = self._judge(pending.expectation)
                pending.found = found
                if not met:
                    pending.failed_at = now
        for pending in [one for one in self._open if one.failed_at is not None or now >= one.until - 1e-6]:
            self._open.remove(pending)
            failed = pending.failed_at
            self._add(pending.expectation, now if failed is None else failed, pending.found, met=failed is None)

    def _add(self, one: Expectation, at: float, found: str, *, met: bool) -> None:
        self.verdicts.append(Verdict(round(at, 3), one.text, one.path, self._line_of(one.path), met, found))

    def _judge(self, one: Expectation) -> tuple[bool, str]:
        """Whether it is met now, and what was found."""
        of = None if one.of is None else one.of.key
        if one.domain_key:
            return self._in_every_domain(one)
        number = self._number(one, of)
        if one.subject == "unavailable":
            return one.bound.holds(number), f"{number:.0f} s"
        found = f"{number:g}"
        if one.subject == "pending" and not one.bound.holds(number):
            found += self._examples(self._measures.pending.names(), of)
        return one.bound.holds(number), found

    def _number(self, one: Expectation, of: ObjectKey | None) -> float:
        measures = self._measures
        match one.subject:
            case "pending":
                if one.longer_than is not None:
                    return measures.pending.n_longer(one.longer_than, of)
                return measures.pending.n_now(of)
            case "violations":
                if one.longer_than is not None:
                    return measures.violations.n_longer(one.longer_than)
                return len(measures.violations)
            case "ready" | "pods":
                return len(self._pods(one, of))
            case "nodesReady":
                return sum(node.metadata.name not in self._lifecycle.not_ready for node in self._store.nodes())
            case "evictions":
                causes = self._api.evictions
                return sum(n for (cause, root), n in causes.items() if one.cause in ("", cause) and of in (None, root))
            case "moves":
                return sum(n for (cause, _), n in self._api.evictions.items() if cause == MOVED)
            case "rollouts":
                return sum(of in (None, key) for key in self._rollouts())
            case _:
                return {key: use.missing_seconds for key, use in measures.totals_of_workloads()}.get(of, 0.0)  # type: ignore[arg-type]

    def _pods(self, one: Expectation, of: ObjectKey | None) -> list[Pod]:
        is_counted = self._serves if one.subject == "ready" else measuring.runs
        assert of is not None, "the reader asks for the workload"
        owners = [of, *(ObjectKey("ReplicaSet", of.namespace, s.metadata.name) for s in self._store.owned_sets(of))]
        return [pod for owner in owners for pod in self._store.pods_of(owner) if is_counted(pod)]

    def _serves(self, pod: Pod) -> bool:
        return key_of(pod) in self._measures.serving

    def _in_every_domain(self, one: Expectation) -> tuple[bool, str]:
        """Count in each domain that has a node which is ready."""
        assert one.of is not None, "the reader asks for the workload"
        by_node = {node.metadata.name: _domain(node, one.domain_key) for node in self._store.nodes()}
        domains = {domain for name, domain in by_node.items() if domain and name not in self._lifecycle.not_ready}
        counted = Counter(by_node.get(pod.spec.node_name) for pod in self._pods(one, one.of.key))
        numbers = {domain: counted[domain] for domain in sorted(domains)}
        met = bool(numbers) and all(one.bound.holds(number) for number in numbers.values())
        wrong = [f"{domain}: {n}" for domain, n in numbers.items() if not one.bound.holds(n)]
        shown = wrong or [f"{domain}: {n}" for domain, n in numbers.items()]
        more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
        return met, (", ".join(shown[:5]) + more) or "no domain has a node that is ready"

    def _examples(self, names: Iterable[Any], of: ObjectKey | None) -> str:
        listed = []
        for key in names:
            pod = self._store.find(key)
            if pod is not None and of in (None, self._measures.root_of(pod)):
                listed.append(f"{key.namespace}/{key.name}")
        shown = ", ".join(sorted(listed)[:3])
        return f": {shown}{', …' if len(listed) > 3 else ''}" if shown else ""


def _domain(node: Node, key: str) -> str:
    return (node.metadata.labels or {}).get(key, "")
