"""
After the planned evictions no rule that is enforced is broken, except where the plan says that it is withheld; and
nothing is evicted that breaks no rule.
"""

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing import copies
from bayplan.enforcing.enforcer import Enforcer
from bayplan.enforcing.planning import EnforcementSettings
from bayplan.enforcing.tracking import ViolationTracker
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import bindings, targets
from bayplan.model.semantics import UPSTREAM, for_fleets
from bayplan.placing import place_bindings
from bayplan.wire.fleets import Cluster, ResourceBinding
from live import fleets

NO_LIMITS = EnforcementSettings(affinity_grace=0, anti_affinity_grace=0, per_minute=10**6, at_once=10**6)
EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
CLUSTERS = {"one": "north", "two": "north", "three": "south", "four": "west"}


def fleet_of(chance):
    """A few workloads with rules, placed without regard to them; some of them belong to another scheduler."""
    index = PlacementIndex(for_fleets(UPSTREAM), lost_targets_count=True)
    for name, region in CLUSTERS.items():
        content = fleets.cluster(name)
        content["spec"]["region"] = region
        index.add_target(targets.target_of_cluster(msgspec.convert(content, Cluster)))
    others = set()
    for i in range(chance.randint(2, 7)):
        rules = {}
        for side in ("workloadAffinity", "workloadAntiAffinity"):
            if chance.random() < 0.5:
                term = {
                    "labelSelector": {"matchLabels": {"app": chance.choice("ab")}},
                    "topologyKey": chance.choice(("cluster", "region")),
                    "namespaces": chance.sample(["shop", "bank"], chance.randint(1, 2)),
                }
                rules[side] = {chance.choice((EXECUTION, EXECUTION, SCHEDULING)): [term]}
        on = dict.fromkeys(chance.sample(list(CLUSTERS), chance.randint(1, 3)), 1)
        spec = {"schedulePriority": {"priority": chance.randint(0, 1)}}
        content = fleets.binding(f"w{i}", chance.choice(("shop", "bank")), on, rules, **spec)
        written = msgspec.convert(content, ResourceBinding)
        template = {"metadata": {"labels": {"app": chance.choice("abc")}}}
        workload = bindings.workload_of(written, template)
        place_bindings.put_on(index, workload, bindings.shares_of(written), ())
        if chance.random() < 0.2:
            others.add(workload.key)
    if chance.random() < 0.5:
        index.set_namespace("bank", {"bayplan.io/evictable-by": "shop"})
    return index, others


def evict(index, copy):
    record = index.records[copies.workload_of(copy)]
    left = [share for share in record.shares if share[0] != copies.cluster_of(copy)]
    assert len(left) < len(record.shares)
    index.remove(record.key)
    if left:
        index.add_shares(record.workload, left)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_evictions_resolve_what_is_enforced_and_touch_nothing_else(seed):
    index, others = fleet_of(random.Random(seed))
    tracker = ViolationTracker(index)
    enforcer, evicted = Enforcer(NO_LIMITS), []

    def may_evict(key):
        return key not in others

    for now in range(20):
        broken = copies.enforceable(tracker.violations(), index, may_evict)
        involved = {copy for one in broken for copy in (one.owner, *one.peers)}
        enforcer.observe(broken, float(now))
        plan = enforcer.due(float(now), copies.precedence_of(broken, tracker.precedence()))
        if not plan.evict:
            break
        for eviction in plan.evict:
            assert eviction.victim in involved
            assert may_evict(copies.workload_of(eviction.victim))
            for cause in eviction.causes:
                assert cause.enforced
                assert eviction.victim not in cause.protected
            evict(index, eviction.victim)
            enforcer.evicted(eviction.victim, float(now))
            enforcer.gone(eviction.victim)
            evicted.append(eviction.victim)
    else:
        raise AssertionError("enforcement never settles")
    assert len(set(evicted)) == len(evicted)
    assert {one.id for one in broken} <= {one.violation.id for one in plan.withheld}
    if not tracker.violations():
        assert not broken
