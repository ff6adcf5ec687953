"""VolumeRestrictions: one pod at a time for a ReadWriteOncePod claim."""

import pytest

from bayplan.rules.volume_restrictions import VolumeRestrictions
from rules.shorthand import claim, pod, run, uses

IN_USE = (
    "U node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)


@pytest.mark.parametrize(
    "modes, placed, asked, fits",
    [
        (["ReadWriteOncePod"], [], "x", True),
        (["ReadWriteOncePod"], ["x"], "x", False),
        (["ReadWriteOncePod"], ["y"], "x", True),
        (["ReadWriteOncePod"], ["x"], "y x", False),
        (["ReadWriteOncePod"], ["x"], "", True),
        (["ReadWriteOnce"], ["x"], "x", True),  # once for each node, not for each pod
        (["ReadWriteMany"], ["x"], "x", True),
        (["ReadWriteOnce", "ReadWriteOncePod"], ["x"], "x", False),
    ],
)
def test_one_pod_at_a_time(modes, placed, asked, fits):
    """On every node, wherever the other pod runs."""
    objects = [claim("x", modes=modes), claim("y", modes=modes)]
    pods = [pod(f"old-{i}@a", volumes=uses(*text.split())) for i, text in enumerate(placed)]
    found = run(VolumeRestrictions(), pod("new", volumes=uses(*asked.split())), "a; b", pods, objects)
    assert found.rejected == ({} if fits else {"a": IN_USE, "b": IN_USE})


def test_a_claim_of_another_namespace_is_another_claim():
    objects = [claim("x", modes=["ReadWriteOncePod"]), claim("shop/x", modes=["ReadWriteOncePod"])]
    placed = [pod("shop/old@a", volumes=uses("x"))]
    assert run(VolumeRestrictions(), pod("new", volumes=uses("x")), "a", placed, objects).rejected == {}


def test_a_claim_that_does_not_exist():
    found = run(VolumeRestrictions(), pod("new", volumes=uses("x")), "a")
    assert found.all == 'UU persistentvolumeclaim "x" not found'


def test_evidence_names_the_claim_and_its_users():
    objects = [claim("x", modes=["ReadWriteOncePod"]), claim("y")]
    placed = [pod("old@a", volumes=uses("x", "y")), pod("older@b", volumes=uses("x"))]
    (failure,) = run(VolumeRestrictions(), pod("new", volumes=uses("x", "y")), "a; b", placed, objects).failures["b"]
    assert (failure.term, failure.peers) == ("default/x", ("default/old", "default/older"))
