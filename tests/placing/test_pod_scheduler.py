"""Pods are placed as a scheduler with a queue places them: with retries and preemption, until nothing more fits."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import EMPTY_SPREAD_CONTEXT
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.labels import equals
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, AffinityTerms, PodTerm
from bayplan.model.workloads import ControllerReference, Needs, Requests, Workload
from bayplan.placing import place_pods, pod_scheduler
from bayplan.placing.pod_scheduler import PodScheduler
from bayplan.rules import profiles

RULES = profiles.pod_rules()
OWNER = ControllerReference("apps/v1", "ReplicaSet", "web-1")


def node(name, cpu=1000):
    return Target(name=name, labels={HOSTNAME: name}, allocatable=(("cpu", cpu), ("memory", 1000), ("pods", 10)))


def pod(name, cpu=100, priority=0, terms=None, controller=None, gates=(), **labels):
    amounts = (("cpu", cpu), ("memory", 1))
    needs = Needs(requests=Requests(amounts, amounts, amounts), affinity=terms or AffinityTerms())
    return Workload(
        namespace="default",
        name=name,
        labels=labels,
        needs=needs,
        priority=priority,
        controller=controller,
        gates=gates,
    )


def near(**labels):
    return AffinityTerms(required=(PodTerm(equals(labels), HOSTNAME),))


def scheduler(nodes, running=(), budgets=(), **settings):
    index = PlacementIndex()
    for one in nodes:
        index.add_target(one)
    for one, where in running:
        index.add(one, where)
    engine = Engine(index, RULES)
    recreate = pod_scheduler.recreated_by_controller(index, EMPTY_SPREAD_CONTEXT)
    return PodScheduler(lambda _: engine, index, budgets, recreate, **settings)


def placed(found):
    return {key.partition("/")[2]: placement.target for key, placement in found.placements.items()}


def test_a_pod_is_tried_again_when_its_partner_is_placed_after_it():
    found = scheduler([node("a"), node("b")])
    found.add(pod("client", terms=near(app="server")))
    found.add(pod("server", app="server"))
    found.schedule()
    where = placed(found)
    assert where["client"] == where["server"] != ""


def test_a_chain_of_partners_is_placed_in_any_order():
    found = scheduler([node("a"), node("b")])
    for i in range(5, 0, -1):
        found.add(pod(f"pod-{i}", terms=near(app=f"app-{i - 1}"), app=f"app-{i}"))
    found.add(pod("pod-0", app="app-0"))
    found.schedule()
    assert len(set(placed(found).values())) == 1
    assert "" not in placed(found).values()


def test_a_pod_of_higher_priority_preempts_and_a_managed_victim_is_placed_again():
    found = scheduler([node("a"), node("b", cpu=300)], [(pod("batch", cpu=300, controller=OWNER), "a")])
    found.add(pod("web", cpu=900, priority=10))
    found.schedule()
    assert placed(found) == {"web": "a", "batch": "b"}
    assert found.placements["default/web"].victims == ("default/batch",)
    (eviction,) = found.evictions
    assert (eviction.victim.name, eviction.node, eviction.preemptor) == ("batch", "a", "default/web")
    assert eviction.is_recreated


def test_a_bare_victim_is_lost_and_one_that_fits_nowhere_stays_pending():
    running = [(pod("bare", cpu=500), "a"), (pod("managed", cpu=500, controller=OWNER), "a")]
    found = scheduler([node("a")], running)
    found.add(pod("web", cpu=1000, priority=10))
    found.schedule()
    assert placed(found) == {"web": "a", "managed": "", "bare": ""}
    assert found.placements["default/bare"].lost
    assert (found.placements["default/bare"].preemptor, found.placements["default/bare"].preempted_from) == (
        "default/web", "a",
    )  # fmt: skip
    assert found.placements["default/managed"].message == "0/1 nodes are available: 1 Insufficient cpu."
    assert {one.victim.name: one.is_recreated for one in found.evictions} == {"bare": False, "managed": True}


def test_without_preemption_nothing_is_evicted():
    found = scheduler([node("a")], [(pod("batch", cpu=500), "a")], preempts=False)
    found.add(pod("web", cpu=900, priority=10))
    found.schedule()
    assert placed(found) == {"web": ""}
    assert not found.evictions


def test_the_room_of_a_nominated_pod_is_not_taken_by_its_victim():
    found = scheduler([node("a")], [(pod("batch", cpu=600, controller=OWNER), "a")])
    found.add(pod("web", cpu=600, priority=10))
    found.add(pod("late", cpu=600))
    found.schedule()
    assert placed(found) == {"web": "a", "batch": "", "late": ""}


def test_a_chain_of_preemptions_ends():
    running = [(pod("middle", cpu=1000, priority=5, controller=OWNER), "a"), (pod("low", cpu=1000), "b")]
    found = scheduler([node("a"), node("b")], running)
    found.add(pod("high", cpu=1000, priority=10))
    found.schedule()
    # The node of the lowest priority is freed first, so the one in the middle stays.
    assert placed(found) == {"high": "b", "low": ""}
    found.add(pod("higher", cpu=1000, priority=20))
    found.schedule()
    assert placed(found)["higher"] == "a"
    assert placed(found)["middle"] == ""


def test_a_budget_is_charged_for_each_victim():
    budget = DisruptionBudget(namespace="default", name="one", selector=equals({"app": "batch"}), allowed=1)
    running = [(pod(f"batch-{i}", cpu=900, controller=OWNER, app="batch"), n) for i, n in enumerate("ab")]
    other = (pod("other", cpu=900, priority=1), "c")
    found = scheduler([node("a"), node("b"), node("c")], [*running, other], [budget])
    found.add(pod("web-1", cpu=900, priority=10))
    found.add(pod("web-2", cpu=900, priority=10))
    found.schedule()
    # The second one takes the victim of higher priority, because the budget allows no second disruption.
    evicted = {one.victim.name for one in found.evictions}
    assert "other" in evicted
    assert len(evicted & {"batch-0", "batch-1"}) == 1


def test_a_victim_that_runs_again_counts_no_longer_against_its_budget():
    budget = DisruptionBudget(namespace="default", name="one", selector=equals({"app": "batch"}), allowed=1)
    running = [(pod(f"batch-{i}", cpu=900, controller=OWNER, app="batch"), n) for i, n in enumerate("ab")]
    other = (pod("other", cpu=900, priority=1), "c")
    found = scheduler([*map(node, "abcd")], [*running, other, (pod("short", cpu=1), "d")], [budget])
    found._index.update_target(node("d", cpu=900))
    found.add(pod("web-1", cpu=1000, priority=10))
    found.schedule()
    assert [one.victim.name[:5] for one in found.evictions] == ["batch"]
    found.remove("default/short")
    found.schedule()
    found.add(pod("web-2", cpu=1000, priority=10))
    found.schedule()
    assert [one.victim.name[:5] for one in found.evictions] == ["batch", "batch"]


def test_gated_and_deleted_pods_are_never_tried():
    found = scheduler([node("a")])
    found.add(pod("gated", gates=("wait",)))
    found.add(msgspec.structs.replace(pod("leaving"), terminating=True))
    found.schedule()
    assert placed(found) == {"gated": "", "leaving": ""}
    assert "scheduling gates: wait" in found.placements["default/gated"].message
    assert found.placements["default/leaving"].message == pod_scheduler.TERMINATING


def test_messages_speak_of_the_cluster_in_the_end():
    found = scheduler([node("a", cpu=1000), node("b", cpu=100)])
    found.add(pod("client", cpu=500, terms=near(app="server")))
    found.add(pod("server", cpu=600, app="server"))
    found.schedule()
    assert placed(found) == {"client": "", "server": "a"}
    assert "Insufficient cpu" in found.placements["default/client"].message


def test_a_removed_pod_makes_room():
    found = scheduler([node("a")], [(pod("old", cpu=900), "a")])
    found.add(pod("new", cpu=900))
    found.schedule()
    assert placed(found) == {"new": ""}
    found.remove("default/old")
    found.schedule()
    assert placed(found) == {"new": "a"}


@pytest.mark.parametrize("n_pods", [1, 200])
def test_equal_pods_search_for_victims_once(monkeypatch, n_pods):
    searched = []
    original = pod_scheduler.preemption.preempt
    monkeypatch.setattr(
        pod_scheduler.preemption, "preempt", lambda *given: searched.append(given[0].name) or original(*given)
    )
    found = scheduler([node("a")], [(pod("high", cpu=900, priority=10), "a"), (pod("low", cpu=1), "a")])
    for i in range(n_pods):
        found.add(pod(f"web-{i}", cpu=900, priority=5))
    found.schedule()
    assert len(searched) == 1


PODS = st.builds(
    lambda cpu, priority, app, partner, owned: (cpu, priority, app, partner, owned),
    st.integers(1, 9), st.integers(0, 2), st.sampled_from("xyz"), st.sampled_from([None, "x", "y", "z"]), st.booleans(),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(PODS, min_size=1, max_size=10), st.integers(0, 5))
def test_in_the_end_no_pending_pod_fits_and_nobody_is_overcommitted(pods, n_running):
    found = scheduler([node("a"), node("b")])
    made = [
        pod(
            f"pod-{i}", cpu=cpu * 100, priority=priority, app=app,
            terms=near(app=partner) if partner else None, controller=OWNER if owned else None,
        )
        for i, (cpu, priority, app, partner, owned) in enumerate(pods)
    ]  # fmt: skip
    for one in made[:n_running]:
        found._index.add(one, "a")
    for one in made[n_running:]:
        found.add(one)
    found.schedule()
    index = found._index
    engine = Engine(index, RULES)
    used = dict.fromkeys("ab", 0)
    for key, record in index.records.items():
        used[record.shares[0][0]] += dict(record.workload.needs.requests.amounts)["cpu"]
        assert key not in found.placements or found.placements[key].target == record.shares[0][0]
    assert max(used.values()) <= 1000 or n_running > 1
    pending = [p.workload for p in found.placements.values() if not p.target and not p.lost]
    lost = {one.victim.key for one in found.evictions if not one.is_recreated}
    assert {one.key for one in made} == index.records.keys() | {one.key for one in pending} | lost
    for one in pending:
        with index.tentatively():
            assert not place_pods.place(one, engine).target
