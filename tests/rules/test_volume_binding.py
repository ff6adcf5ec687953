"""VolumeBinding: bound volumes must be reachable, unbound claims must find or provision a volume."""

import pytest

from bayplan.rules.volume_binding import VolumeBinding
from rules.shorthand import claim, pod, run, storage_class, uses, volume

ELSEWHERE = "UU node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "UU node(s) didn't find available persistent volumes to bind"
GONE = "UU node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NO_SPACE = "UU node(s) did not have enough free storage"
UNBOUND = "UU pod has unbound immediate PersistentVolumeClaims"
ZONES = "a zone=a; b zone=b; bare"
LOCAL = storage_class(provisioner="kubernetes.io/no-provisioner")
SELECTED = "volume.kubernetes.io/selected-node"


def ask(claims, objects, on=ZONES):
    return run(VolumeBinding(), pod("new", volumes=uses(*claims)), on, (), objects)


@pytest.mark.parametrize(
    "objects, answer",
    [
        ([claim("data", "pv"), volume("pv")], ""),
        ([], 'UU persistentvolumeclaim "data" not found'),
        ([claim("shop/data", "pv"), volume("pv")], 'UU persistentvolumeclaim "data" not found'),
        (
            [claim("data", "pv", phase="Lost")],
            'UU persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
        ),
        ([claim("data", "pv", terminating=True), volume("pv")], 'UU persistentvolumeclaim "data" is being deleted'),
        ([claim("data")], UNBOUND),  # without its class it does not wait for a pod
        ([claim("data"), storage_class(mode="Immediate")], UNBOUND),
        ([claim("data"), storage_class(mode=None)], UNBOUND),
        ([claim("data"), storage_class()], ""),
        ([claim("data"), storage_class("slow")], UNBOUND),
        ([claim("data", "pv", bound=False), volume("pv"), storage_class()], UNBOUND),  # it names a volume
        ([claim("data", "pv"), volume("pv"), storage_class(mode="Immediate")], ""),
    ],
)
def test_what_is_decided_before_any_node(objects, answer):
    assert ask(["data"], objects).all == answer


def test_an_ephemeral_volume_waits_for_its_claim():
    asked = pod("new", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    text = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "new-scratch"'
    assert run(VolumeBinding(), asked, "a").all == f"UU {text}"


@pytest.mark.parametrize(
    "at, left",
    [
        (None, "a b bare"),
        (["zone=a"], "a"),
        (["zone in (a,b)"], "a b"),
        (["zone=a", "zone=b"], "a b"),  # terms are ORed
        (["zone=c"], ""),
        (["zone"], "a b"),
        (["!zone"], "bare"),
        (["zone notin (a)"], "b bare"),
        (["zone=a,disk=ssd"], ""),
        ([], ""),  # no term matches no node
        ([""], ""),
    ],
)
def test_the_node_affinity_of_a_bound_volume(at, left):
    found = ask(["data"], [claim("data", "pv"), volume("pv", at=at, phase="Bound")])
    assert found.rejected == dict.fromkeys({"a", "b", "bare"} - set(left.split()), ELSEWHERE)


def test_every_bound_volume_must_be_reachable():
    objects = [claim("x", "in-a"), volume("in-a", at=["zone=a"]), claim("y", "in-b"), volume("in-b", at=["zone=b"])]
    found = ask(["x", "y"], objects)
    assert found.rejected == dict.fromkeys(("a", "b", "bare"), ELSEWHERE)
    assert [failure.term for failure in found.failures["a"]] == ["default/y"]
    assert [failure.term for failure in found.failures["bare"]] == ["default/x", "default/y"]


def test_a_bound_volume_that_does_not_exist():
    found = ask(["data"], [claim("data", "pv")], "a")
    assert found.rejected == {"a": GONE}
    assert found.failures["a"][0].detail == "claim default/data is bound to pv, which does not exist"


@pytest.mark.parametrize(
    "asked, offered, fits",
    [
        (claim("data"), [], False),
        (claim("data"), [volume("pv")], True),
        (claim("data", size="1Gi"), [volume("pv", size="1Gi")], True),  # exactly as large
        (claim("data", size="1Gi"), [volume("pv", size="1023Mi")], False),
        (claim("data"), [volume("pv", size="9Gi")], True),
        (claim("data"), [volume("pv", storage_class="slow")], False),
        (claim("data"), [volume("pv", phase="Bound")], False),
        (claim("data"), [volume("pv", phase="Released")], False),
        (claim("data"), [volume("pv", terminating=True)], False),
        (claim("data"), [volume("pv", modes=["ReadOnlyMany"])], False),
        (claim("data"), [volume("pv", modes=["ReadOnlyMany", "ReadWriteOnce"])], True),
        (claim("data", modes=["ReadWriteOnce", "ReadWriteMany"]), [volume("pv")], False),  # all modes of the claim
        (claim("data"), [volume("pv", volumeMode="Block")], False),
        (claim("data", volumeMode="Block"), [volume("pv", volumeMode="Block")], True),
        (claim("data", volumeMode="Filesystem"), [volume("pv")], True),  # the default
        (claim("data", selector={"matchLabels": {"tier": "x"}}), [volume("pv", "tier=x")], True),
        (claim("data", selector={"matchLabels": {"tier": "x"}}), [volume("pv", "tier=y")], False),
        (claim("data", selector={}), [volume("pv")], True),
        (claim("data"), [volume("pv", claimRef={"namespace": "default", "name": "other"})], False),
        (claim("data"), [volume("pv", claimRef={"namespace": "default", "name": "data"})], True),
        (claim("data"), [volume("pv", claimRef={"namespace": "shop", "name": "data"})], False),
        (claim("data"), [volume("pv", claimRef={"namespace": "default", "name": "data", "uid": "uid-data"})], True),
        (claim("data"), [volume("pv", claimRef={"namespace": "default", "name": "data", "uid": "old"})], False),
    ],
)
def test_which_volume_an_unbound_claim_can_get(asked, offered, fits):
    assert ask(["data"], [asked, LOCAL, *offered], "a").rejected == ({} if fits else {"a": NO_VOLUME})


@pytest.mark.parametrize(
    "claims, offered, left",
    [
        (["x"], [volume("p", at=["zone=a"])], "a"),
        (["x"], [volume("p", at=["zone=a"]), volume("q", at=["zone=b"])], "a b"),
        (["x", "y"], [volume("p"), volume("q", at=["zone=a"])], "a"),  # each claim needs a volume of its own
        (["x", "y"], [volume("p")], ""),
        (["x", "y"], [volume("p"), volume("q")], "a b bare"),
        (["x", "big"], [volume("p", size="5Gi"), volume("q", size="1Gi")], "a b bare"),  # the smallest that is enough
        (["big", "x"], [volume("q", size="5Gi"), volume("r", size="5Gi", at=["zone=a"])], "a"),
        (
            ["x"],
            [volume("p", at=["zone=a"], claimRef={"namespace": "default", "name": "x"}), volume("q")],
            "a",
        ),  # its own
    ],
)
def test_claims_that_share_a_node(claims, offered, left):
    objects = [claim("x"), claim("y"), claim("big", size="5Gi"), LOCAL, *offered]
    found = ask(claims, objects)
    assert found.rejected == dict.fromkeys({"a", "b", "bare"} - set(left.split()), NO_VOLUME)


def test_the_smallest_claim_takes_its_volume_first():
    """Although the larger one needs that volume and the smaller one could take another: as kube-scheduler does."""
    both, one = ["ReadWriteOnce", "ReadWriteMany"], ["ReadWriteOnce"]
    objects = [claim("big", size="5Gi", modes=["ReadWriteMany"]), claim("x"), LOCAL]
    objects += [volume("p", size="5Gi", modes=both), volume("q", size="9Gi", modes=one)]
    assert ask(["big", "x"], objects, "a").rejected == {"a": NO_VOLUME}


@pytest.mark.parametrize(
    "provided, annotations, left",
    [
        (storage_class(), {}, "a b bare"),
        (storage_class(provisioner=""), {}, ""),
        (LOCAL, {}, ""),
        (storage_class(allowed=["zone in (a)"]), {}, "a"),
        (storage_class(allowed=["zone in (a)", "zone in (b)"]), {}, "a b"),
        (storage_class(allowed=["zone in (a,b)"]), {}, "a b"),
        (storage_class(allowed=["zone in (a), disk in (ssd)"]), {}, ""),
        (storage_class(), {SELECTED: "b"}, "b"),  # about to be provisioned there
        (storage_class(), {SELECTED: "gone"}, ""),
        (storage_class(allowed=["zone in (a)"]), {SELECTED: "b"}, ""),
        (LOCAL, {SELECTED: "a"}, ""),  # although a volume is available: it waits for a new one
    ],
)
def test_where_a_volume_can_be_provisioned(provided, annotations, left):
    existing = [volume("pv", at=["zone=a"])] if annotations else []
    found = ask(["data"], [claim("data", annotations=annotations), provided, *existing])
    assert found.rejected == dict.fromkeys({"a", "b", "bare"} - set(left.split()), NO_VOLUME)


def capacity(name, topology, **amounts):
    metadata = {"name": name, "namespace": "kube-system"}
    selected = {"matchLabels": topology} if topology is not None else None
    return {
        "kind": "CSIStorageCapacity",
        "metadata": metadata,
        "storageClassName": "fast",
        "nodeTopology": selected,
        **amounts,
    }


METERED = {"kind": "CSIDriver", "metadata": {"name": "csi.example"}, "spec": {"storageCapacity": True}}
UNMETERED = {"kind": "CSIDriver", "metadata": {"name": "csi.example"}, "spec": {"storageCapacity": False}}


@pytest.mark.parametrize(
    "size, objects, fits",
    [
        ("1Gi", [], True),
        ("1Gi", [UNMETERED], True),
        ("1Gi", [METERED], False),
        ("0", [METERED], True),
        ("1Gi", [METERED, capacity("c", {"zone": "a"}, capacity="1Gi")], True),  # exactly enough
        ("1Gi", [METERED, capacity("c", {"zone": "a"}, capacity="1023Mi")], False),
        ("1Gi", [METERED, capacity("c", {"zone": "b"}, capacity="9Gi")], False),
        ("1Gi", [METERED, capacity("c", {"zone": "a", "disk": "ssd"}, capacity="9Gi")], False),
        ("1Gi", [METERED, capacity("c", {}, capacity="1Gi")], True),  # everywhere
        ("1Gi", [METERED, capacity("c", None, capacity="1Gi")], False),  # nowhere
        ("1Gi", [METERED, capacity("c", {"zone": "a"})], False),
        ("1Gi", [METERED, capacity("c", {"zone": "a"}, capacity="9Gi", maximumVolumeSize="1Gi")], True),
        ("1Gi", [METERED, capacity("c", {"zone": "a"}, capacity="9Gi", maximumVolumeSize="1023Mi")], False),
        ("1Gi", [METERED, capacity("c", {"zone": "b"}, capacity="9Gi"), capacity("d", {"zone": "a"}, capacity="2Gi")], True),
        ("1Gi", [METERED, volume("pv")], True),  # a volume that exists needs no space
        ("1Gi", [METERED, {**capacity("c", {"zone": "a"}, capacity="9Gi"), "storageClassName": "slow"}], False),
    ],
)  # fmt: skip
def test_storage_capacity(size, objects, fits):
    asked = pod("new", volumes=uses("data"))
    objects = [claim("data", size=size), storage_class(), *objects]
    found = run(VolumeBinding(), asked, "a zone=a", (), objects, explained=False)
    assert found.rejected == ({} if fits else {"a": NO_SPACE})


def test_storage_capacity_of_a_topology_with_two_labels():
    asked, on = pod("new", volumes=uses("data")), "a zone=a; b zone=b disk=ssd; c zone=c disk=ssd"
    objects = [claim("data"), storage_class(), METERED, capacity("c", {"zone": "a", "disk": "ssd"}, capacity="9Gi")]
    found = run(VolumeBinding(), asked, on, (), objects, explained=False)
    assert found.rejected == dict.fromkeys("abc", NO_SPACE)


def test_evidence_of_an_unbound_claim():
    (failure,) = ask(["data"], [claim("data"), LOCAL], "a").failures["a"]
    assert (failure.term, failure.detail) == (
        "default/data",
        "no volume for claim default/data of class fast is available here",
    )


def test_evidence_of_a_volume_elsewhere():
    (failure,) = ask(["data"], [claim("data", "pv"), volume("pv", at=["zone=a"])]).failures["b"]
    assert failure.detail == "claim default/data is bound to pv, which requires zone In (a)"


def test_a_pod_without_claims_is_not_asked():
    assert run(VolumeBinding(), pod("new"), "a", (), [claim("data")]).rejected == {}
