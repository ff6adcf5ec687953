"""`bayplan bench`: decisions per second."""

from __future__ import annotations

import pathlib
import statistics
import sys
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from bayplan.cli.benchmarks import BenchmarkRun

KINDS = ("pods", "fleet")


@commands.command(
    "bench",
    summary=SUMMARIES["bench"],
    examples=(
        "bayplan bench pods mixed.json",
        "bayplan bench pods mixed.json --repeat 5 --placements out.jsonl",
        "bayplan bench fleet fleet.json",
    ),
    details=(
        'The input is one JSON object: {"nodes","init","pods"}, where init pods have a nodeName, or for a fleet '
        '{"clusters","bindings","pending"}, where bindings have clusters. The pods or pending bindings are placed one '
        "after another. The last line of the output is the result; with --repeat, the median of the runs."
    ),
    groups=(options.CONSOLE,),
    params=(
        commands.Argument("kind", type=click.Choice(KINDS), explained="Place pods on nodes, or bindings on clusters."),
        commands.Argument("file", type=click.Path(allow_dash=True), explained="The input file; - for standard input."),
        commands.Option(
            "--placements", type=click.Path(), metavar="OUT", help="Write every placement to this file as JSON lines."
        ),
        commands.Option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Number of runs."),
    ),
)
def bench(kind: str, file: str, placements: str | None, repeat: int, console: Console) -> int:
    """Write the result as the last line."""
    from bayplan.cli import benchmarks

    try:
        run = benchmarks.BENCHMARKS[kind](_content(file), options.configured_rules())
    except InputError as error:
        faults = [fault if fault.file else msgspec.structs.replace(fault, file=file) for fault in error.faults]
        raise InputError(faults) from None
    runs = []
    for _ in range(repeat):
        runs.append(run())
        console.note(f"{runs[-1].seconds:.3f} s", verbosity=1)
    if placements is not None:
        _write_placements(placements, runs[0])
    middle = statistics.median_low(one.seconds for one in runs)
    result = next(one for one in runs if one.seconds == middle).result()
    console.answer(msgspec.json.encode(result).decode() + "\n")
    return commands.EXIT_YES


def _content(file: str) -> bytes:
    try:
        content = sys.stdin.buffer.read() if file == "-" else pathlib.Path(file).read_bytes()
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=file)) from None
    if not content.strip():
        raise InputError(Fault("the file is empty", file=file))
    return content


def _write_placements(path: str, run: BenchmarkRun) -> None:
    lines = (msgspec.json.encode(line) + b"\n" for line in run.lines())
    try:
        pathlib.Path(path).write_bytes(b"".join(lines))
    except OSError as error:
        raise InputError(Fault(f"cannot be written: {error.strerror or error}", file=path)) from None
