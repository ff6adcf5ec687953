"""Independent questions of scheduling, each with all that it needs: the machine contract, without a state."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import arguments

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
    from bayplan.rules import fleet_profile
    from bayplan.writing import answers

    rules = fleet_profile.fleet_rules()

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


def decide(kind: Literal["pods", "preemption", "fleet", "admission"], question: Mapping[str, Any]) -> dict[str, Any]:
    """
    The answer to one question of the machine contract, as `bayplan decide` gives it to a line of JSON.

    docs/reference/machine-contract.md has the fields of questions and answers. A question that is not valid is an
    InputError. Whoever asks about one cluster again and again is better served by `Cluster`.
    """
    arguments.check_choice("kind", kind, tuple(ANSWERERS))
    if not isinstance(question, Mapping):
        raise ArgumentError(f"expected a dictionary, got {type(question).__name__}", argument="question")
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_answerer(kind)(arguments.encoded(question))))
    return found


@functools.cache
def _answerer(kind: str) -> Answerer:
    return ANSWERERS[kind]()
