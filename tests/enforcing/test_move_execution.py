"""The next step of a plan that is being carried out, asked of views that a test makes up."""

import pytest

from bayplan.enforcing.eviction_limits import EvictionBudgets
from bayplan.enforcing.move_execution import (
    GONE,
    NO_GAIN,
    ONLY_TOGETHER,
    ORPHANED,
    TERMINATING,
    Dropped,
    MoveExecution,
    MoveSettings,
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
        books, moves = EvictionBudgets(limits.budgets), []
        for name in self.gaining:
            pod = self.workload(f"shop/{name}")
            if limits.movable(pod) and not books.refusal(pod) and len(moves) < limits.max_moves:
                books.charge(pod)
                moves.append(move(name))
        return Rebalancing(tuple(moves), exact=True, n_tried=0)


def books(**settings):
    return MoveExecution(PLAN, UIDS, MoveSettings(**settings))


def evicted(step):
    return [one.workload.partition("/")[2] for one in step.evict]


def forbids(name):
    return DisruptionBudget(namespace="shop", name=f"keep-{name}", selector=labels.equals({"app": name}))


def test_one_after_another_by_default():
    carrying, now = books(), 0.0
    for name in "abc":
        step = carrying.step(Scene(), now)
        assert evicted(step) == [name]
        carrying.evicted(f"shop/{name}", now)
    assert carrying.step(Scene(), now).evict == ()
    assert carrying.left == ()


@pytest.mark.parametrize("at_once, first", [(1, ["a"]), (2, ["a", "b"]), (9, ["a", "b", "c"])])
def test_no_more_at_once_than_allowed(at_once, first):
    assert evicted(books(at_once=at_once).step(Scene(), 0.0)) == first


def test_no_more_in_a_minute_than_allowed():
    carrying = books(per_minute=2, at_once=9)
    assert evicted(carrying.step(Scene(), 0.0)) == ["a", "b"]
    carrying.evicted("shop/a", 0.0)
    carrying.evicted("shop/b", 10.0)
    step = carrying.step(Scene(), 20.0)
    assert (step.evict, step.in_time, step.until) == ((), True, 60.0)
    assert evicted(carrying.step(Scene(), 60.0)) == ["c"]


def test_what_gains_nothing_any_more_is_dropped_for_good():
    carrying = books()
    step = carrying.step(Scene(gaining="b"), 0.0)
    assert step.dropped == (Dropped("shop/a", NO_GAIN), Dropped("shop/c", NO_GAIN))
    assert evicted(step) == ["b"]
    assert evicted(carrying.step(Scene(gaining="abc"), 0.0)) == ["b"]


@pytest.mark.parametrize(
    "scene, why",
    [
        (Scene(uids={key: uid for key, uid in UIDS.items() if key != "shop/a"}), GONE),
        (Scene(uids={**UIDS, "shop/a": "another"}), GONE),  # made anew under the same name
        (Scene(terminating="a"), TERMINATING),
        (Scene(orphans="a"), ORPHANED),
    ],
)
def test_whoever_is_not_what_was_agreed_upon_is_left_alone(scene, why):
    scene.gaining = "bc"
    step = books().step(scene, 0.0)
    assert step.dropped == (Dropped("shop/a", why),)
    assert evicted(step) == ["b"]


def test_nothing_but_the_plan_is_ever_moved():
    carrying = MoveExecution(Rebalancing((move("b"),), exact=True, n_tried=1), UIDS, MoveSettings(at_once=9))
    assert evicted(carrying.step(Scene(), 0.0)) == ["b"]


def test_a_budget_holds_a_move_back_but_does_not_drop_it():
    carrying = books()
    step = carrying.step(Scene(budgets=[forbids("a")]), 0.0)
    assert (evicted(step), step.dropped) == (["b"], ())
    step = carrying.step(Scene(budgets=[forbids(name) for name in "abc"]), 0.0)
    assert (step.evict, step.dropped, step.in_time, step.until) == ((), (), False, 30.0)
    assert step.waiting == "shop/a cannot be evicted now: PodDisruptionBudget keep-a allows no disruption"
    assert evicted(carrying.step(Scene(), 30.0)) == ["a"]


def test_whom_the_server_refused_is_asked_again_later():
    carrying = books(retry_after=10)
    carrying.refused("shop/a", "no", 0.0)
    assert evicted(carrying.step(Scene(), 1.0)) == ["b"]
    for name in "bc":
        carrying.refused(f"shop/{name}", "no", 1.0)
    assert carrying.step(Scene(), 5.0).waiting == "shop/a cannot be evicted now: no"
    assert evicted(carrying.step(Scene(), 10.0)) == ["a"]


def test_moves_that_gain_only_together_wait_together():
    class Together(Scene):
        def plan(self, limits):
            found = super().plan(limits)
            return found if len(found.moves) == 3 else Rebalancing((), exact=True, n_tried=0)

    carrying = books(retry_after=10)
    carrying.refused("shop/c", "", 0.0)
    step = carrying.step(Together(), 1.0)
    assert (step.evict, step.dropped, step.waiting) == ((), (), ONLY_TOGETHER)
