"""The charges of exclusive pods: the examples of the design document, and the reference implementation."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing import quota
from bayplan.enforcing.quota import Charger, QuotaLimits
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.reading import questions
from reference import quota as reference_implementation
from reference import strategies

HOSTNAME = "kubernetes.io/hostname"
GI = 1024**3


def node(name, cpu, memory, **labels):
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, "cluster": "one", **labels}},
        "status": {"allocatable": {"cpu": str(cpu), "memory": f"{memory}Gi"}},
    }


# 28 cpu and 100 GiB in all; the "largest node" of the design is big, the average node has 7 cpu and 25 GiB.
NODES = [
    node("small-1", 2, 4, zone="a"),
    node("small-2", 2, 4, zone="b"),
    node("big", 16, 64, zone="b"),
    node("fast", 8, 28, zone="c", disk="ssd"),
]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RUNNING = "requiredDuringSchedulingRequiredDuringExecution"


def exclusive(key=HOSTNAME, name="p", when=REQUIRED, node="", namespace="research", **spec):
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": key}
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": {}},
        "spec": {
            "containers": [{"name": "c"}],
            "nodeName": node,
            "affinity": {"podAntiAffinity": {when: [term]}},
            **spec,
        },
    }


def situation(*pods, pod, semantics=UPSTREAM, nodes=NODES):
    switches = msgspec.to_builtins(semantics)
    del switches["kubernetesVersion"]  # an option of its own
    asked = {"nodes": nodes, "pods": pods, "pod": pod, "options": {"switches": switches}}
    return questions.pod_situation_of(msgspec.convert(asked, questions.PodQuestion))


def charged(pod, charge="largest", **how):
    """The cpu and GiB that the pod is charged, pending or running."""
    found = situation(*([pod] if pod["spec"]["nodeName"] else []), pod=pod, **how)
    charger = Charger(found.index, charge)
    (amounts,) = [c.amounts for c in charger.placed()] or [getattr(charger.pending(found.workload), "amounts", None)]
    if amounts is None:
        return None
    held = dict(amounts)
    return held.get("cpu", 0) / 1000, held.get("memory", 0) / GI


@pytest.mark.parametrize("when", [REQUIRED, RUNNING])
@pytest.mark.parametrize("pod, largest, average", [
    # "exclusive access to a node … charge for the resources of the average or largest node in the cluster"
    ({}, (16, 64), (7, 25)),
    # "all pods using a 'cluster' TopologyKey … charge for the resources of the entire cluster"
    ({"key": "cluster"}, (28, 100), (28, 100)),
    # "not charge for the average/largest machine if the PodSpec constrains the pod to a specific machine"
    ({"nodeSelector": {HOSTNAME: "small-1"}}, (2, 4), (2, 4)),
    ({"nodeSelector": {"disk": "ssd"}}, (8, 28), (8, 28)),
    # "once the pod is scheduled, the quota charge should be adjusted down to … the actual machine"
    ({"node": "small-2"}, (2, 4), (2, 4)),
    ({"node": "big"}, (16, 64), (16, 64)),
    # Zones: a has 2 and 4, b 18 and 68, c 8 and 28.
    ({"key": "zone"}, (18, 68), (28 / 3 + 0.001 / 3 * 2, 100 / 3 + 1 / 3 / GI * 2)),
    ({"key": "zone", "nodeSelector": {"zone": "a"}}, (2, 4), (2, 4)),
    # A domain is blocked whole, including nodes on which the pod itself cannot be placed.
    ({"key": "zone", "nodeSelector": {HOSTNAME: "small-2"}}, (18, 68), (18, 68)),
    ({"key": "zone", "node": "small-2"}, (18, 68), (18, 68)),
    ({"key": "cluster", "node": "small-2"}, (28, 100), (28, 100)),
    # Where no node has the label, nothing is blocked.
    ({"key": "rack"}, (0, 0), (0, 0)),
    # A node that does not exist yet may be any.
    ({"nodeSelector": {"gpu": "yes"}}, (16, 64), (7, 25)),
])  # fmt: skip
def test_the_examples_of_the_design(pod, largest, average, when):
    assert charged(exclusive(when=when, **pod)) == pytest.approx(largest)
    assert charged(exclusive(when=when, **pod), "average") == pytest.approx(average)


def expression(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def changed(**fields):
    pod = exclusive("zone")
    pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0].update(fields)
    return pod


@pytest.mark.parametrize("pod, upstream, design", [
    (changed(), (18, 68), (18, 68)),
    (changed(labelSelector={"matchLabels": {"app": "web"}}), None, None),
    (changed(labelSelector=None), None, None),
    (changed(namespaceSelector=None), None, None),
    (changed(namespaceSelector=None, namespaces=[]), None, (18, 68)),
    (changed(namespaceSelector={"matchLabels": {"team": "a"}}), None, None),
    (changed(labelSelector=expression("never-set", "DoesNotExist")), (18, 68), (18, 68)),
    (changed(labelSelector=expression("app", "NotIn", "nobody")), (18, 68), (18, 68)),
    (changed(labelSelector=expression("app", "Exists")), None, None),
    (changed(namespaceSelector=expression("kubernetes.io/metadata.name", "Exists")), (18, 68), (18, 68)),
    (changed(namespaceSelector=expression("never-set", "DoesNotExist")), (18, 68), (18, 68)),
    (changed(namespaceSelector=expression("team", "Exists")), None, None),
    (changed(tolerateNamespaces=["kube-system"]), (18, 68), (18, 68)),
    (exclusive("zone", namespace="kube-system"), (18, 68), None),  # the rule of a daemon excludes no pods
])  # fmt: skip
def test_only_pods_that_exclude_all_others_are_charged(pod, upstream, design):
    assert charged(pod, semantics=UPSTREAM) == upstream
    assert charged(pod, semantics=DESIGN) == design


def test_a_list_of_all_namespaces_that_exist_is_charged():
    listed = changed(namespaceSelector=None, namespaces=["a", "b", "c"])
    found = situation(pod=listed)
    charger = Charger(found.index)
    assert charger.pending(found.workload) is None
    for name in ("a", "b", "c", "research", "kube-system"):
        found.index.set_namespace(name, {})
    assert charger.pending(found.workload).exclusion.keys == ("zone",)
    found.index.set_namespace("d", {})
    assert charger.pending(found.workload) is None


def test_rules_over_several_keys_are_charged_for_the_union_of_domains():
    pod = exclusive("zone")
    other = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "rack"}
    pod["spec"]["affinity"]["podAntiAffinity"][RUNNING] = [other]
    racked = [
        {**n, "metadata": {**n["metadata"], "labels": {**n["metadata"]["labels"], "rack": rack}}}
        for n, rack in zip(NODES, "1122", strict=True)
    ]
    # small-1 blocks zone a and rack 1: both small nodes and, by no rule, nothing else.
    pod["spec"]["nodeName"] = "small-1"
    assert charged(pod, nodes=racked) == (4, 8)
    pod["spec"]["nodeName"] = "big"
    assert charged(pod, nodes=racked) == (26, 96)


def test_a_charge_names_its_domains_and_terms():
    found = situation(exclusive("zone", "placed", node="big"), pod=exclusive(name="pending"))
    charger = Charger(found.index)
    (placed,), pending = charger.placed(), charger.pending(found.workload)
    assert (placed.workload, placed.node, placed.domains, placed.n_nodes) == ("research/placed", "big", ("zone=b",), 2)
    assert (pending.node, pending.domains, pending.n_domains, pending.n_nodes) == ("", (), 4, 1)
    assert pending.exclusion.terms == (f"spec.affinity.podAntiAffinity.{REQUIRED}[0]",)
    assert not placed.whole_cluster
    assert Charger(found.index).pending(situation(pod=exclusive("cluster")).workload).whole_cluster


def test_charges_follow_the_nodes_and_the_pods():
    found = situation(exclusive("zone", "placed", node="big"), pod=exclusive())
    charger = Charger(found.index)
    assert dict(charger.pending(found.workload).amounts)["cpu"] == 16000
    found.index.remove_target("big")
    assert dict(charger.pending(found.workload).amounts)["cpu"] == 8000
    assert list(charger.placed()) == []  # its node is gone, and with it the domain it blocked
    with_gpu = msgspec.structs.replace(
        found.workload,
        name="gpu",
        needs=msgspec.structs.replace(
            found.workload.needs,
            requests=msgspec.structs.replace(found.workload.needs.requests, amounts=(("example.com/gpu", 1),)),
        ),
    )
    found.index.add(with_gpu, "fast")  # a resource that no node has
    assert [dict(c.amounts)["cpu"] for c in charger.placed(["research"])] == [8000]
    assert list(charger.placed(["shop"])) == []


@pytest.mark.parametrize("charge", ["largest", "average"])
@pytest.mark.parametrize("preset", ["upstream", "design"])
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_reference_implementation_charges_the_same(preset, charge, seed):
    question = strategies.seeded(seed, presets=(preset,))
    for n, pod in enumerate([question["pod"], *question["pods"]]):
        if (seed >> n) % 2:  # few random rules exclude all pods, so some are made to
            keys = (HOSTNAME, "topology.kubernetes.io/zone", "rack")
            pod["spec"]["affinity"] = exclusive(keys[(seed >> n) % 3])["spec"]["affinity"] | {
                "nodeAffinity": (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
            }
            if seed % 5 == 0:
                pod["spec"]["affinity"]["podAntiAffinity"][RUNNING] = exclusive(keys[n % 3])["spec"]["affinity"][
                    "podAntiAffinity"
                ][REQUIRED]
    asked = msgspec.convert(question, questions.PodQuestion)
    found = questions.pod_situation_of(asked)
    pending = msgspec.structs.replace(found.workload, requested_target="")
    charger = Charger(found.index, charge)
    ours = {c.workload: dict(c.amounts) for c in (*charger.placed(), charger.pending(pending)) if c is not None}
    question["pod"]["spec"].pop("nodeName", None)
    assert ours == reference_implementation.charges(question, found.index.semantics, charge)


# Limits


def amounts(cpu, memory=None):
    return (("cpu", cpu * 1000), *([("memory", memory * GI)] if memory is not None else []))


def charge(cpu, memory, name="p", namespace="research"):
    found = situation(pod=exclusive(name=name, namespace=namespace, nodeSelector={HOSTNAME: "big"}))
    return msgspec.structs.replace(Charger(found.index).pending(found.workload), amounts=amounts(cpu, memory))


def test_accounts_add_up_by_namespace():
    limits = QuotaLimits({"research": amounts(20), "idle": amounts(1)}, amounts(4, 100))
    charges = [charge(16, 64, "a"), charge(8, 28, "b"), charge(2, 4, "c", "shop"), charge(1, 4, "d", "shop")]
    idle, research, shop = quota.accounts(charges, limits)
    assert (idle.namespace, idle.charged, idle.exceeded) == ("idle", (), ())
    assert (research.charged, research.exceeded) == (amounts(24, 92), ("cpu",))
    assert [c.workload for c in research.charges] == ["research/a", "research/b"]
    assert (shop.charged, shop.limits, shop.exceeded) == (amounts(3, 8), amounts(4, 100), ())


@pytest.mark.parametrize("used, limits, said", [
    ((), None, ""),
    ((), amounts(16, 64), ""),
    (amounts(1), amounts(16), "exceeded quota: q, requested: cpu=16, used: cpu=1, limited: cpu=16"),
    ((), amounts(8, 32), "exceeded quota: q, requested: cpu=16,memory=64Gi, used: cpu=0,memory=0, limited: cpu=8,memory=32Gi"),
    (amounts(100, 0), (("memory", 64 * GI),), ""),  # a resource that is not named is not limited
    (amounts(100), (("example.com/gpu", 0),), ""),  # and one that is not requested exceeds nothing
    (amounts(1_000_000), amounts(2_000_000), ""),  # limits may exceed the capacity
])  # fmt: skip
def test_what_exceeds_a_limit(used, limits, said):
    assert quota.quota_rejection(charge(16, 64), used, limits, "q") == said
