"""`bayplan decide`: one JSON line of input is one question, and one JSON line of output is its answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import click

from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.errors import InputError

_KINDS = ("pods", "preemption", "fleet", "admission")


def answers(lines: Iterable[bytes], answer: Callable[[bytes], Any]) -> Iterator[tuple[Any, int]]:
    """
    The answer to each line, and the exit code that it alone would give; the answer to a bad line is its error.

    A bug costs the answer to its own line and no other one.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found, code = answer(line), commands.EXIT_YES
        except InputError as error:
            message = "; ".join(str(fault) for fault in error.faults)
            found, code = {"line": number, "error": message}, commands.EXIT_BAD_INPUT
        except Exception as error:  # noqa: BLE001
            commands.report_bug()
            message = f"a bug in bayplan: {type(error).__name__}; standard error has the details"
            found, code = {"line": number, "error": message}, commands.EXIT_BUG
        yield found, code


@commands.command(
    "decide",
    summary=SUMMARIES["decide"],
    examples=("bayplan decide pods < questions.jsonl > answers.jsonl", "bayplan decide admission < objects.jsonl"),
    details=(
        "Every line of standard input is an independent question. Its answer is one line, in the same order. A line "
        'that is not a valid question is answered with {"line","error"}, the lines after it as usual, and the exit '
        "code is then 2. That a pod is unschedulable is a valid answer with exit code 0."
    ),
    groups=(options.CONSOLE,),
    params=(
        commands.Argument(
            "kind",
            type=click.Choice(_KINDS),
            explained=(
                "pods: the node for a pod. preemption: the node to nominate and the pods to evict. fleet: the clusters "
                "for a binding. admission: the causes for which an API server would reject an object. See "
                "docs/reference/machine-contract.md for the format of questions and answers."
            ),
        ),
    ),
)
def decide(kind: str, console: Console) -> int:
    """Answer standard input line by line; exit code 2 if a line is not a valid question."""
    out: BinaryIO = sys.stdout.buffer
    worst = commands.EXIT_YES
    from bayplan.library import decisions
    from bayplan.writing import versioned

    for given, code in answers(sys.stdin.buffer, decisions.ANSWERERS[kind]()):
        out.write(versioned.json_line(given))
        out.flush()
        worst = max(worst, code)
    if worst != commands.EXIT_YES:
        console.note("some lines are not valid questions", verbosity=1)
    return worst
