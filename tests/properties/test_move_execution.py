"""A plan carried out move by move, each planned again: it reaches the planned gain unless something interferes."""

import json
import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing.move_execution import MoveExecution, MoveSettings
from bayplan.enforcing.rebalancing import DisruptionLimits
from bayplan.live.pod_moves import PodMoves
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT
from bayplan.model.workloads import ControllerReference
from bayplan.reading.cluster import LoadedCluster
from properties.test_rebalancing import BOTH, SEEDS, Scene

CONTROLLER = ControllerReference("apps/v1", "ReplicaSet", "set")


class World:
    """A cluster in which every evicted pod is recreated and placed at once."""

    def __init__(self, scene):
        self.scene, self.pods = scene, scene.pods

    def view(self):
        index = self.scene.built(self.pods)
        for record in index.records.values():
            index.amend(msgspec.structs.replace(record.workload, controller=CONTROLLER))
        return PodMoves(LoadedCluster(index=index, pending=[], spread_context=EMPTY_SPREAD_CONTEXT), self.scene.rules)

    def evict(self, key):
        """The node of the replacement: where the engine places it."""
        name = key.partition("/")[2]
        self.pods = self.scene.moved(self.pods, name)
        return self._recreate(name)["spec"]["nodeName"]

    def _recreate(self, name, **spec):
        (old,) = (pod for pod in self.pods if pod["metadata"]["name"] == name)
        new = json.loads(json.dumps(old))
        new["metadata"]["uid"] += "'"
        new["spec"].update(spec)
        self.pods = [new if pod is old else pod for pod in self.pods]
        return new

    def disturb(self, chance):
        """Another client moves a pod, or one is deleted for good."""
        name = chance.choice(self.pods)["metadata"]["name"]
        if chance.random() < 0.5 and len(self.pods) > 1:
            self.pods = [pod for pod in self.pods if pod["metadata"]["name"] != name]
        else:
            self._recreate(name, nodeName=chance.choice(self.scene.nodes)["metadata"]["name"])

    def uids(self):
        return {f"default/{pod['metadata']['name']}": pod["metadata"]["uid"] for pod in self.pods}


def planned(world, max_moves):
    view = world.view()
    plan = view.plan(DisruptionLimits(max_moves=max_moves, movable=lambda _workload: True))
    return plan, MoveExecution(plan, world.uids(), MoveSettings())


@BOTH
@given(SEEDS, st.integers(2, 4), st.integers(2, 5), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_without_disturbances_the_planned_gain_is_reached(preset, seed, n_nodes, n_pods, max_moves):
    world = World(Scene(seed, preset, n_nodes, n_pods))
    plan, moving = planned(world, max_moves)
    before, gained, made = world.scene.points(), 0, 0
    while (step := moving.step(view := world.view(), 0.0)).evict:
        (move,) = step.evict
        target = world.evict(move.workload)
        assert ((target, 1),) == move.after
        gained += sum(view.gains_of([(move.workload, target)]))
        moving.evicted(move.workload, 0.0)
        made += 1
    assert step.dropped == ()
    assert plan.exact
    assert (made, gained) == (len(plan.moves), plan.gain)
    assert world.scene.points(world.pods) - before == gained


@BOTH
@given(SEEDS, st.integers(2, 4), st.integers(2, 6), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_with_disturbances_only_pods_of_the_plan_are_moved(preset, seed, n_nodes, n_pods, max_moves):
    world, chance = World(Scene(seed, preset, n_nodes, n_pods)), random.Random(seed)
    plan, moving = planned(world, max_moves)
    agreed = {move.workload: world.uids()[move.workload] for move in plan.moves}
    while True:
        world.disturb(chance)
        step = moving.step(world.view(), 0.0)
        for dropped in step.dropped:
            assert agreed.pop(dropped.workload)
        if not step.evict:
            break
        (move,) = step.evict
        assert world.uids()[move.workload] == agreed.pop(move.workload)  # that very pod, and only once
        assert move.before != move.after
        world.evict(move.workload)
        moving.evicted(move.workload, 0.0)
    assert agreed == {}
