"""`bayplan explain`: the verdict of every rule on every target for one workload, and the changes that would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from bayplan.cli import commands, fix_manifests, loading, options, watching
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.cli.what_if_options import WHAT_IF, WhatIfOptions

if TYPE_CHECKING:
    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.library.cluster import Cluster
    from bayplan.library.explanation import Explanation
    from bayplan.library.fleet import Fleet


def _complete_workload(ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
    from bayplan.cli import name_completion

    return name_completion.complete_workload(ctx, param, typed)


@commands.command(
    "explain",
    summary=SUMMARIES["explain"],
    examples=(
        "bayplan explain pod/web-4 -n shop -f cluster.yaml",
        "bayplan explain deploy/web --state cluster.json -f web.yaml",
        "bayplan explain pod/web-4 -f cluster.json -o json",
        "bayplan explain deploy/web -f cluster.json --apply-fix 1 > web.yaml",
        "bayplan explain deploy/web --state cluster.json --lose node/worker-1",
        "bayplan explain deployment/shop -f fleet/",
    ),
    details=(
        "Workloads that are before it in the scheduling queue are placed first, as `place` does. A running pod is "
        "explained as if it were scheduled again. For a controller, the first of its pods that is unschedulable is "
        "explained. Exit code 0 if the workload fits or would preempt others, 1 if it is unschedulable."
    ),
    groups=(options.INPUT, options.SCOPE, options.DECISIONS, WHAT_IF, options.CONSOLE),
    params=(
        commands.Argument(
            "workload",
            metavar="KIND/NAME",
            nargs=-1,
            required=True,
            shell_complete=_complete_workload,
            explained="The workload to explain, also as KIND NAME or KIND.GROUP/NAME. NAME or NAMESPACE/NAME is a pod.",
        ),
        commands.Option(
            "--all-targets", "--all", is_flag=True, help="Show every node and every peer instead of a summary."
        ),
        commands.Option("--alone", is_flag=True, help="Ignore the other pending workloads."),
        commands.Option(
            "-w",
            "--watch",
            is_flag=True,
            help="Explain again whenever the answer changes, until interrupted: files and a live cluster are watched.",
        ),
        fix_manifests.APPLY_FIX,
        options.NO_PREEMPTION,
        options.output("text", "json", "yaml", options.HTML, options.CSV, options.JSONPATH, options.CUSTOM_COLUMNS),
        options.EXIT_ZERO,
        options.HPA,
    ),
)
def explain(
    *,
    workload: tuple[str, ...],
    all_targets: bool,
    alone: bool,
    watch: bool,
    apply_fix: int | None,
    no_preemption: bool,
    output: str,
    exit_zero: bool,
    hpa: AssumedLoad,
    sources: options.InputOptions,
    scope: options.ScopeOptions,
    decisions: options.DecisionOptions,
    what_if: WhatIfOptions,
    console: Console,
) -> int:
    """Write the explanation; exit code 1 if the workload is unschedulable."""
    from bayplan.library import workload_names

    asked = written_as_one(workload)
    workload_names.parse(asked)  # reports a bad name before any input is read
    sources.check()

    def answer(state: Cluster | Fleet) -> Explanation:
        from bayplan.library.fleet import Fleet

        what_if.check(is_fleet=isinstance(state, Fleet))
        with loading.in_progress(state, console) as found:
            if not isinstance(found, Fleet):
                return found.explain(asked, alone=alone, preempt=not no_preemption)
            return found.explain(asked, alone=alone)

    shown = "all" if output == "text" and all_targets else output
    if watch:
        if apply_fix is not None:
            raise click.UsageError("--watch and --apply-fix exclude each other")
        watched = loading.watched(sources, scope, decisions, console, assumed_load=hpa, what_if=what_if)
        return watching.show(watched, scope.scope(), answer, shown, console)
    is_asked_once = "-" not in (*sources.filename, *sources.state)  # manifests are looked up in it again
    loaded = loading.load(
        sources, scope, decisions, console, assumed_load=hpa, what_if=what_if, is_asked_once=is_asked_once
    )
    explained = answer(loaded)
    for note in explained.notes[len(loaded.notes) :]:  # those of the input are printed
        console.note(note)
    loading.warn(explained.warnings, console)
    if apply_fix is not None:
        fix_manifests.write_changed(apply_fix, explained, output, console)
        return commands.EXIT_YES
    text = explained.to_text(shown, width=console.table_width)
    console.answer(loading.signed(text, sources) if shown == options.HTML else text)
    return commands.exit_code(explained.fits, exit_zero=exit_zero)


def written_as_one(words: Sequence[str]) -> str:
    """`KIND NAME` as `KIND/NAME`; raises a usage error for more than one workload."""
    if len(words) > 2 or (len(words) == 2 and "/" in "".join(words)):
        raise click.BadParameter(
            f"expected one workload as KIND/NAME or KIND NAME, got {' '.join(words)!r}", param_hint="KIND/NAME"
        )
    return "/".join(words)
