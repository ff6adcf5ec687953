"""`bayplan rebalance`: plan the moves that improve soft rules, and on request evict the pods of the plan."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, loading, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.commands import Option, OptionGroup
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.enforcing.move_execution import MoveEvent, MoveSettings, MovesOutcome
    from bayplan.enforcing.rebalancing import Rebalancing
    from bayplan.live.moving import Mover
    from bayplan.live.pod_moves import PodMoves
    from bayplan.model.workloads import Workload, WorkloadKey

_HEADING = "Apply"
_DOCUMENT_FORMATS = ("json", "yaml")
_MAX_NAMED_PODS = 5  # in the note on pods without a controller


class ApplyOptions(msgspec.Struct, frozen=True):
    """Whether the plan is carried out, and how fast."""

    apply: bool
    yes: bool
    at_once: int
    per_minute: int
    timeout: str

    def settings(self) -> MoveSettings:
        from bayplan.enforcing.move_execution import MoveSettings

        timeout = value_types.seconds(self.timeout)
        return MoveSettings(per_minute=self.per_minute, at_once=self.at_once, timeout=timeout)

    def check(self, sources: options.InputOptions, output: str) -> None:
        """Raise a usage error, before any input is read, if the plan cannot be carried out."""
        if not self.apply:
            return
        self.settings()
        if output == options.HTML:
            raise click.UsageError("-o html is a report on a plan: use --apply without it")
        if sources.filename or sources.state or not sources.names_cluster:
            raise click.UsageError("--apply needs a live cluster and no files: use --context without -f")
        if self.yes:
            return
        if output in _DOCUMENT_FORMATS:
            raise click.UsageError(f"--apply with -o {output} cannot ask for confirmation: use --yes")
        if sys.stdin is None or not sys.stdin.isatty():
            raise click.UsageError("--apply asks for confirmation, and there is no terminal: use --yes")


APPLY = OptionGroup(
    "applying",
    ApplyOptions,
    (
        Option(
            "--apply",
            is_flag=True,
            heading=_HEADING,
            help="Evict the pods of the plan on the live cluster, one after another. The plan is updated before each "
            "eviction.",
        ),
        Option("-y", "--yes", is_flag=True, heading=_HEADING, help="Do not ask for confirmation."),
        Option(
            "--at-once",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            metavar="N",
            heading=_HEADING,
            help="Maximum number of pods that are evicted and whose replacement has no node yet.",
        ),
        Option(
            "--per-minute",
            type=click.IntRange(min=1),
            default=30,
            show_default=True,
            metavar="N",
            heading=_HEADING,
            help="Maximum number of evictions per minute.",
        ),
        Option(
            "--timeout",
            metavar="TIME",
            type=value_types.Duration(),
            default="5m",
            show_default=True,
            heading=_HEADING,
            help="Stop if a replacement has no node, or disruption budgets block all remaining moves, for this time.",
        ),
    ),
)


@commands.command(
    "rebalance",
    summary=SUMMARIES["rebalance"],
    examples=(
        "bayplan rebalance -f cluster.json",
        "bayplan rebalance -f cluster.json --max-moves 2 -n shop",
        "bayplan rebalance -f fleet/ -o json",
        "bayplan rebalance --context prod -n shop --apply",
    ),
    details=(
        "Nothing moves by itself when a node or a cluster comes back. A move evicts a pod, and the scheduler places "
        "its replacement; the plan shows on which node. The gain is measured in points: the weights of preferred "
        "terms, and 100 for each pod that exceeds a soft spread constraint, each PreferNoSchedule taint that is not "
        "tolerated and, in a fleet, each position further down the list of affinity groups or tiers. "
        "PodDisruptionBudgets are respected. With --apply, each move starts after the replacement of the previous pod "
        "has a node, and the plan is updated first. Pods without a controller are not evicted, because nothing would "
        "recreate them. An interrupt stops it between two moves. Exit code 0 if no move gains anything, 1 if one does."
    ),
    groups=(options.INPUT, options.SCOPE, options.DECISIONS, APPLY, options.CONSOLE),
    params=(
        commands.Option(
            "--max-moves",
            type=click.IntRange(min=1),
            default=5,
            show_default=True,
            metavar="N",
            help="Maximum number of workloads that the plan moves.",
        ),
        commands.Option(
            "--grant",
            multiple=True,
            metavar="NAMESPACE",
            type=value_types.Name(),
            help="Preferred terms of this namespace may move pods of every namespace. May be repeated. Other terms "
            "count for pods of another namespace only if its label bayplan.io/evictable-by names theirs.",
        ),
        options.output("table", "wide", "json", "yaml", "name", options.HTML),
        options.EXIT_ZERO,
    ),
)
def rebalance(
    *,
    max_moves: int,
    grant: tuple[str, ...],
    output: str,
    exit_zero: bool,
    sources: options.InputOptions,
    scope: options.ScopeOptions,
    decisions: options.DecisionOptions,
    applying: ApplyOptions,
    console: Console,
) -> int:
    """Write the plan, and carry it out with --apply; exit code 1 if a move gains something."""
    applying.check(sources, output)
    if applying.apply:
        movable, rules = scope.predicate(), options.configured_rules()

        def load(to: Console) -> PodMoves:
            """The cluster as it is now."""
            from bayplan.live.pod_moves import PodMoves
            from bayplan.reading.cluster import LoadedCluster

            found = loading.read(sources, scope, decisions, to)
            if not isinstance(found, LoadedCluster):
                raise click.UsageError("--apply moves pods between nodes; it is not supported for fleets")
            return PodMoves(found, rules, frozenset(grant))

        return apply(ApplyRequest(max_moves, movable, output, exit_zero), applying, load, sources, console)
    state = loading.load(sources, scope, decisions, console)
    from bayplan.library.cluster import Cluster

    if isinstance(state, Cluster):
        plan = state.rebalance(max_moves=max_moves, grant=grant)
    else:
        plan = state.rebalance(max_moves=max_moves)
    text = plan.to_text(output, width=console.table_width)
    console.answer(loading.signed(text, sources) if output == options.HTML else text)
    for line in plan.summary:
        console.note(line)
    return commands.exit_code(plan.ok, exit_zero=exit_zero)


class ApplyRequest(msgspec.Struct, frozen=True):
    """The limits of the plan, and the form of the answer."""

    max_moves: int
    movable: Callable[[Workload], bool]
    output: str
    exit_zero: bool


def apply(
    request: ApplyRequest,
    applying: ApplyOptions,
    load: Callable[[Console], PodMoves],
    cluster: options.InputOptions,
    console: Console,
) -> int:
    """Plan, ask for confirmation, and make the moves, reporting each step; exit code 1 if a move is left."""
    from bayplan.writing import rebalance_report, versioned

    view = load(console)
    plan = _plan(view, request, console)
    is_document = request.output in _DOCUMENT_FORMATS
    if not is_document or not plan.moves:
        console.answer(rebalance_report.written(plan, _moved(plan, view), request.output, console.table_width))
    console.note(rebalance_report.summary(plan))
    if not plan.moves:
        return commands.EXIT_YES
    question = "Evict this pod?" if len(plan.moves) == 1 else f"Evict these {len(plan.moves)} pods?"
    if not (applying.yes or click.confirm(question, err=True)):
        console.note("nothing was moved")
        return commands.exit_code(False, exit_zero=request.exit_zero)
    quiet = msgspec.structs.replace(console, verbosity=-1)  # notes on the input were printed by the first load
    moving = _move(cluster, plan, view, lambda: load(quiet), settings=applying.settings(), console=console)
    import asyncio

    outcome = asyncio.run(moving)
    if is_document:
        console.answer(versioned.written(rebalance_report.applied_document(outcome), request.output))
    if outcome.interrupted:
        return commands.EXIT_INTERRUPTED
    return commands.exit_code(outcome.is_complete, exit_zero=request.exit_zero)


def _moved(plan: Rebalancing, view: PodMoves) -> dict[WorkloadKey, Workload]:
    records = view.cluster.index.records
    return {one.workload: records[one.workload].workload for one in plan.moves}


def _plan(view: PodMoves, request: ApplyRequest, console: Console) -> Rebalancing:
    """The plan for pods with a controller; pods without one that would gain are named in a note."""
    from bayplan.enforcing.rebalancing import DisruptionLimits

    orphans = view.orphans(request.movable)
    if orphans:
        named = ", ".join(orphans[:_MAX_NAMED_PODS]) + (" …" if len(orphans) > _MAX_NAMED_PODS else "")
        if len(orphans) == 1:
            console.note(f"1 pod has no controller that would recreate it, and is not evicted: {named}")
        else:
            n_pods = len(orphans)
            console.note(f"{n_pods} pods have no controller that would recreate them, and are not evicted: {named}")

    def movable(workload: Workload) -> bool:
        return view.is_recreated(workload.key) and request.movable(workload)

    return view.plan(DisruptionLimits(max_moves=request.max_moves, movable=movable, budgets=view.budgets))


async def _move(
    cluster: options.InputOptions,
    plan: Rebalancing,
    view: PodMoves,
    load: Callable[[], PodMoves],
    *,
    settings: MoveSettings,
    console: Console,
) -> MovesOutcome:
    """Make the moves; the summary is printed even if an error ends them."""
    from bayplan.live import moving
    from bayplan.writing import rebalance_report

    def report(event: MoveEvent) -> None:
        console.note(rebalance_report.event_line(event))

    async with cluster.open() as connection:
        tools = moving.tools_of(connection, console.warning)
        mover = moving.Mover(tools, plan, view, read_cluster=load, report=report, settings=settings)
        with _interruptible(mover):
            try:
                return await mover.run()
            finally:
                console.note(rebalance_report.applied_summary(mover.outcome))


@contextlib.contextmanager
def _interruptible(mover: Mover) -> Iterator[None]:
    """Inside the block the first interrupt ends the moves after the current one, the second at once."""
    import asyncio

    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def interrupt() -> None:
        for one in signals:
            loop.remove_signal_handler(one)
        mover.interrupt.set()

    for one in signals:
        loop.add_signal_handler(one, interrupt)
    try:
        yield
    finally:
        for one in signals:
            loop.remove_signal_handler(one)
