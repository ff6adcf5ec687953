"""`bayplan bench`: decisions per second. Parsing is not timed; interning, evaluating and placing are."""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli import commands, options, outcomes
from bayplan.cli.console import Console
from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from bayplan.model.workloads import Workload
    from bayplan.rules.rule import Rule


class Run(msgspec.Struct, frozen=True):
    """One pass over everything that waits: workload and target of each, and the seconds it took."""

    placements: list[tuple[str, str]]
    seconds: float

    def result(self) -> dict[str, Any]:
        """The last line of the output."""
        n_placed = sum(bool(target) for _, target in self.placements)
        per_second = len(self.placements) / self.seconds if self.seconds else 0.0
        return {
            "ok": n_placed,
            "fail": len(self.placements) - n_placed,
            "seconds": round(self.seconds, 6),
            "pods_per_s": round(per_second, 1),
        }


def _pods(content: bytes, rules: tuple[Rule, ...]) -> Callable[[], Run]:
    """Reads the input once; each call fills a fresh index and places everything anew."""
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.reading import nodes, pods
    from bayplan.wire.nodes import Node
    from bayplan.wire.pods import Pod

    class Input(msgspec.Struct):
        nodes: list[Node]
        pods: list[Pod]
        init: list[Pod] = []

    given = msgspec.json.decode(content, type=Input)
    targets = [nodes.target_of(node) for node in given.nodes]
    running = [(pods.workload_of(pod), pod.spec.node_name) for pod in given.init]
    waiting = [pods.workload_of(pod) for pod in given.pods]
    del given

    def run() -> Run:
        index = PlacementIndex()
        for target in targets:
            index.add_target(target)
        for workload, name in running:
            index.add(workload, name)
        return _timed(waiting, index, rules)

    return run


def _timed(waiting: list[Workload], index: Any, rules: tuple[Rule, ...]) -> Run:
    from bayplan import schedule

    placements: list[tuple[str, str]] = []
    # The collector would walk the whole index again and again for garbage that is not there.
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        start = time.perf_counter()
        for workload in waiting:
            decision = schedule.schedule(workload, index, rules)
            target = index.slots.at(decision.slot).name if decision.placed else ""
            if target:
                index.add(workload, target)
            placements.append((workload.key, target))
        seconds = time.perf_counter() - start
    finally:
        gc.enable()
        gc.unfreeze()
    return Run(placements, seconds)


# What can be measured; each entry imports what it needs when it is asked for.
BENCHES: dict[str, Callable[[bytes, tuple[Rule, ...]], Callable[[], Run]]] = {"pods": _pods}


@commands.command(
    "bench",
    summary="Measure decisions per second on a benchmark input.",
    examples=("bayplan bench pods mixed.json", "bayplan bench pods mixed.json --repeat 5 --placements out.jsonl"),
    details=(
        'The input is one JSON object {"nodes","init","pods"}; init pods have a nodeName. The pods are placed one '
        "after another, each seeing those before it. The last line is the result; of several runs, the median."
    ),
    groups=(options.CONSOLE,),
    params=(
        click.Argument(["kind"], type=click.Choice(list(BENCHES))),
        click.Argument(["file"], type=click.Path(allow_dash=True)),
        commands.Option("--placements", type=click.Path(), metavar="OUT", help="Write every placement as JSON lines."),
        commands.Option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Number of runs."),
    ),
)
def bench(kind: str, file: str, placements: str | None, repeat: int, console: Console) -> int:
    """Write the result as the last line."""
    rules = options.configured_rules()
    try:
        run = BENCHES[kind](_content(file), rules)
    except msgspec.MsgspecError as error:
        raise InputError(Fault(str(error), file=file)) from None
    runs = []
    for _ in range(repeat):
        runs.append(run())
        console.detail(f"{runs[-1].seconds:.3f} s")
    if placements is not None:
        _write_placements(placements, runs[0])
    middle = statistics.median_low(one.seconds for one in runs)
    result = next(one for one in runs if one.seconds == middle).result()
    console.answer(msgspec.json.encode(result).decode() + "\n")
    return outcomes.YES


def _content(file: str) -> bytes:
    try:
        if file == "-":
            return sys.stdin.buffer.read()
        with open(file, "rb") as opened:  # noqa: PTH123
            return opened.read()
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=file)) from None


def _write_placements(path: str, run: Run) -> None:
    lines = (msgspec.json.encode({"pod": key, "node": target}) + b"\n" for key, target in run.placements)
    try:
        with open(path, "wb") as out:  # noqa: PTH123
            out.writelines(lines)
    except OSError as error:
        raise InputError(Fault(f"cannot be written: {error.strerror or error}", file=path)) from None
