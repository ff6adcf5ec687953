"""What Bayplan answers to questions that the real schedulers are asked too, also to those with `steps`."""

import datetime as dt

import msgspec

from asking import admission_answer, engine_answer, fleet_engine_answer, preemption_engine_answer
from bayplan.controllers import pod_defaults
from bayplan.errors import InputError
from bayplan.kube_api import resources as api_resources
from bayplan.kube_api.decoding import Key
from bayplan.live.assembly import SchedulerAssembly, SchedulerSettings
from bayplan.mapping import pods
from bayplan.queueing import deciding
from bayplan.reading import questions, scheduler_config
from bayplan.rules import profiles
from bayplan.watching import resources
from bayplan.wire.pods import Pod
from bayplan.writing import answers

SCHEDULER = "default-scheduler"
ANSWERED = {
    "pods": engine_answer,
    "preemption": preemption_engine_answer,
    "fleet": fleet_engine_answer,
    "admission": admission_answer,
}


def answer(kind, question, as_placed_by=None):
    """
    The answer to one question; with `error` if Bayplan refuses it.

    In a cluster that changes, a pod is placed on its best node, or where another answer to the question has it.
    """
    try:
        if "steps" in question:
            return LivingCluster(question).answer((as_placed_by or {}).get("answers"))
        return ANSWERED[kind](question)
    except (InputError, msgspec.ValidationError) as refusal:
        return {"name": question["name"], "error": f"refused: {refusal}"}
    except Exception as bug:  # noqa: BLE001 (reported with its question, like any other difference)
        return {"name": question["name"], "error": f"a bug: {bug!r}"}


class LivingCluster:
    """The state of `bayplan run`: one index and one engine, told of every change as by watches."""

    def __init__(self, question):
        self.question = question
        options = msgspec.convert(question.get("options", {}), questions.QuestionOptions)
        semantics = questions.semantics_of(options)
        self.profile = scheduler_config.profile_of(options.config, SCHEDULER, semantics.kubernetes_version)
        settings = SchedulerSettings(identity="agree", election=None, semantics=semantics)
        rules = profiles.pod_rules(self.profile)
        now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        self.parts = SchedulerAssembly(None, {SCHEDULER: rules}, settings, clock=lambda: 0.0, wall=lambda: now)
        self.state, self.engine = self.parts.state, self.parts.engines[SCHEDULER]
        self.watched = {one.resource: one for one in resources.scheduling_resources(self.state)}
        for one in (*question["namespaces"], *question["nodes"], *question["objects"], *question["pods"]):
            self.apply(one)

    def answer(self, placed=None):
        given = []
        for step in self.question["steps"]:
            if "apply" in step:
                self.apply(step["apply"])
            elif "delete" in step:
                self.delete(step["delete"])
            else:
                decided = self.decide(step["decide"])
                best = (placed[len(given)] if placed else decided).get("best")
                if best:
                    written = step["decide"]
                    self.apply({**written, "spec": {**written["spec"], "nodeName": best[0]}})
                given.append(decided)
        return {"name": self.question["name"], "answers": given}

    def apply(self, written):
        one = self._watched(written)
        found = msgspec.convert(written, one.item_type)
        if isinstance(found, Pod):  # as an API server stores it
            found = msgspec.structs.replace(found, spec=pod_defaults.with_defaults(found.spec))
        one.put(found)

    def delete(self, written):
        meta = written["metadata"]
        self._watched(written).drop(Key(meta.get("namespace", ""), meta["name"]), meta.get("uid", ""))

    def _watched(self, written):
        return self.watched[api_resources.of_kind(written["kind"])]

    def decide(self, written):
        """The decision alone; a pod that fits is then placed on the first of its best nodes by name, as the oracle does."""
        pod = msgspec.convert(written, Pod)
        pod = msgspec.structs.replace(pod, spec=pod_defaults.with_defaults(pod.spec))
        workload = pods.waiting(pod, self.state.spread_context.current)
        decision = deciding.decide(workload, self.engine, self.state.queue.nominations.all())
        return answers.pod_answer(workload.name, decision, self.state.index)
