"""Which changes give an unschedulable pod a queueing hint: one line per rule that rejects it and change."""

import msgspec
import pytest

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.unschedulable_pods import UnschedulableClass
from bayplan.rules import profiles
from bayplan.rules.resources_fit import ResourcesFit, ResourcesFitArguments
from rules.shorthand import claim, container, node, pod, situation_of, uses, volume

YES, NO = True, False
GPU = "example.com/gpu"
ROOM = {"cpu": "4", "pods": "10", GPU: "0"}
IGNORING_GPUS = msgspec.structs.replace(
    profiles.default_profile(),
    arguments={ResourcesFit.name: ResourcesFitArguments(ignored_resources=frozenset({GPU}))},
)


def old(text, priority=0, **more):
    """A placed pod, `NAME@NODE LABELS`, which requests one cpu unless it says otherwise."""
    spec = {key: more.pop(key) for key in ("cpu", "port") if key in more}
    ports = [{"hostPort": spec["port"], "containerPort": 1}] if "port" in spec else ()
    return pod(text, priority=priority, containers=[container(cpu=spec.get("cpu", "1"), ports=ports)], **more)


def new(cpu="1", priority=0, gpus="0", port=None, **more):
    ports = [{"hostPort": port, "containerPort": 1}] if port else ()
    return pod("new app=web", priority=priority, containers=[container(cpu=cpu, ports=ports, **{GPU: gpus})], **more)


def hint(asked, on, pods, change, *, objects=(), profile=None, absent=()):
    situation = situation_of(asked, on, [*pods, *absent], objects)
    index, waiting = situation.index, {}
    for written in absent:
        name = written["metadata"]["name"]
        record = index.records[f"default/{name}"]
        waiting[name] = (record.workload, written["spec"]["nodeName"])
        index.remove(f"default/{name}")
    engine = Engine(index, profiles.pod_rules(profile))
    unschedulable = UnschedulableClass()
    unschedulable.members[situation.workload.key] = PendingPod(None, situation.workload)
    unschedulable.record(filtering.run(situation.workload, engine), index)
    before = index.journal.end
    change(index, waiting)
    return any(unschedulable.queueing_hint(each, index) for each in index.journal.since(before))


def comes(name):
    return lambda index, waiting: index.add(*waiting[name])


def leaves(name):
    return lambda index, waiting: index.remove(f"default/{name}")


# Resources


@pytest.mark.parametrize(
    "asked, pods, leaving, hinted",
    [
        (new(cpu="2"), [old("a@n", cpu="1"), old("b@n", cpu="2")], "b", YES),
        (new(cpu="2"), [old("a@n", cpu="1"), old("b@n", cpu="3")], "a", NO),  # too little is free
        (new(cpu="2"), [old("a@n", cpu="4"), old("b@n", cpu="0")], "b", NO),
        (new(cpu="0"), [old("a@n", cpu="5"), *(old(f"p{i}@n", cpu="0") for i in range(9))], "p0", YES),  # overcommitted
    ],
)
def test_a_pod_that_leaves_counts_if_enough_is_free_then(asked, pods, leaving, hinted):
    assert hint(asked, [node("n", **ROOM)], pods, leaves(leaving)) is hinted


@pytest.mark.parametrize(
    "priority, policy, leaving, hinted",
    [
        (5, "PreemptLowerPriority", "important", YES),  # what is missing is with a pod that can be evicted now
        (5, "PreemptLowerPriority", "equal", YES),
        (5, "PreemptLowerPriority", "small", NO),  # it could have been evicted before
        (5, "Never", "important", NO),
        (0, "PreemptLowerPriority", "important", NO),  # no pod has a lower priority
    ],
)
def test_a_pod_that_leaves_counts_if_preemption_frees_the_rest(priority, policy, leaving, hinted):
    pods = [old("important@n", 9), old("equal@n", 5), old("small@n"), old("victim@n")]
    asked = new(cpu="2", priority=priority, preemptionPolicy=policy)
    assert hint(asked, [node("n", **ROOM)], pods, leaves(leaving)) is hinted


@pytest.mark.parametrize("profile, hinted", [(IGNORING_GPUS, YES), (None, NO)])
def test_a_resource_counts_unless_the_profile_ignores_it(profile, hinted):
    asked, pods = new(cpu="4", gpus="1"), [old("a@n", cpu="4")]
    assert hint(asked, [node("n", **ROOM)], pods, leaves("a"), profile=profile) is hinted


@pytest.mark.parametrize("taints, hinted", [([], YES), ([{"key": "k", "effect": "NoSchedule"}], NO)])
def test_a_node_that_is_rejected_for_itself_does_not_count(taints, hinted):
    on = [node("n", taints=taints, **ROOM), node("other", cpu="0")]
    assert hint(new(cpu="4"), on, [old("a@n", cpu="4")], leaves("a")) is hinted


# Ports, volumes and claims


@pytest.mark.parametrize("leaving, hinted", [("holder", YES), ("other", NO)])
def test_a_port_is_free_once_its_holder_has_left(leaving, hinted):
    pods = [old("holder@n", port=80), old("other@n")]
    assert hint(new(port=80), [node("n", **ROOM)], pods, leaves(leaving)) is hinted


LIMIT = {
    "kind": "CSINode",
    "metadata": {"name": "n"},
    "spec": {"drivers": [{"name": "csi", "allocatable": {"count": 1}}]},
}
VOLUMES = [each for x in "xyz" for each in (claim(x, f"pv-{x}"), volume(f"pv-{x}", driver="csi"))]


@pytest.mark.parametrize(
    "change, hinted",
    [
        (leaves("holder"), YES),
        (leaves("plain"), NO),
        (comes("sharing"), YES),  # the volume is attached for it, and counts once
        (comes("sharing-elsewhere"), NO),
        (comes("holding"), NO),
        (lambda index, _: index.set_stored("attach_limits", "n", None), YES),
    ],
)
def test_a_volume_that_a_node_cannot_attach(change, hinted):
    pods = [old("holder@n", volumes=uses("y")), old("plain@n")]
    absent = [
        old("sharing@n", volumes=uses("x")),
        old("sharing-elsewhere@full", volumes=uses("x")),
        old("holding@n", volumes=uses("z")),
    ]
    on = [node("n", **ROOM), node("full", cpu="0")]
    assert hint(new(volumes=uses("x")), on, pods, change, objects=[*VOLUMES, LIMIT], absent=absent) is hinted


@pytest.mark.parametrize(
    "change, hinted",
    [(leaves("user"), YES), (leaves("other"), NO), (comes("third"), NO), (comes("again"), NO)],
)
def test_a_claim_that_one_pod_can_use(change, hinted):
    objects = [claim(x, f"pv-{x}", modes=["ReadWriteOncePod"]) for x in "xyz"] + [volume(f"pv-{x}") for x in "xyz"]
    pods = [old("user@n", volumes=uses("x")), old("other@n", volumes=uses("y"))]
    absent = [old("third@n", volumes=uses("z")), old("again@n", volumes=uses("x"))]
    on = [node("n", **ROOM)]
    assert hint(new(volumes=uses("x")), on, pods, change, objects=objects, absent=absent) is hinted


@pytest.mark.parametrize("name, hinted", [("x", YES), ("y", NO)])
def test_a_claim_that_does_not_exist(name, hinted):
    known = situation_of(pod("any"), "n", (), [claim("x"), claim("y")]).index.storage.claims
    comes_to_be = f"default/{name}"
    asked = new(volumes=uses("x"))
    change = lambda index, _: index.set_claim(comes_to_be, known[comes_to_be])  # noqa: E731
    assert hint(asked, [node("n", **ROOM)], [old("a@n")], change) is hinted
    assert hint(asked, [node("n", **ROOM)], [old("a@n")], leaves("a")) is NO


# Peers


@pytest.mark.parametrize(
    "terms, change, hinted",
    [
        ({"away": "app=db by kubernetes.io/hostname"}, leaves("db"), YES),
        ({"away": "app=db by kubernetes.io/hostname"}, leaves("other"), NO),
        ({"near": "app=cache by kubernetes.io/hostname"}, comes("cache"), YES),
        ({"near": "app=cache by kubernetes.io/hostname"}, leaves("other"), NO),
        ({"prefers": "1 app=db by kubernetes.io/hostname"}, leaves("db"), NO),  # it only scores: resources are short
    ],
)
def test_peers(terms, change, hinted):
    pods, absent = [old("db@n app=db"), old("other@n", cpu="3")], [old("cache@n app=cache", cpu="0")]
    asked = new(cpu="4" if "prefers" in terms else "0", **terms)
    on = [node("n kubernetes.io/hostname=n", **ROOM)]
    assert hint(asked, on, pods, change, absent=absent) is hinted


def test_a_peer_that_would_remain_after_an_eviction_counts_although_no_rule_about_peers_rejects_the_node():
    """The victim is the only peer; with another one of higher priority it can be evicted."""
    near = "app=cache by kubernetes.io/hostname"
    pods, absent = [old("victim@n app=cache", cpu="4")], [old("cache@n app=cache", 9, cpu="0")]
    on = [node("n kubernetes.io/hostname=n", **ROOM)]
    assert hint(new(cpu="4", priority=5, near=near), on, pods, comes("cache"), absent=absent) is YES
    never = new(cpu="4", priority=5, near=near, preemptionPolicy="Never")
    assert hint(never, on, pods, comes("cache"), absent=absent) is NO


# Nodes, namespaces, nominated pods


def test_changes_of_nodes_and_namespaces_always_count():
    on, pods = [node("n", **ROOM)], [old("a@n", cpu="4")]
    assert hint(new(), on, pods, lambda index, _: index.set_namespace("any", {"some": "label"})) is YES
    assert hint(new(), on, pods, lambda index, _: index.remove_target("n")) is YES


def test_a_node_that_no_rule_rejects_is_taken_by_nominated_pods_and_may_have_room_for_both():
    assert hint(new(), [node("n", **ROOM)], [old("a@n")], leaves("a")) is YES
