"""Answers about what runs: violated rules, moves that would improve soft ones, and what namespaces are charged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bayplan.library import arguments
from bayplan.library.answers import DOCUMENT_FORMATS, Answer, frozen

if TYPE_CHECKING:
    from bayplan.enforcing.planning import EnforcementSettings
    from bayplan.enforcing.preview import EnforcementPreview, EnforcementVerdict
    from bayplan.enforcing.quota import Account, Amounts
    from bayplan.enforcing.rebalancing import DisruptionLimits, Rebalancing, WorkloadMove
    from bayplan.enforcing.soft_rules import Shares
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload, WorkloadKey
    from bayplan.reading.fleet import LoadedFleet
    from bayplan.writing.chosen_output import Arrangement
    from bayplan.writing.drawings import Picture

Charging = Literal["largest", "average"]


class ViolatedRule(msgspec.Struct, frozen=True):
    """
    One execution-time rule that is violated: whose it is, where, and which pods enforcement would evict.

    `owner` and `peers` are NAMESPACE/NAME, `rule` is one sentence, `term` its path in the manifest, `domain` is where
    it is violated. `evicted` would be evicted, `spared` would not, each with the reason.
    """

    owner: str
    target: str
    rule: str
    term: str
    topology_key: str
    domain: str
    peers: tuple[str, ...]
    evicted: Mapping[str, str]
    spared: Mapping[str, str]


class Violations(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `violations`: the rules that are violated. Iterating gives them.

    `exact` is false if there are too many conflicts for an exact choice: fewer evictions may be enough then.
    """

    rules: tuple[ViolatedRule, ...]
    exact: bool
    notes: tuple[str, ...]
    summary: tuple[str, ...]
    _preview: EnforcementPreview
    _workloads: Mapping[WorkloadKey, Workload]
    _picture: Picture | None = None
    _formats = ("table", "wide", *DOCUMENT_FORMATS, "name", "html", "csv", "jsonpath=", "custom-columns=")

    def __iter__(self) -> Iterator[ViolatedRule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    @property
    def ok(self) -> bool:
        """Whether no rule is violated."""
        return not self.rules

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import violation_report

        return violation_report.document(self._preview)

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        from bayplan.writing import chosen_output, violation_report

        if output == "name":
            return violation_report.names(self._preview, dict(self._workloads))
        if output == "html":
            from bayplan.writing import html_report

            table = violation_report.table(self._preview, wide=True)
            title = f"Violations: {self._summary()}"
            return html_report.rows_page(title, table, picture=self._picture)
        if not self.rules:
            return ""
        is_wide = output in ("wide", chosen_output.CSV)
        found = violation_report.table(self._preview, wide=is_wide)
        return chosen_output.table(found, width, output, arrangement)

    def _summary(self) -> str:
        return "; ".join(self.summary)


def violations_of(
    whole: EnforcementPreview,
    index: PlacementIndex,
    is_included: Callable[[Workload], bool],
    notes: tuple[str, ...],
) -> Violations:
    """The value: violations whose owner or one of whose peers is in scope."""

    def concerns(key: WorkloadKey) -> bool:
        record = index.records.get(key)
        return record is not None and is_included(record.workload)

    verdicts = [v for v in whole.verdicts if any(map(concerns, (v.violation.owner, *v.violation.peers)))]
    from bayplan.library import drawn

    shown = msgspec.structs.replace(whole, verdicts=tuple(verdicts))
    owners = {one.violation.owner for one in verdicts}
    return Violations(
        rules=tuple(map(_violated, verdicts)),
        exact=shown.exact,
        notes=notes,
        summary=tuple(_violation_counts(shown)),
        _preview=shown,
        _workloads={key: index.records[key].workload for key in owners},
        _picture=drawn.of_violations(shown, index),
    )


def _violated(verdict: EnforcementVerdict) -> ViolatedRule:
    from bayplan.writing import violation_report

    found = verdict.violation
    return ViolatedRule(
        owner=found.owner,
        target=found.target,
        rule=violation_report.rule(found),
        term=found.term,
        topology_key=found.topology_key,
        domain=found.domain,
        peers=tuple(found.peers),
        evicted=frozen({one.victim: one.why for one in verdict.evicted}),
        spared=frozen({one.victim: one.spared for one in verdict.outcomes if one.spared}),
    )


def enforcement_settings(
    affinity_grace: float, anti_affinity_grace: float, grant: Iterable[str], *, only_if_placeable: bool
) -> EnforcementSettings:
    """The settings of the enforcement that is previewed; raises ArgumentError."""
    from bayplan.enforcing.planning import EnforcementSettings

    arguments.check_seconds("affinity_grace", affinity_grace)
    arguments.check_seconds("anti_affinity_grace", anti_affinity_grace)
    return EnforcementSettings(
        affinity_grace=affinity_grace,
        anti_affinity_grace=anti_affinity_grace,
        only_if_placeable=only_if_placeable,
        granted=frozenset(arguments.several("grant", grant)),
    )


def _violation_counts(shown: EnforcementPreview) -> Iterator[str]:
    n_violations = len(shown.verdicts)
    if not n_violations:
        yield "no violations"
        return
    victim = "binding" if shown.of_fleet else "pod"
    evicted = {outcome.victim for verdict in shown.verdicts for outcome in verdict.evicted}
    violations, victims = ("" if n == 1 else "s" for n in (n_violations, len(evicted)))
    yield f"{n_violations} violation{violations}; {len(evicted)} {victim}{victims} would be evicted"
    if not shown.exact:
        yield "the conflicts are too many for an exact choice of victims; fewer evictions may be enough"


class PlannedMove(msgspec.Struct, frozen=True):
    """The move of one workload: from where to where, as targets with replicas, and what it gains by rule."""

    workload: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    gain: int
    gain_by_rule: Mapping[str, int]


class MovePlan(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `rebalance`: the fewest moves that improve soft rules most, in order. Iterating gives them.

    `gain` is in points. `exact` is true if no plan within the limits gains more, or as much with fewer moves.
    """

    moves: tuple[PlannedMove, ...]
    gain: int
    exact: bool
    notes: tuple[str, ...]
    _plan: Rebalancing
    _workloads: Mapping[WorkloadKey, Workload]
    _picture: Picture | None = None
    _formats = ("table", "wide", *DOCUMENT_FORMATS, "name", "html")

    def __iter__(self) -> Iterator[PlannedMove]:
        return iter(self.moves)

    def __len__(self) -> int:
        return len(self.moves)

    @property
    def ok(self) -> bool:
        """Whether no move gains anything; the exit code is 0 then."""
        return not self.moves

    @property
    def summary(self) -> tuple[str, ...]:
        """What the plan gains, in a line."""
        from bayplan.writing import rebalance_report

        return (rebalance_report.summary(self._plan),)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import rebalance_report

        return rebalance_report.document(self._plan)

    def _text(self, output: str, width: int | None, _: Arrangement) -> str:
        from bayplan.writing import rebalance_report

        if output == "html":
            from bayplan.writing import html_report

            table = rebalance_report.table(self._plan, self._workloads, wide=True)
            return html_report.rows_page(f"Rebalance: {self._summary()}", table, picture=self._picture)
        return rebalance_report.written(self._plan, self._workloads, output, width)

    def _summary(self) -> str:
        return self.summary[0]


def move_plan_of(plan: Rebalancing, index: PlacementIndex, notes: tuple[str, ...]) -> MovePlan:
    """The value of a plan over the index of its state."""
    moved = {one.workload: index.records[one.workload].workload for one in plan.moves}
    from bayplan.library import drawn

    picture = drawn.of_moves(plan, index)
    return MovePlan(tuple(map(_move, plan.moves)), plan.gain, plan.exact, notes, plan, moved, picture)


def _move(one: WorkloadMove) -> PlannedMove:
    return PlannedMove(
        one.workload, frozen(dict(one.before)), frozen(dict(one.after)), sum(one.gain.values()), frozen(one.gain)
    )


def fleet_moves(fleet: LoadedFleet, limits: DisruptionLimits) -> Rebalancing:
    """The moves in a fleet; bindings that this scheduler ignores stay."""
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.enforcing import rebalancing
    from bayplan.enforcing.soft_rules import FleetPreferences
    from bayplan.placing import place_bindings
    from bayplan.rules import fleet_profile

    index, engine = fleet.index, FleetEngine(fleet.index, fleet_profile.fleet_rules())

    def movable(workload: Workload) -> bool:
        return workload.key not in fleet.not_scheduled and limits.movable(workload)

    def rescheduled(workload: Workload) -> Shares:
        placement = place_bindings.place_again(workload, engine)
        return placement.shares if placement.placed else ()

    return rebalancing.plan_moves(
        index, rescheduled, FleetPreferences(index), msgspec.structs.replace(limits, movable=movable)
    )


class ChargedNamespace(msgspec.Struct, frozen=True):
    """
    What one namespace is charged, by resource and in Kubernetes' notation, and its limits; None without limits.

    `exceeded` are the resources of which it is charged more, `pods` what it is charged for, each with the reason.
    """

    namespace: str
    charged: Mapping[str, str]
    limits: Mapping[str, str] | None
    exceeded: tuple[str, ...]
    pods: Mapping[str, str]


class QuotaReport(Answer, msgspec.Struct, frozen=True, eq=False):
    """The answer of `quota`: what each namespace is charged for pods that occupy a whole domain, by namespace."""

    namespaces: Mapping[str, ChargedNamespace]
    notes: tuple[str, ...]
    _accounts: Sequence[Account]
    _charge: Charging
    _supply: Amounts
    _formats = ("table", "wide", *DOCUMENT_FORMATS)

    def __iter__(self) -> Iterator[ChargedNamespace]:
        return iter(self.namespaces.values())

    def __len__(self) -> int:
        return len(self.namespaces)

    @property
    def ok(self) -> bool:
        """Whether no namespace exceeds its limits."""
        return not any(account.exceeded for account in self._accounts)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import quota_report

        return quota_report.document(self._accounts, self._charge, self._supply)

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        items: list[Mapping[str, Any]] = self.to_dict()["accounts"]
        return items

    def _text(self, output: str, width: int | None, _: Arrangement) -> str:
        from bayplan.writing import quota_report, tables

        accounts = self._accounts
        if not accounts:
            return "no namespace is charged: no pod excludes all others\n"
        wide = output == "wide"
        drawn = [quota_report.accounts_table(accounts, wide=wide)]
        if any(account.charges for account in accounts):
            drawn.append(quota_report.charges_table(accounts, self._charge, wide=wide))
        return "\n".join(tables.rendered(table, width) for table in drawn)

    def _summary(self) -> str:
        over = [one.namespace for one in self if one.exceeded]
        return f"{len(self)} namespaces are charged; {', '.join(over) or 'none'} exceed their limits"


def quota_report_of(
    accounts: Sequence[Account], charge: Charging, supply: Amounts, notes: tuple[str, ...]
) -> QuotaReport:
    """The value of the accounts."""
    from bayplan.model import quantities
    from bayplan.writing import quota_report

    def shown(amounts: Amounts) -> Mapping[str, str]:
        return frozen({name: quantities.show(name, amount) for name, amount in amounts})

    namespaces = {
        one.namespace: ChargedNamespace(
            one.namespace,
            shown(one.charged),
            None if one.limits is None else shown(one.limits),
            tuple(one.exceeded),
            frozen({each.workload: quota_report.why(each, charge) for each in one.charges}),
        )
        for one in accounts
    }
    return QuotaReport(frozen(namespaces), notes, accounts, charge, supply)
