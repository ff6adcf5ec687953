"""A cluster that changes at random, kept twice: in one index with all changes applied, and as plain objects."""

import random

import msgspec

from bayplan import schedule_pod
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.rules import profiles
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod
from bayplan.writing import answers
from reference import strategies


class ChangingCluster:
    """`step` makes one random change; `answers` are those of the changed index, `fresh_answers` of one built from scratch."""

    def __init__(self, seed, semantics, n_pending=4, n_targets=4, *, spanning=0.2):
        self.chance = random.Random(seed)
        self.dice = strategies.Dice(self.chance.randrange)
        self.semantics = semantics
        self.spanning = spanning  # the share of targets in two zones
        self.targets, self.placed, self.namespaces = {}, {}, {}
        self.index = PlacementIndex(semantics)
        self.rules = profiles.pod_rules()
        self.engine = Engine(self.index, self.rules)  # one over all changes
        self.serial = 0
        for _ in range(n_targets):
            self.add_target()
        self.pending = [self._workload(strategies.pending_pod(self.dice, f"pending-{i}")) for i in range(n_pending)]

    # Answers

    def answers(self, engine=None):
        return [self._answer(workload, engine or self.engine) for workload in self.pending]

    def _answer(self, workload, engine):
        chosen, total = schedule_pod.choose(workload, engine)
        decision = schedule_pod.schedule(workload, engine)
        assert chosen == decision.slot, "the corrected ranking and the fresh one disagree"
        assert not decision.placed or total == decision.ranking.totals[chosen]
        return _comparable(answers.pod_answer(workload.name, decision, engine.index))

    def fresh_answers(self):
        return self.answers(Engine(self.fresh(), self.rules))

    def fresh(self):
        index = PlacementIndex(self.semantics)
        for name, labels in self.namespaces.items():
            index.set_namespace(name, labels)
        for name in self._shuffled(self.targets):
            index.add_target(self.targets[name])
        for key in self._shuffled(self.placed):
            index.add_shares(*self.placed[key])
        return index

    # Changes

    def step(self):
        changes = [self.add, self.add, self.add, self.remove, self.replace, self.relabel_namespace]
        changes += [self.add_target, self.remove_target, self.update_target]
        self.chance.choice(changes)()

    def add(self):
        workload = self._workload(
            strategies.placed_pod(self.dice, self.next_name("pod"), self._target_names() or ["nowhere"])
        )
        shares = [(name, 1) for name in self.chance.sample(self._target_names(), self._n_shares())] or [("nowhere", 1)]
        self.placed[workload.key] = (workload, tuple(shares))
        self.index.add_shares(workload, shares)

    def remove(self):
        if self.placed:
            key = self.chance.choice(list(self.placed))
            del self.placed[key]
            self.index.remove(key)

    def replace(self):
        if self.placed:
            key = self.chance.choice(list(self.placed))
            before, shares = self.placed[key]
            other = self._workload(strategies.placed_pod(self.dice, before.name, ["nowhere"]))
            after = msgspec.structs.replace(other, namespace=before.namespace, name=before.name)
            self.placed[key] = (after, shares)
            self.index.replace(after)

    def add_target(self):
        target = self._target(self.next_name("node"))
        self.targets[target.name] = target
        self.index.add_target(target)

    def remove_target(self):
        if len(self.targets) > 2:
            name = self.chance.choice(self._target_names())
            del self.targets[name]
            self.index.remove_target(name)

    def update_target(self):
        target = self._target(self.chance.choice(self._target_names()))
        self.targets[target.name] = target
        self.index.update_target(target)

    def relabel_namespace(self):
        name = self.chance.choice(strategies.NAMESPACES)
        labels = self.chance.choice([None, {}, {"team": "a"}, {"team": "b"}])
        if labels is None:
            self.namespaces.pop(name, None)
        else:
            self.namespaces[name] = labels
        self.index.set_namespace(name, labels)

    # Random values

    def next_name(self, stem):
        self.serial += 1
        return f"{stem}-{self.serial}"

    def _n_shares(self):
        # Bindings sit on several targets; a pod on one.
        return min(len(self.targets), self.chance.choice([1, 1, 1, 1, 2, 3]))

    def _target_names(self):
        return list(self.targets)

    def _shuffled(self, keys):
        return self.chance.sample(list(keys), len(keys))

    def _target(self, name):
        written = strategies.node(self.dice, name)
        target = targets.target_of_node(msgspec.convert(written, Node))
        # A cluster of a fleet may span zones: one more value of a key it has.
        if self.chance.random() < self.spanning and strategies.ZONE in target.labels:
            further = self.chance.choice([z for z in strategies.ZONES if z != target.labels[strategies.ZONE]])
            return msgspec.structs.replace(target, further_labels=((strategies.ZONE, further),))
        return target

    def _workload(self, written):
        return pods.workload_of(msgspec.convert(written, Pod))


def _comparable(answer):
    """The answer without the name; scores of nothing are left out, as a rule may give 0 or say nothing."""
    for verdict in answer["nodes"].values():
        verdict["reasons"] = sorted(verdict.get("reasons", ()))
        verdict["scores"] = {rule: score for rule, score in verdict.get("scores", {}).items() if score}
    return answer
