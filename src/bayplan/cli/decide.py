"""`bayplan decide`: questions as JSON lines in, answers as JSON lines out, each line on its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

import click
import msgspec

from bayplan.cli import commands, options, outcomes
from bayplan.cli.console import Console
from bayplan.errors import InputError

Answerer = Callable[[bytes], Any]


def _pods() -> Answerer:
    from bayplan import schedule_pod
    from bayplan.reading import questions
    from bayplan.rules import profiles
    from bayplan.writing import answers

    decode = msgspec.json.Decoder(questions.PodQuestion).decode

    def answer(line: bytes) -> Any:
        question = decode(line)
        situation = questions.situation_of(question)
        rules = profiles.pod_rules(situation.profile)
        decision = schedule_pod.schedule(situation.workload, situation.index, rules)
        return answers.pod_answer(question.name, decision, situation.index)

    return answer


def _preemption() -> Answerer:
    from bayplan.preempting import preemption
    from bayplan.reading import questions
    from bayplan.rules import profiles
    from bayplan.writing import answers

    decode = msgspec.json.Decoder(questions.PodQuestion).decode

    def answer(line: bytes) -> Any:
        question = decode(line)
        asked = questions.preemption_situation_of(question)
        rules = profiles.pod_rules(asked.profile)
        found = preemption.preempt(asked.workload, asked.index, rules, asked.disruption_budgets, asked.nominated)
        return answers.preemption_answer(question.name, found)

    return answer


def _fleet() -> Answerer:
    from bayplan import schedule_binding
    from bayplan.reading import questions
    from bayplan.rules import profiles
    from bayplan.writing import answers

    decode, rules = msgspec.json.Decoder(questions.FleetQuestion).decode, profiles.fleet_rules()

    def answer(line: bytes) -> Any:
        question = decode(line)
        situation = questions.fleet_situation_of(question)
        decision = schedule_binding.schedule(situation.workload, situation.index, rules)
        return answers.fleet_answer(question.name, decision, situation.workload, situation.index)

    return answer


def _admission() -> Answerer:
    from bayplan.reading import admission_questions

    decode = msgspec.json.Decoder(admission_questions.AdmissionQuestion).decode

    def answer(line: bytes) -> Any:
        question = decode(line)
        return {"name": question.name, "causes": admission_questions.causes(question)}

    return answer


# What can be asked; each entry imports what it needs when it is asked for.
ANSWERERS: dict[str, Callable[[], Answerer]] = {
    "pods": _pods,
    "preemption": _preemption,
    "fleet": _fleet,
    "admission": _admission,
}


def answers(lines: Iterable[bytes], answer: Answerer) -> Iterator[tuple[Any, bool]]:
    """Each line's answer and whether the line was a question; what is wrong with a line is its answer."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield answer(line), True
        except InputError as error:
            yield {"line": number, "error": "; ".join(str(fault) for fault in error.faults)}, False
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            yield {"line": number, "error": str(error)}, False
        except RecursionError:
            yield {"line": number, "error": "the JSON is nested too deeply"}, False


@commands.command(
    "decide",
    summary="Answer questions as a scheduler would: JSON lines in, JSON lines out.",
    examples=("bayplan decide pods < questions.jsonl > answers.jsonl", "bayplan decide admission < objects.jsonl"),
    details=(
        "Every line is one independent question and gets one line, in order. A line that is no question is answered "
        'with {"line","error"} and makes the exit code 2; that a pod does not fit is an answer, and the exit code 0.'
    ),
    groups=(options.CONSOLE,),
    params=(
        commands.Argument(
            "kind",
            type=click.Choice(list(ANSWERERS)),
            explained=(
                "pods: which node a pod gets. preemption: who would have to go for it. fleet: which clusters a binding "
                "gets. admission: what an API server would say of an object. docs/reference/machine-contract.md has "
                "the form of questions and answers."
            ),
        ),
    ),
)
def decide(kind: str, console: Console) -> int:
    """Answer standard input line by line: 2 if any line was no question."""
    out: BinaryIO = sys.stdout.buffer
    all_good = True
    encoder = msgspec.json.Encoder()
    for given, good in answers(sys.stdin.buffer, ANSWERERS[kind]()):
        out.write(encoder.encode(given) + b"\n")
        out.flush()
        all_good = all_good and good
    if not all_good:
        console.detail("some lines were no questions")
    return outcomes.YES if all_good else outcomes.BAD_INPUT
