"""The engine's answers to questions of `decide`, and the parts of answers that tests compare."""

import msgspec

from bayplan import schedule_binding
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.engine import Engine
from bayplan.preempting import preemption
from bayplan.queueing import deciding
from bayplan.reading import questions
from bayplan.rules import fleet_profile, profiles
from bayplan.writing import answers


def engine_answer(question):
    """The answer of `bayplan decide pods`."""
    asked = msgspec.convert(question, questions.PodQuestion)
    situation = questions.pod_situation_of(asked)
    engine = Engine(situation.index, profiles.pod_rules(situation.profile))
    decision = deciding.decide(situation.workload, engine, situation.nominated)
    return answers.pod_answer(asked.name, decision, situation.index, pre_score_fault=situation.pre_score_fault)


def preemption_engine_answer(question):
    """The answer of `bayplan decide preemption`."""
    asked = msgspec.convert(question, questions.PodQuestion)
    situation = questions.preemption_situation_of(asked)
    engine = Engine(situation.index, profiles.pod_rules(situation.profile))
    found = preemption.preempt(situation.workload, engine, situation.disruption_budgets, situation.nominated)
    return answers.preemption_answer(asked.name, found, situation.index)


def fleet_engine_answer(question):
    """The answer of `bayplan decide fleet`."""
    asked = msgspec.convert(question, questions.FleetQuestion)
    situation = questions.fleet_situation_of(asked)
    engine = FleetEngine(situation.index, fleet_profile.fleet_rules())
    decision = schedule_binding.schedule(situation.workload, engine)
    return answers.fleet_answer(asked.name, decision, situation.workload, engine)


def admission_answer(question):
    """The answer of `bayplan decide admission`."""
    asked = msgspec.convert(question, questions.AdmissionQuestion)
    return {"name": asked.name, "causes": msgspec.to_builtins(questions.admission_causes(asked))}


def comparable(answer):
    """The parts that must agree: a score of 0 equals no score, reasons of one node have no order."""
    nodes = {
        name: (
            verdict.get("code"),
            verdict.get("plugin") or "",
            sorted(verdict.get("reasons") or ()),
            verdict.get("total"),
            {rule: score for rule, score in (verdict.get("scores") or {}).items() if score},
        )
        for name, verdict in answer["nodes"].items()
    }
    return {"nodes": nodes, "best": sorted(answer.get("best") or ()), "message": answer.get("message") or ""}


def comparable_fleet(answer):
    """The parts that must agree: clusters have no order, and no replicas equal 0 replicas."""
    clusters = {target["name"]: target.get("replicas") or 0 for target in answer.get("clusters") or ()}
    return clusters, answer.get("observedAffinityName") or "", answer.get("reason") or ""


def comparable_preemption(answer):
    """The parts that must agree: victims have no order."""
    return answer.get("nominated") or "", sorted(answer.get("victims") or ()), answer.get("message") or ""
