"""The node to reserve for a pod on random clusters, compared with the reference implementation."""

from hypothesis import given
from hypothesis import strategies as st

from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target
from bayplan.model.workloads import ControllerReference, Needs, Requests, Workload
from bayplan.preempting import reservable_nodes
from bayplan.rules import profiles
from reference import reservable_nodes as reference

OWNERS = (None, None, ControllerReference("apps/v1", "DaemonSet", "it"), ControllerReference("v1", "Node", "it"))
# Amounts over 2^61 do not fit into 64 bits when they are added.
AMOUNTS = st.dictionaries(
    st.sampled_from(("cpu", "memory", "example.com/gpu")), st.one_of(st.integers(0, 8), st.just(2**61))
)


@st.composite
def pods(draw, name):
    return Workload(
        namespace="web",
        name=name,
        labels={},
        needs=Needs(requests=Requests(amounts=tuple(draw(AMOUNTS).items()))),
        priority=draw(st.integers(0, 2)),
        controller=draw(st.sampled_from(OWNERS)),
    )


@given(data=st.data())
def test_the_reserved_node_is_that_of_the_reference(data):
    index = PlacementIndex()
    names = [f"node-{i}" for i in range(data.draw(st.integers(0, 4)))]
    offered = {name: data.draw(AMOUNTS) | {"pods": data.draw(st.integers(0, 4))} for name in names}
    cordoned = {name for name in names if data.draw(st.integers(0, 3)) == 0}
    for name, amounts in offered.items():
        index.add_target(
            Target(name=name, labels={}, allocatable=tuple(amounts.items()), unschedulable=name in cordoned)
        )
    placed = []
    for i in range(data.draw(st.integers(0, 6)) if names else 0):
        pod, node = data.draw(pods(f"placed-{i}")), data.draw(st.sampled_from(names))
        index.add(pod, node)
        placed.append((pod, node))
    pod, taken = data.draw(pods("large")), {name for name in names if data.draw(st.booleans())}
    found = reservable_nodes.find(pod, Engine(index, profiles.pod_rules()), taken)
    admitted = {name: amounts for name, amounts in offered.items() if name not in cordoned}
    node, missing = reference.choose(pod, admitted, placed, taken)
    assert found.nearest == (node or "")
    assert dict(found.missing) == (missing or {})
    assert found.is_short == (bool(admitted) and not found.fits)
