"""The next step of a plan of moves, on views that a test makes up, and the replacements of evicted pods."""

import pytest

from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.move_execution import (
    GONE,
    NO_GAIN,
    ONLY_TOGETHER,
    ORPHANED,
    TERMINATING,
    MoveDropped,
    MoveExecution,
    MoveSettings,
    SeenPod,
    find_replacements,
)
from bayplan.enforcing.rebalancing import Rebalancing, WorkloadMove
from bayplan.model import labels
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Needs, Workload


def move(name, gain=100):
    return WorkloadMove(f"shop/{name}", (("old", 1),), (("new", 1),), {"InterPodAffinity": gain})


PLAN = Rebalancing((move("a"), move("b"), move("c")), exact=True, n_tried=3)
UIDS = {f"shop/{name}": f"uid-{name}" for name in "abc"}


class Scene:
    """A cluster in which moving the pods in `gaining` gains something, in that order."""

    def __init__(self, gaining="abc", budgets=(), uids=UIDS, orphans=(), terminating=()):
        self.gaining, self.budgets = gaining, budgets
        self._uids, self._orphans, self._terminating = uids, orphans, terminating

    def workload(self, key):
        if key not in self._uids:
            return None
        namespace, _, name = key.partition("/")
        return Workload(
            namespace=namespace,
            name=name,
            uid=self._uids[key],
            labels={"app": name},
            needs=Needs(),
            terminating=name in self._terminating,
        )

    def is_recreated(self, key):
        return key.partition("/")[2] not in self._orphans

    def plan(self, limits):
        budgets, moves = EvictionBudgets(limits.budgets), []
        for name in self.gaining:
            pod = self.workload(f"shop/{name}")
            if limits.movable(pod) and not budgets.rejection(pod) and len(moves) < limits.max_moves:
                budgets.charge(pod)
                moves.append(move(name))
        return Rebalancing(tuple(moves), exact=True, n_tried=0)


def execution(**settings):
    return MoveExecution(PLAN, UIDS, MoveSettings(**settings))


def evicted(step):
    return [one.workload.partition("/")[2] for one in step.evict]


def forbids(name):
    return DisruptionBudget(namespace="shop", name=f"keep-{name}", selector=labels.equals({"app": name}))


def test_one_move_at_a_time_by_default():
    moving, now = execution(), 0.0
    for name in "abc":
        step = moving.step(Scene(), now)
        assert evicted(step) == [name]
        moving.evicted(f"shop/{name}", now)
    assert moving.step(Scene(), now).evict == ()
    assert moving.left == ()


@pytest.mark.parametrize("at_once, first", [(1, ["a"]), (2, ["a", "b"]), (9, ["a", "b", "c"])])
def test_no_more_at_once_than_allowed(at_once, first):
    assert evicted(execution(at_once=at_once).step(Scene(), 0.0)) == first


def test_no_more_in_a_minute_than_allowed():
    moving = execution(per_minute=2, at_once=9)
    assert evicted(moving.step(Scene(), 0.0)) == ["a", "b"]
    moving.evicted("shop/a", 0.0)
    moving.evicted("shop/b", 10.0)
    step = moving.step(Scene(), 20.0)
    assert (step.evict, step.in_time, step.until) == ((), True, 60.0)
    assert evicted(moving.step(Scene(), 60.0)) == ["c"]


def test_a_move_that_gains_nothing_any_more_is_dropped_for_good():
    moving = execution()
    step = moving.step(Scene(gaining="b"), 0.0)
    assert step.dropped == (MoveDropped("shop/a", NO_GAIN), MoveDropped("shop/c", NO_GAIN))
    assert evicted(step) == ["b"]
    assert evicted(moving.step(Scene(gaining="abc"), 0.0)) == ["b"]


@pytest.mark.parametrize(
    "scene, why",
    [
        (Scene(uids={key: uid for key, uid in UIDS.items() if key != "shop/a"}), GONE),
        (Scene(uids={**UIDS, "shop/a": "another"}), GONE),  # recreated under the same name
        (Scene(terminating="a"), TERMINATING),
        (Scene(orphans="a"), ORPHANED),
    ],
)
def test_a_workload_that_changed_is_not_moved(scene, why):
    scene.gaining = "bc"
    step = execution().step(scene, 0.0)
    assert step.dropped == (MoveDropped("shop/a", why),)
    assert evicted(step) == ["b"]


def test_nothing_but_the_plan_is_ever_moved():
    moving = MoveExecution(Rebalancing((move("b"),), exact=True, n_tried=1), UIDS, MoveSettings(at_once=9))
    assert evicted(moving.step(Scene(), 0.0)) == ["b"]


def test_a_budget_holds_a_move_back_but_does_not_drop_it():
    moving = execution()
    step = moving.step(Scene(budgets=[forbids("a")]), 0.0)
    assert (evicted(step), step.dropped) == (["b"], ())
    step = moving.step(Scene(budgets=[forbids(name) for name in "abc"]), 0.0)
    assert (step.evict, step.dropped, step.in_time, step.until) == ((), (), False, 30.0)
    assert step.waiting == "shop/a cannot be evicted now: PodDisruptionBudget keep-a allows no disruption"
    assert evicted(moving.step(Scene(), 30.0)) == ["a"]


def test_a_rejected_eviction_is_retried_later():
    moving = execution(retry_after=10)
    moving.rejected("shop/a", "no", 0.0)
    assert evicted(moving.step(Scene(), 1.0)) == ["b"]
    for name in "bc":
        moving.rejected(f"shop/{name}", "no", 1.0)
    assert moving.step(Scene(), 5.0).waiting == "shop/a cannot be evicted now: no"
    assert evicted(moving.step(Scene(), 10.0)) == ["a"]


def test_moves_that_gain_only_together_wait_together():
    class Together(Scene):
        def plan(self, limits):
            found = super().plan(limits)
            return found if len(found.moves) == 3 else Rebalancing((), exact=True, n_tried=0)

    moving = execution(retry_after=10)
    moving.rejected("shop/c", "", 0.0)
    step = moving.step(Together(), 1.0)
    assert (step.evict, step.dropped, step.waiting) == ((), (), ONLY_TOGETHER)


# Replacements

OLD = SeenPod("shop/old", "1", "set", "a")
OTHER = SeenPod("shop/other", "2", "set", "b")  # another replica that existed before
BEFORE = frozenset({"1", "2"})


def replacements_of(*seen, evicted=(OLD,)):
    return find_replacements(evicted, BEFORE, seen)


def test_a_new_pod_of_the_same_controller_with_a_node_is_the_replacement():
    new = SeenPod("shop/new", "3", "set", "c")
    (found,) = replacements_of(OTHER, new)
    assert (found.new, found.is_over, found.missing) == (new, True, "")


def test_a_replacement_is_not_over_while_something_is_missing():
    cases = [
        ((OTHER,), "no replacement was created"),
        ((OTHER, SeenPod("shop/x", "3", "another", "c")), "no replacement was created"),
        ((OTHER, SeenPod("shop/x", "3", "set", "c", inactive=True)), "no replacement was created"),
        ((OTHER, SeenPod("shop/x", "3", "set")), "its replacement shop/x has no node"),
        ((OLD, SeenPod("shop/x", "3", "set", "c")), "it has not terminated"),
    ]
    for seen, missing in cases:
        (found,) = replacements_of(*seen)
        assert (found.missing, found.is_over) == (missing, False)


def test_a_pod_recreated_under_the_same_name_is_a_replacement():
    (found,) = replacements_of(SeenPod("shop/old", "3", "set", "c"))
    assert found.is_over


def test_each_evicted_pod_needs_its_own_replacement():
    second = SeenPod("shop/second", "2", "set", "a")
    one = SeenPod("shop/one", "3", "set", "c")
    found = replacements_of(one, evicted=(OLD, second))
    assert [replacement.is_over for replacement in found] == [True, False]
    two = SeenPod("shop/two", "4", "set", "b")
    assert all(replacement.is_over for replacement in replacements_of(one, two, evicted=(OLD, second)))
