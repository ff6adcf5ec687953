"""`bayplan violations`: the execution-time rules that are violated, and the pods that enforcement would evict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.cli import commands, loading, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.enforcing.planning import EnforcementSettings
    from bayplan.enforcing.preview import EnforcementPreview
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload, WorkloadKey
    from bayplan.writing.chosen_output import Arrangement

_ENFORCING = "Enforcement"


class GraceOptions(msgspec.Struct, frozen=True):
    """The settings of the enforcement that is previewed."""

    affinity_grace: str
    anti_affinity_grace: str
    only_if_placeable: bool
    grant: tuple[str, ...]

    def settings(self) -> EnforcementSettings:
        from bayplan.enforcing.planning import EnforcementSettings

        return EnforcementSettings(
            affinity_grace=value_types.seconds(self.affinity_grace),
            anti_affinity_grace=value_types.seconds(self.anti_affinity_grace),
            only_if_placeable=self.only_if_placeable,
            granted=frozenset(self.grant),
        )


GRACE = commands.OptionGroup(
    "grace",
    GraceOptions,
    (
        commands.Option(
            "--affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="5m",
            show_default=True,
            heading=_ENFORCING,
            help="Time before a violation of required affinity is enforced.",
        ),
        commands.Option(
            "--anti-affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="1m",
            show_default=True,
            heading=_ENFORCING,
            help="Time before a violation of required anti-affinity is enforced.",
        ),
        commands.Option(
            "--only-if-placeable",
            is_flag=True,
            heading=_ENFORCING,
            help="Evict a pod only if it fits on another node.",
        ),
        commands.Option(
            "--grant",
            multiple=True,
            metavar="NAMESPACE",
            type=value_types.Name(),
            heading=_ENFORCING,
            help="Rules of this namespace may evict pods of every namespace. May be repeated. Other rules evict pods "
            "of another namespace only if its label bayplan.io/evictable-by names theirs.",
        ),
    ),
)


@commands.command(
    "violations",
    summary=SUMMARIES["violations"],
    examples=(
        "bayplan violations -f cluster.json",
        "kubectl get nodes,pods,namespaces,pdb -A -o json | bayplan violations -f -",
        "bayplan violations -f cluster.json --only-if-placeable -o wide",
        "bayplan violations -f fleet/",
    ),
    details=(
        "Execution-time rules are the terms of requiredDuringSchedulingRequiredDuringExecution. In a fleet, all "
        "required workload affinity terms and groups are checked against the clusters of the bindings. The evictions "
        "are those of `bayplan run --enforce` after the grace period; this command evicts nothing. Exit code 0 if "
        "there are no violations, 1 if there are."
    ),
    groups=(options.INPUT, options.SCOPE, options.DECISIONS, GRACE, options.ARRANGEMENT, options.CONSOLE),
    params=(
        options.output("table", "wide", "json", "yaml", "name", options.CSV, options.JSONPATH, options.CUSTOM_COLUMNS),
        options.EXIT_ZERO,
    ),
)
def violations(
    *,
    output: str,
    exit_zero: bool,
    sources: options.InputOptions,
    scope: options.ScopeOptions,
    decisions: options.DecisionOptions,
    grace: GraceOptions,
    arrangement: Arrangement,
    console: Console,
) -> int:
    """Write the violations; exit code 1 if there are any."""
    is_included, rules, settings = scope.predicate(), options.configured_rules(), grace.settings()
    found = loading.load(sources, scope, decisions, console)
    from bayplan.enforcing import preview
    from bayplan.engine.engine import Engine
    from bayplan.reading.fleet import Fleet

    if isinstance(found, Fleet):
        whole = preview.preview_fleet(found.index)
    else:
        engine = Engine(found.index, rules)
        whole = preview.preview_pods(engine, settings, found.disruption_budgets, found.spread_context)
    shown = _in_scope(whole, found.index, is_included)
    in_force = None if isinstance(found, Fleet) else settings  # violations in a fleet are not enforced
    console.answer(_written(shown, found.index, in_force, output, console.table_width, arrangement=arrangement))
    _note_counts(shown, "binding" if isinstance(found, Fleet) else "pod", console)
    return commands.exit_code(not shown.verdicts, exit_zero=exit_zero)


def _in_scope(
    whole: EnforcementPreview, index: PlacementIndex, is_included: Callable[[Workload], bool]
) -> EnforcementPreview:
    """The violations whose owner or one of whose peers is in scope."""

    def concerns(key: WorkloadKey) -> bool:
        record = index.records.get(key)
        return record is not None and is_included(record.workload)

    verdicts = [v for v in whole.verdicts if any(map(concerns, (v.violation.owner, *v.violation.peers)))]
    return msgspec.structs.replace(whole, verdicts=tuple(verdicts))


def _note_counts(shown: EnforcementPreview, victim: str, console: Console) -> None:
    n_violations = len(shown.verdicts)
    if not n_violations:
        console.note("no violations")
        return
    evicted = {outcome.victim for verdict in shown.verdicts for outcome in verdict.outcomes if not outcome.spared}
    violations, victims = ("" if n == 1 else "s" for n in (n_violations, len(evicted)))
    console.note(f"{n_violations} violation{violations}; {len(evicted)} {victim}{victims} would be evicted")
    if not shown.exact:
        console.note("the conflicts are too many for an exact choice of victims; fewer evictions may be enough")


def _written(
    shown: EnforcementPreview,
    index: PlacementIndex,
    settings: EnforcementSettings | None,
    output: str,
    width: int | None,
    *,
    arrangement: Arrangement,
) -> str:
    from bayplan.writing import chosen_output, violation_report

    if chosen_output.is_document(output):
        return chosen_output.document(violation_report.document(shown, settings), output, arrangement)
    if output == "name":
        return violation_report.names(shown, {key: record.workload for key, record in index.records.items()})
    if not shown.verdicts:
        return ""
    found = violation_report.table(shown, settings, wide=output in ("wide", chosen_output.CSV))
    return chosen_output.table(found, width, output, arrangement)
