"""`bayplan violations`: the execution-time rules that are violated, and the pods that enforcement would evict."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import msgspec

from bayplan.cli import commands, loading, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.writing.chosen_output import Arrangement

_ENFORCING = "Enforcement"


class GraceArguments(TypedDict):
    """The arguments of `violations`."""

    affinity_grace: float
    anti_affinity_grace: float
    only_if_placeable: bool
    grant: tuple[str, ...]


class GraceOptions(msgspec.Struct, frozen=True):
    """The settings of the enforcement that is previewed."""

    affinity_grace: str
    anti_affinity_grace: str
    only_if_placeable: bool
    grant: tuple[str, ...]

    def arguments(self) -> GraceArguments:
        """The same for the library."""
        return {
            "affinity_grace": value_types.seconds(self.affinity_grace),
            "anti_affinity_grace": value_types.seconds(self.anti_affinity_grace),
            "only_if_placeable": self.only_if_placeable,
            "grant": self.grant,
        }


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
            help="Evict a pod only if it fits on another node, or a workload from a cluster only if it fits on others.",
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
        "required workload affinity terms and groups are checked against the clusters of the bindings; those that are "
        "required during scheduling only are reported, and evict nothing. The evictions are those of `bayplan run "
        "--enforce` after the grace period; this command evicts nothing. Exit code 0 if there are no violations, 1 if "
        "there are."
    ),
    groups=(options.INPUT, options.SCOPE, options.DECISIONS, GRACE, options.ARRANGEMENT, options.CONSOLE),
    params=(
        options.output(
            "table",
            "wide",
            "json",
            "yaml",
            "name",
            options.HTML,
            options.CSV,
            options.JSONPATH,
            options.CUSTOM_COLUMNS,
        ),
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
    found = loading.load(sources, scope, decisions, console)
    answer = found.violations(**grace.arguments())
    width, headers, sort_by = console.table_width, arrangement.headers, arrangement.sort_by
    text = answer.to_text(output, width=width, headers=headers, sort_by=sort_by)
    console.answer(loading.signed(text, sources) if output == options.HTML else text)
    for line in answer.summary:
        console.note(line)
    return commands.exit_code(answer.ok, exit_zero=exit_zero)
