"""The options of `rebalance` that have its plan carried out, the question before it, and the doing."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import options, outcomes, value_types
from bayplan.cli.commands import Option, OptionGroup
from bayplan.cli.connecting import Connecting
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.enforcing.move_execution import MoveEvent, MoveSettings, MovesOutcome
    from bayplan.enforcing.rebalancing import Rebalancing
    from bayplan.live.moving import Mover
    from bayplan.live.pod_moves import PodMoves
    from bayplan.model.workloads import Workload
    from bayplan.reading.fleet import Fleet

_HEADING = "Carrying it out"
_FOR_MACHINES = ("json", "yaml")
_NAMED = 5  # pods that stay for want of a controller


class Applying(msgspec.Struct, frozen=True):
    """Whether the plan is carried out, and how evictions are held back."""

    apply: bool
    yes: bool
    at_once: int
    per_minute: int
    timeout: str

    def settings(self) -> MoveSettings:
        from bayplan.enforcing.move_execution import MoveSettings

        timeout = value_types.seconds(self.timeout)
        return MoveSettings(per_minute=self.per_minute, at_once=self.at_once, timeout=timeout)

    def check(self, sources: options.Sources, output: str) -> None:
        """Refuse what cannot be carried out, before anything is read."""
        if not self.apply:
            return
        self.settings()
        if sources.filename or not sources.cluster.is_given:
            raise click.UsageError("--apply acts on a live cluster alone: name it with --context, and give no files")
        if self.yes:
            return
        if output in _FOR_MACHINES:
            raise click.UsageError(f"--apply with -o {output} tells the plan with what came of it: give --yes")
        if sys.stdin is None or not sys.stdin.isatty():
            raise click.UsageError("--apply asks before it evicts, and there is no terminal to ask at: give --yes")


APPLYING = OptionGroup(
    "applying",
    Applying,
    (
        Option(
            "--apply",
            is_flag=True,
            heading=_HEADING,
            help="Evict the pods of the plan on the live cluster, one after another, planning anew before each.",
        ),
        Option("-y", "--yes", is_flag=True, heading=_HEADING, help="Do not ask before."),
        Option(
            "--at-once",
            type=click.IntRange(min=1),
            default=1,
            show_default=True,
            metavar="N",
            heading=_HEADING,
            help="Pods that may be on their way at once: evicted, and not yet replaced on a node.",
        ),
        Option(
            "--per-minute",
            type=click.IntRange(min=1),
            default=30,
            show_default=True,
            metavar="N",
            heading=_HEADING,
            help="Evictions a minute at most.",
        ),
        Option(
            "--timeout",
            metavar="TIME",
            type=value_types.Duration(),
            default="5m",
            show_default=True,
            heading=_HEADING,
            help="Stop if a replacement has no node, or a disruption budget forbids all that is left, for this time.",
        ),
    ),
)


class ApplyRequest(msgspec.Struct, frozen=True):
    """How much may be moved, and in which form the answer is wanted."""

    max_moves: int
    movable: Callable[[Workload], bool]
    output: str
    exit_zero: bool

    @property
    def for_machines(self) -> bool:
        return self.output in _FOR_MACHINES


def carry_out(
    asked: ApplyRequest,
    applying: Applying,
    look: Callable[[Console], PodMoves | Fleet],
    cluster: Connecting,
    console: Console,
) -> int:
    """Plan, ask, and make the moves, telling each step: 1 if something is left to gain."""
    from bayplan.writing import moves_report, rebalance_report, versioned

    view = _pods_of(look(console))
    plan = _plan(view, asked, console)
    if not asked.for_machines or not plan.moves:
        console.answer(rebalance_report.written(plan, view.cluster.index, asked.output, console.table_width))
    console.note(rebalance_report.summary(plan))
    if not plan.moves:
        return outcomes.YES
    if not (applying.yes or _agreed(len(plan.moves))):
        console.note("nothing was moved")
        return outcomes.of(False, exit_zero=asked.exit_zero)
    unheard = msgspec.structs.replace(console, verbosity=-1)  # what there is to say about the input was said once
    moving = _moves(cluster, plan, view, lambda: _pods_of(look(unheard)), settings=applying.settings(), console=console)
    outcome = asyncio.run(moving)
    if asked.for_machines:
        console.answer(versioned.written(moves_report.document(outcome), asked.output))
    if outcome.interrupted:
        return outcomes.INTERRUPTED
    return outcomes.of(outcome.is_complete, exit_zero=asked.exit_zero)


def _pods_of(found: PodMoves | Fleet) -> PodMoves:
    from bayplan.reading.fleet import Fleet

    if isinstance(found, Fleet):
        raise click.UsageError("--apply moves pods between nodes: acting on bindings comes with the live fleet")
    return found


def _plan(view: PodMoves, asked: ApplyRequest, console: Console) -> Rebalancing:
    """Of pods that come back; those that would gain and do not are named."""
    from bayplan.enforcing.rebalancing import DisruptionLimits

    orphans = view.orphans(asked.movable)
    if orphans:
        named = ", ".join(orphans[:_NAMED]) + (" …" if len(orphans) > _NAMED else "")
        whose = "1 pod that has" if len(orphans) == 1 else f"{len(orphans)} pods that have"
        console.note(f"{whose} no controller stay, as nobody would make them again: {named}")

    def movable(workload: Workload) -> bool:
        return view.is_recreated(workload.key) and asked.movable(workload)

    return view.plan(DisruptionLimits(max_moves=asked.max_moves, movable=movable, budgets=view.budgets))


def _agreed(n_moves: int) -> bool:
    return click.confirm("Evict this pod?" if n_moves == 1 else f"Evict these {n_moves} pods?", err=True)


async def _moves(
    cluster: Connecting,
    plan: Rebalancing,
    view: PodMoves,
    look: Callable[[], PodMoves],
    *,
    settings: MoveSettings,
    console: Console,
) -> MovesOutcome:
    """Make the moves; what came of them is told even if it ends in an error."""
    from bayplan.live.moving import Mover
    from bayplan.writing import moves_report

    def tell(happening: MoveEvent) -> None:
        console.note(moves_report.line(happening))

    async with cluster.open() as connection:
        mover = Mover(
            connection, plan, view, read_cluster=look, report=tell, settings=settings, on_trouble=console.warning
        )
        with _interruptible(mover):
            try:
                return await mover.run()
            finally:
                console.note(moves_report.summary(mover.outcome))


@contextlib.contextmanager
def _interruptible(mover: Mover) -> Iterator[None]:
    """The first interrupt ends it in good order, the second at once."""
    loop = asyncio.get_running_loop()
    signs = (signal.SIGINT, signal.SIGTERM)

    def interrupt() -> None:
        for sign in signs:
            loop.remove_signal_handler(sign)
        mover.interrupt.set()

    for sign in signs:
        loop.add_signal_handler(sign, interrupt)
    try:
        yield
    finally:
        for sign in signs:
            loop.remove_signal_handler(sign)
