"""A fleet that changes at random, kept twice: in one index with all changes applied, and as plain objects."""

import random

import msgspec

from bayplan import schedule_binding
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.model.semantics import for_fleets
from bayplan.rules import fleet_profile
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.writing import answers
from reference import strategies
from reference.fleet import strategies as fleets

NAMES = [f"m{i}" for i in range(8)]


class ChangingFleet:
    """`step` makes one random change; `answers` are those of the changed index, `fresh_answers` of one built from scratch."""

    def __init__(self, seed, semantics, n_pending=5):
        self.chance = random.Random(seed)
        self.dice = strategies.Dice(self.chance.randrange)
        self.semantics = semantics
        self.how = bindings.BindingContext(semantics)
        self.index = PlacementIndex(for_fleets(semantics), lost_targets_count=True)
        self.rules = fleet_profile.fleet_rules()
        self.engine = FleetEngine(self.index, self.rules)  # one over all changes
        self.written, self.placed = {}, {}
        self.serial = 0
        for name in NAMES[:5]:
            self.add_cluster(name)
        self.pending = [self._drawn(fleets.pending, f"pending-{i}") for i in range(n_pending)]

    # Answers

    def answers(self, engine=None):
        return [self._answer(workload, engine or self.engine) for workload in self.pending]

    def _answer(self, workload, engine):
        decision = schedule_binding.schedule(workload, engine)
        answer = answers.fleet_answer(workload.name, decision, workload, engine)
        answer["clusters"].sort(key=lambda share: share["name"])
        return answer

    def fresh_answers(self):
        index = PlacementIndex(for_fleets(self.semantics), lost_targets_count=True)
        for name in self._shuffled(self.written):
            index.add_target(self._target(name))
        for key in self._shuffled(self.placed):
            index.add_shares(*self.placed[key])
        return self.answers(FleetEngine(index, self.rules))

    # Changes

    def step(self):
        changes = [self.add, self.add, self.remove, self.report, self.report, self.report, self.rewrite]
        self.chance.choice([*changes, self.add_or_remove_cluster])()

    def add(self):
        self.serial += 1
        workload = self._drawn(fleets.placed, f"w{self.serial}")
        shares = [(name, self.chance.randrange(3)) for name in self.chance.sample(NAMES, self.chance.choice([1, 1, 2]))]
        self.placed[workload.key] = (workload, tuple(shares))
        self.index.add_shares(workload, shares)

    def remove(self):
        if self.placed:
            key = self.chance.choice(list(self.placed))
            del self.placed[key]
            self.index.remove(key)

    def report(self):
        """A cluster reports another capacity and is otherwise unchanged."""
        written = self.written[self.chance.choice(list(self.written))]
        summary = fleets.summary(self.dice)
        if "allocatableModelings" in (written["status"].get("resourceSummary") or {}):
            fleets.models(self.dice, written["spec"], summary)
        written["status"]["resourceSummary"] = summary
        self.index.update_target(self._target(written["metadata"]["name"]))

    def rewrite(self):
        name = self.chance.choice(list(self.written))
        self.written[name] = fleets.cluster(self.dice, name)
        self.index.update_target(self._target(name))

    def add_or_remove_cluster(self):
        name = self.chance.choice(NAMES)
        if name not in self.written:
            self.add_cluster(name)
        elif len(self.written) > 2:
            del self.written[name]
            self.index.remove_target(name)

    def add_cluster(self, name):
        self.written[name] = fleets.cluster(self.dice, name)
        self.index.add_target(self._target(name))

    # Random values

    def _shuffled(self, keys):
        return self.chance.sample(list(keys), len(keys))

    def _target(self, name):
        return targets.target_of_cluster(msgspec.convert(self.written[name], Cluster))

    def _drawn(self, draw, name):
        written, resources = draw(self.dice, name, NAMES), []
        written["spec"]["placement"] = fleets.placement(self.dice, written, NAMES, additions=True)
        if self.chance.random() < 0.4:
            fleets.rules_of_ours(self.dice, written, resources, switchable=False)
        template = resources[0] if resources else None
        return bindings.workload_of(msgspec.convert(written, ResourceBinding), template, self.how)
