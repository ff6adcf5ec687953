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

Answerer = Callable[[bytes], Any]


def _pods() -> Answerer:
    from bayplan.engine.engine import Engine
    from bayplan.queueing import deciding
    from bayplan.reading import questions
    from bayplan.rules import profiles
    from bayplan.writing import answers

    def answer(line: bytes) -> Any:
        question: questions.PodQuestion = questions.decoded(line, questions.PodQuestion)
        situation = questions.pod_situation_of(question)
        engine = Engine(situation.index, profiles.pod_rules(situation.profile))
        decision = deciding.decide(situation.workload, engine, situation.nominated)
        return answers.pod_answer(question.name, decision, situation.index, pre_score_fault=situation.pre_score_fault)

    return answer


def _preemption() -> Answerer:
    from bayplan.engine.engine import Engine
    from bayplan.preempting import preemption
    from bayplan.reading import questions
    from bayplan.rules import profiles
    from bayplan.writing import answers

    def answer(line: bytes) -> Any:
        question: questions.PodQuestion = questions.decoded(line, questions.PodQuestion)
        asked = questions.preemption_situation_of(question)
        engine = Engine(asked.index, profiles.pod_rules(asked.profile))
        found = preemption.preempt(asked.workload, engine, asked.disruption_budgets, asked.nominated)
        return answers.preemption_answer(question.name, found, asked.index)

    return answer


def _fleet() -> Answerer:
    from bayplan import schedule_binding
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.reading import questions
    from bayplan.rules import profiles
    from bayplan.writing import answers

    rules = profiles.fleet_rules()

    def answer(line: bytes) -> Any:
        question: questions.FleetQuestion = questions.decoded(line, questions.FleetQuestion)
        situation = questions.fleet_situation_of(question)
        engine = FleetEngine(situation.index, rules)
        decision = schedule_binding.schedule(situation.workload, engine)
        return answers.fleet_answer(question.name, decision, situation.workload, engine)

    return answer


def _admission() -> Answerer:
    from bayplan.reading import questions
    from bayplan.validating import structure_faults

    def answer(line: bytes) -> Any:
        question: questions.AdmissionQuestion = structure_faults.decode(line, questions.AdmissionQuestion)
        return {"name": question.name, "causes": questions.admission_causes(question)}

    return answer


# By kind of question; each function imports what it needs when it is called.
ANSWERERS: dict[str, Callable[[], Answerer]] = {
    "pods": _pods,
    "preemption": _preemption,
    "fleet": _fleet,
    "admission": _admission,
}


def answers(lines: Iterable[bytes], answer: Answerer) -> Iterator[tuple[Any, int]]:
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
            type=click.Choice(list(ANSWERERS)),
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
    from bayplan.writing import versioned

    for given, code in answers(sys.stdin.buffer, ANSWERERS[kind]()):
        out.write(versioned.json_line(given))
        out.flush()
        worst = max(worst, code)
    if worst != commands.EXIT_YES:
        console.note("some lines are not valid questions", verbosity=1)
    return worst
