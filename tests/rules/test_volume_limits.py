"""NodeVolumeLimits: how many volumes a CSI driver attaches to a node."""

import pytest

from bayplan.rules.volume_limits import VolumeLimits
from rules.shorthand import claim, pod, run, storage_class, uses, volume

TOO_MANY = "U node(s) exceed max volume count"
DRIVER = "csi.example"


def limit(node, count, driver=DRIVER):
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    return {"kind": "CSINode", "metadata": {"name": node}, "spec": {"drivers": [{"name": driver, **allocatable}]}}


def bound(*names, driver=DRIVER):
    return [made for name in names for made in (claim(name, f"pv-{name}"), volume(f"pv-{name}", driver=driver))]


@pytest.mark.parametrize(
    "count, placed, asked, fits",
    [
        (1, [], "x", True),  # exactly the limit
        (0, [], "x", False),
        (1, ["y"], "x", False),
        (2, ["y"], "x", True),
        (2, ["y z"], "x", False),
        (2, ["y", "z"], "x", False),
        (2, [], "x y", True),
        (1, [], "x y", False),
        (2, ["z"], "x y", False),
        (1, ["x"], "x", True),  # the volume is attached already
        (0, ["x"], "x", True),
        (2, ["x", "x"], "x y", True),  # once for all pods that use it
        (2, ["x z"], "x y", False),
        (None, ["y", "z"], "x", True),  # no limit
        (1, ["y"], "", True),
    ],
)
def test_limits(count, placed, asked, fits):
    pods = [pod(f"old-{i}@a", volumes=uses(*text.split())) for i, text in enumerate(placed)]
    objects = [*bound("x", "y", "z"), limit("a", count)]
    found = run(VolumeLimits(), pod("new", volumes=uses(*asked.split())), "a; b", pods, objects)
    assert found.rejected == ({} if fits else {"a": TOO_MANY})


def test_each_driver_has_its_own_limit():
    both = {"name": DRIVER, "allocatable": {"count": 1}}, {"name": "other", "allocatable": {"count": 0}}
    nodes = {"kind": "CSINode", "metadata": {"name": "a"}, "spec": {"drivers": list(both)}}
    objects = [*bound("x"), *bound("y", driver="other"), nodes]
    assert run(VolumeLimits(), pod("new", volumes=uses("x")), "a", (), objects).rejected == {}
    found = run(VolumeLimits(), pod("new", volumes=uses("x", "y")), "a", (), objects)
    assert found.rejected == {"a": TOO_MANY}
    assert [failure.term for failure in found.failures["a"]] == ["other"]


def test_a_volume_that_is_not_provisioned_yet_counts():
    """For the driver that its class names."""
    objects = [claim("x"), storage_class(), limit("a", 0)]
    assert run(VolumeLimits(), pod("new", volumes=uses("x")), "a", (), objects).rejected == {"a": TOO_MANY}


def test_a_volume_that_is_still_attached_counts():
    """Although no pod of the node uses it any more."""
    source = {"attacher": DRIVER, "nodeName": "a", "source": {"persistentVolumeName": "pv-y"}}
    attached = {"kind": "VolumeAttachment", "metadata": {"name": "va"}, "spec": source}
    objects = [*bound("x", "y"), limit("a", 1), limit("b", 1), attached]
    assert run(VolumeLimits(), pod("new", volumes=uses("x")), "a; b", (), objects).rejected == {"a": TOO_MANY}


def test_a_volume_without_a_driver_does_not_count():
    objects = [claim("x", "pv"), volume("pv"), limit("a", 0)]
    assert run(VolumeLimits(), pod("new", volumes=uses("x")), "a", (), objects).rejected == {}


def test_evidence_names_the_driver_and_the_numbers():
    objects = [*bound("x", "y"), limit("a", 1)]
    placed = [pod("old@a", volumes=uses("y"))]
    (failure,) = run(VolumeLimits(), pod("new", volumes=uses("x")), "a", placed, objects).failures["a"]
    assert (failure.term, failure.detail) == (DRIVER, f"{DRIVER} attaches 1 volumes at most, and 1 are there")
