"""A plan carried out move by move, each planned anew: as good as the plan if nothing interferes, harmless if something does."""

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing.move_execution import MoveExecution, MoveSettings
from bayplan.enforcing.rebalancing import DisruptionLimits
from bayplan.live.pod_moves import PodMoves
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT
from bayplan.reading.cluster import LoadedCluster
from bayplan.wire.meta import OwnerReference
from properties.test_rebalancing import BOTH, SEEDS, Scene

OWNER = OwnerReference(kind="ReplicaSet", name="set", uid="set", controller=True)


class World:
    """What a cluster does with evicted pods: each is made anew at once, and placed."""

    def __init__(self, scene):
        self.scene, self.pods = scene, scene.pods

    def look(self):
        index = self.scene.built(self.pods)
        owners = dict.fromkeys(index.records, OWNER)
        return PodMoves(LoadedCluster(index, [], EMPTY_SPREAD_CONTEXT, []), owners, self.scene.rules)

    def evict(self, key):
        """Where the replacement goes: to where the engine puts it."""
        name = key.partition("/")[2]
        self.pods = self.scene.moved(self.pods, name)
        return self._renew(name)["spec"]["nodeName"]

    def _renew(self, name, **spec):
        (old,) = (pod for pod in self.pods if pod["metadata"]["name"] == name)
        new = json.loads(json.dumps(old))
        new["metadata"]["uid"] += "'"
        new["spec"].update(spec)
        self.pods = [new if pod is old else pod for pod in self.pods]
        return new

    def disturb(self, chance):
        """Somebody else moves a pod, or one goes for good."""
        name = chance.choice(self.pods)["metadata"]["name"]
        if chance.random() < 0.5 and len(self.pods) > 1:
            self.pods = [pod for pod in self.pods if pod["metadata"]["name"] != name]
        else:
            self._renew(name, nodeName=chance.choice(self.scene.nodes)["metadata"]["name"])

    def uids(self):
        return {f"default/{pod['metadata']['name']}": pod["metadata"]["uid"] for pod in self.pods}


def planned(world, max_moves):
    view = world.look()
    plan = view.plan(DisruptionLimits(max_moves=max_moves, movable=lambda _workload: True))
    return plan, MoveExecution(plan, world.uids(), MoveSettings())


@BOTH
@given(SEEDS, st.integers(2, 4), st.integers(2, 5), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_undisturbed_it_reaches_what_was_planned(preset, seed, n_nodes, n_pods, max_moves):
    world = World(Scene(seed, preset, n_nodes, n_pods))
    plan, carrying = planned(world, max_moves)
    before, gained, made = world.scene.points(), 0, 0
    while (step := carrying.step(view := world.look(), 0.0)).evict:
        (move,) = step.evict
        target = world.evict(move.workload)
        assert ((target, 1),) == move.after
        gained += sum(view.gains_of([(move.workload, target)]))
        carrying.evicted(move.workload, 0.0)
        made += 1
    assert step.dropped == ()
    assert plan.exact
    assert (made, gained) == (len(plan.moves), plan.gain)
    assert world.scene.points(world.pods) - before == gained


@BOTH
@given(SEEDS, st.integers(2, 4), st.integers(2, 6), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_disturbed_it_moves_nobody_that_was_not_agreed_upon(preset, seed, n_nodes, n_pods, max_moves):
    world, chance = World(Scene(seed, preset, n_nodes, n_pods)), random.Random(seed)
    plan, carrying = planned(world, max_moves)
    agreed = {move.workload: world.uids()[move.workload] for move in plan.moves}
    while True:
        world.disturb(chance)
        step = carrying.step(world.look(), 0.0)
        for dropped in step.dropped:
            assert agreed.pop(dropped.workload)
        if not step.evict:
            break
        (move,) = step.evict
        assert world.uids()[move.workload] == agreed.pop(move.workload)  # that very pod, and only once
        assert move.before != move.after
        world.evict(move.workload)
        carrying.evicted(move.workload, 0.0)
    assert agreed == {}
