"""`bayplan violations`: which execution-time rules are broken, and who would go for it. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bayplan.cli import commands, loading, options, outcomes, value_types
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable

    from bayplan.enforcing.planning import EnforcementSettings
    from bayplan.enforcing.preview import EnforcementPreview
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload, WorkloadKey

_ENFORCING = "Enforcement"


class Grace(msgspec.Struct, frozen=True):
    """How enforcement would be set."""

    affinity_grace: str
    anti_affinity_grace: str
    only_if_placeable: bool

    def settings(self) -> EnforcementSettings:
        from bayplan.enforcing.planning import EnforcementSettings

        return EnforcementSettings(
            affinity_grace=value_types.seconds(self.affinity_grace),
            anti_affinity_grace=value_types.seconds(self.anti_affinity_grace),
            only_if_placeable=self.only_if_placeable,
        )


GRACE = commands.OptionGroup(
    "grace",
    Grace,
    (
        commands.Option(
            "--affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="5m",
            show_default=True,
            heading=_ENFORCING,
            help="How long a pod may be without its partner.",
        ),
        commands.Option(
            "--anti-affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="1m",
            show_default=True,
            heading=_ENFORCING,
            help="How long pods may stand together that must not.",
        ),
        commands.Option(
            "--only-if-placeable",
            is_flag=True,
            heading=_ENFORCING,
            help="Spare whoever has no other place to go.",
        ),
    ),
)


@commands.command(
    "violations",
    summary="List the execution-time rules that are broken, by whom, and who would go for it.",
    examples=(
        "bayplan violations -f cluster.json",
        "kubectl get nodes,pods,namespaces,pdb -A -o json | bayplan violations -f -",
        "bayplan violations -f cluster.json --only-if-placeable -o wide",
        "bayplan violations -f fleet/",
    ),
    details=(
        "Rules are the terms of requiredDuringSchedulingRequiredDuringExecution. In a fleet, all required workload "
        "terms and groups are judged by where bindings stand. Who would go is what `bayplan run --enforce` would do "
        "after the grace time; here nothing is done. Exit code 0 if nothing is broken, 1 if something is."
    ),
    groups=(options.SOURCES, options.SCOPE, options.DECIDING, GRACE, options.CONSOLE),
    params=(options.output("table", "wide", "json", "yaml", "name"), options.EXIT_ZERO),
)
def violations(
    *,
    output: str,
    exit_zero: bool,
    sources: options.Sources,
    scope: options.Scope,
    deciding: options.Deciding,
    grace: Grace,
    console: Console,
) -> int:
    """Write the broken rules: 1 if there are any."""
    selector, rules, settings = scope.parsed_selector(), options.configured_rules(), grace.settings()
    found = loading.load(sources, scope, deciding, console)
    from bayplan.enforcing import preview
    from bayplan.reading.fleet import Fleet

    if isinstance(found, Fleet):
        whole = preview.preview_fleet(found.index)
    else:
        whole = preview.preview_pods(found.index, rules, settings, found.disruption_budgets)
    shown = _within(whole, found.index, lambda workload: scope.includes(workload, selector))
    acting = None if isinstance(found, Fleet) else settings
    console.answer(_written(shown, found.index, acting, output, console.table_width))
    _notes(shown, console)
    return outcomes.of(not shown.verdicts, exit_zero=exit_zero)


def _within(
    whole: EnforcementPreview, index: PlacementIndex, included: Callable[[Workload], bool]
) -> EnforcementPreview:
    """What somebody in scope has a part in."""

    def concerns(key: WorkloadKey) -> bool:
        record = index.records.get(key)
        return record is not None and included(record.workload)

    verdicts = [v for v in whole.verdicts if any(map(concerns, (v.violation.owner, *v.violation.peers)))]
    return msgspec.structs.replace(whole, verdicts=tuple(verdicts))


def _notes(shown: EnforcementPreview, console: Console) -> None:
    n_broken = len(shown.verdicts)
    if not n_broken:
        console.note("nothing is broken")
        return
    going = {outcome.victim for verdict in shown.verdicts for outcome in verdict.outcomes if not outcome.spared}
    console.note(f"{n_broken} broken {'rule' if n_broken == 1 else 'rules'}, {len(going)} would go")
    if not shown.exact:
        console.note("so many conflicts hang together that who goes was chosen step by step; fewer may do")


def _written(
    shown: EnforcementPreview,
    index: PlacementIndex,
    settings: EnforcementSettings | None,
    output: str,
    width: int | None,
) -> str:
    """`settings` are those of whoever would act; None where nobody does."""
    from bayplan.writing import tables, versioned, violation_report

    if output in ("json", "yaml"):
        return versioned.written(violation_report.document(shown, settings), output)
    if output == "name":
        return violation_report.names(shown, {key: record.workload for key, record in index.records.items()})
    if not shown.verdicts:
        return ""
    return tables.rendered(violation_report.table(shown, settings, wide=output == "wide"), width)
