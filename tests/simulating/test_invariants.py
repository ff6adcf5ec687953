"""What holds at every moment of every simulation: what is counted step by step equals a count from scratch."""

import contextlib
from collections import Counter
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.controllers.scaled_values import scaled
from bayplan.simulating.disruptions import is_ready
from bayplan.simulating.simulation import Simulation
from bayplan.simulating.store import owner_of

from .clusters import ZONE, apart, autoscaler, budget, deployment, in_execution, node, simulate, workload

NODES = [f"n{n}" for n in range(4)]
NAMES = ("web", "api", "db")
OBJECTS = [
    *(node(name, "ab"[n % 2], cpu="4") for n, name in enumerate(NODES)),
    deployment("web", 4, cpu="500m", strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}),
    deployment("api", 2, pod=in_execution("podAffinity", "web", ZONE)),
    workload("StatefulSet", "db", 2, pod=apart("db")),
    workload("DaemonSet", "agent", cpu="100m"),
    budget("web", maxUnavailable="50%"),
    budget("db", minAvailable=1),
    autoscaler("api", least=1, most=4),
]
WHERE = st.sampled_from([*(f"node/{name}" for name in NODES), f"{ZONE}=a"])
STEPS = st.one_of(
    st.builds(lambda verb, where: {verb: where}, st.sampled_from(("lose", "recover", "drain", "cordon", "uncordon")), WHERE),
    st.builds(lambda name, n: {"scale": {name: n}}, st.sampled_from(("web", "db")), st.integers(0, 7)),
    st.builds(lambda name: {"restart": name}, st.sampled_from(NAMES)),
    st.builds(lambda n: {"load": {"api": n}}, st.integers(0, 6)),
    st.builds(lambda where, text: {"taint": {where: text}}, WHERE, st.sampled_from(("bad:NoExecute", "bad:NoSchedule", "bad-"))),
    st.builds(lambda n, app: {"relabel": {f"pod/db-{n}": {"app": app}}}, st.integers(0, 1), st.sampled_from(("db", "web"))),
    st.just({"rebalance": {"maxMoves": 2}}),
)  # fmt: skip
TIMELINES = st.lists(st.tuples(st.integers(1, 900), STEPS), min_size=1, max_size=12)


def check_counts(simulation):
    """Compare what was counted change by change with the store."""
    store, measures, lost = simulation.store, simulation.measures, simulation.kubelets.lost
    pods = list(store.pods())
    active = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    assert set(measures.pending.names()) == {key(pod) for pod in active if not pod.spec.node_name}
    serving = {key(pod) for pod in active if is_ready(pod) and pod.spec.node_name not in lost}
    assert measures.serving == serving
    ready = Counter(measures.root_of(pod) for pod in active if key(pod) in serving)
    for root, use in measures.workloads.items():
        assert use.ready == ready[root], root
    for one in store.of_kind("PodDisruptionBudget"):
        assert one.status.disruptions_allowed == allowed(one, store), one.metadata.name
    index = simulation.parts.index
    assert {str(name) for name in index.records} == {
        f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods if pod.spec.node_name
    }
    assert not any(name in store.pods_by_node for name in ("gone",))


def allowed(written, store):
    """The disruptions that a budget allows, counted by the definition."""
    chosen = written.spec.selector.match_labels
    pods = [pod for pod in store.pods() if chosen.items() <= (pod.metadata.labels or {}).items()]
    healthy = sum(is_ready(pod) and pod.metadata.deletion_timestamp is None for pod in pods)
    if written.spec.max_unavailable is None:
        return max(0, healthy - written.spec.min_available) if pods else 0
    roots = {}
    for pod in pods:
        owner = owner_of(pod)
        found = store.find(owner)
        root = (None if found is None else owner_of(found)) or owner
        controller = store.find(root)
        roots[root] = 0 if controller is None else controller.spec.replicas
    expected = sum(roots.values())
    desired = expected - scaled(written.spec.max_unavailable, expected, up=True)
    return max(0, healthy - max(0, desired)) if expected else 0


def key(pod):
    return ("Pod", pod.metadata.namespace, pod.metadata.name)


@contextlib.contextmanager
def checked():
    """Check every moment of the simulations inside the block."""
    settled = Simulation._settled

    def checking(simulation):
        check_counts(simulation)
        return settled(simulation)

    with mock.patch.object(Simulation, "_settled", checking):
        yield


@settings(deadline=None, max_examples=25)
@given(TIMELINES)
def test_counts_are_right_at_every_moment_and_a_recovered_cluster_comes_to_rest(timeline):
    at, steps = 60, []
    for pause, step in timeline:
        at += pause
        steps.append({"at": at, **step})
    mended = {"recover": f"{ZONE}=a", "uncordon": [f"node/{name}" for name in NODES]}
    steps.append({"at": at + 3600, "recover": [f"node/{name}" for name in NODES], "uncordon": mended["uncordon"]})
    steps.append(
        {
            "at": at + 3600,
            "taint": {f"node/{name}": ["bad-", "bad:NoSchedule-"] for name in NODES},
            "relabel": {"pod/db-0": {"app": "db"}},
        }
    )
    end = at + 3 * 3600
    with checked():
        run = simulate(OBJECTS, steps, lasts=end, at=[end], enforcement={"affinityGrace": "2m"})
    assert not any("internal error" in note or "sweep" in note for note in run.notes)
    terminating = Counter(
        pod.partition("/")[2].partition("-")[0] for pods in run.states[0].pods.values() for pod in pods
    )
    assert terminating["agent"] == len(NODES)
    final = run.to_dict()["states"][0]
    assert all(one["ready"] for one in final["nodes"].values())
