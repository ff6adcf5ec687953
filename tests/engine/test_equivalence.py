"""Which workloads rules can distinguish: the signature has all that a rule may read, and nothing else."""

import msgspec
import pytest

from bayplan.engine import equivalence
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import Binding
from bayplan.model.labels import equals
from bayplan.model.targets import Target
from bayplan.model.terms import HOSTNAME, AffinityTerms, PodTerm
from bayplan.model.workloads import ControllerReference, Needs, Requests, SpreadRequirements, Workload

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
