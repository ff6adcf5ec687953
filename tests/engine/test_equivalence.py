"""Which workloads rules can distinguish: the signature has all that a rule may read, and nothing else."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.engine import equivalence
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.groups import GroupMembership, GroupSource
from bayplan.model.labels import equals
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, AffinityTerms, PodTerm
from bayplan.model.workloads import ControllerReference, Needs, Requests, SpreadRequirements, Workload
from bayplan.rules.rule import PartRule
from properties.changing import ChangingCluster
from properties.changing_fleet import ChangingFleet
from properties.changing_storage import ChangingStorage
from reference import strategies

POD = Workload(namespace="shop", name="web-1", labels={"app": "web", "set": "1"}, needs=Needs())
BINDING = msgspec.structs.replace(POD, binding=Binding(name="web", replicas=2))


def index_with(term=None):
    """A node with a pod, whose term is in use."""
    index = PlacementIndex()
    index.add_target(Target(name="a", labels={HOSTNAME: "a"}))
    affinity = AffinityTerms() if term is None else AffinityTerms(anti_required=(term,))
    index.add(Workload(namespace="shop", name="other", labels={}, needs=Needs(affinity=affinity)), "a")
    return index


@pytest.mark.parametrize("changed, distinguished", [
    ({"namespace": "store"}, True),
    ({"needs": Needs(requests=Requests((("cpu", 1),)))}, True),
    ({"requested_target": "a"}, True),
    ({"unplaceable": "faulty"}, True),
    ({"labels": {"app": "web", "set": "2"}}, False),  # no term mentions the key
    ({"labels": {"app": "api", "set": "1"}}, True),
    ({"name": "web-2", "uid": "2", "created": "2026-01-01T00:00:00Z"}, False),
    ({"controller": ControllerReference("apps/v1", "ReplicaSet", "web")}, False),
    ({"priority": 1, "scheduler_name": "mine", "gates": ("quota",), "preempts": False}, False),  # no rule reads them
])  # fmt: skip
def test_the_signature_has_all_that_a_rule_may_read(changed, distinguished):
    index = index_with(PodTerm(equals({"app": "web"}), HOSTNAME))
    other = msgspec.structs.replace(POD, **changed)
    assert (equivalence.signature(POD, index) != equivalence.signature(other, index)) is distinguished


def test_labels_that_its_own_needs_select_by_are_read():
    spread = Needs(spread=SpreadRequirements(default_selector=equals({"set": "1"})))
    one = msgspec.structs.replace(POD, needs=spread)
    other = msgspec.structs.replace(one, labels={"app": "web", "set": "2"})
    index = index_with()
    assert equivalence.signature(one, index) != equivalence.signature(other, index)


@pytest.mark.parametrize("changed", [{"name": "api"}, {"previous": (("eu", 2),)}, {"evicted_from": ("eu",)}])
def test_a_binding_is_equivalent_only_to_itself(changed):
    other = msgspec.structs.replace(BINDING, binding=msgspec.structs.replace(BINDING.binding, **changed))
    index = index_with()
    assert equivalence.signature(BINDING, index) == equivalence.signature(BINDING, index)
    assert len({equivalence.signature(one, index) for one in (POD, BINDING, other)}) == 3


# No rule distinguishes workloads with equal signatures.

SIGNED = ("namespace", "needs", "requested_target", "unplaceable", "binding")


def twins(workload):
    """Workloads that differ from this one in all that the signature does not have, and in one label."""
    others = {
        "uid": "other",
        "priority": workload.priority + 1,
        "created": "2026-01-02T00:00:00Z",
        "started": "2026-01-02T00:00:01Z",
        "terminating": not workload.terminating,
        "preempted": not workload.preempted,
        "nominated_target": "other",
        "preempts": not workload.preempts,
        "gates": (*workload.gates, "other"),
        "scheduler_name": "other",
        "controller": ControllerReference("v1", "ReplicationController", "other"),
        "group": GroupMembership(GroupSource.ANNOTATION, "other"),  # its rules are among the needs
    }
    if workload.binding is None:  # which has its name
        others["name"] = "other"
    assert {"name", "labels", *others, *SIGNED} == {field.name for field in msgspec.structs.fields(Workload)}
    for key, values in {**strategies.POD_LABELS, "unmentioned": ("a",)}.items():
        for value in values:
            yield msgspec.structs.replace(workload, labels={**workload.labels, key: value}, **others)


def distinguished(scene, rules):
    """The rules that have different parts of workloads with equal signatures, and how many pairs were compared."""
    index, found, n_pairs = scene.index, set(), 0
    for workload in (*scene.pending, *(record.workload for record in index.records.values())):
        for twin in twins(workload):
            if equivalence.signature(workload, index) == equivalence.signature(twin, index):
                n_pairs += 1
                found |= {rule.name for rule in rules if rule.part(workload, index) != rule.part(twin, index)}
    return found, n_pairs


@pytest.mark.parametrize("changing", [ChangingCluster, ChangingStorage, ChangingFleet])
@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_workloads_with_equal_signatures_have_equal_parts(changing, semantics, seed):
    scene = changing(seed, semantics)
    for _ in range(10):
        scene.step()
    found, n_pairs = distinguished(scene, scene.rules)
    assert not found
    assert n_pairs


@pytest.mark.parametrize("read", [lambda pod: pod.labels.get("unmentioned"), lambda pod: pod.priority])
def test_a_rule_that_reads_more_than_the_signature_has_is_found(read):
    rule = type("Curious", (PartRule,), {"name": "Curious", "part": lambda _, pod, __: read(pod)})()
    found, _ = distinguished(ChangingCluster(0, UPSTREAM), [rule])
    assert found == {"Curious"}
