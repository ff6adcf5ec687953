"""VolumeZone: a pod runs in the zone and region that its volumes are labelled with."""

import pytest

from bayplan.rules.volume_zone import VolumeZone
from rules.shorthand import claim, pod, run, storage_class, uses, volume

ELSEWHERE = "UU node(s) had no available volume zone"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
YES, NO = True, False


def ask(objects, on, *claims):
    return run(VolumeZone(), pod("new", volumes=uses(*(claims or ["data"]))), on, (), objects)


@pytest.mark.parametrize("volume_labels, node, fits", [
    (f"{ZONE}=a",                 f"{ZONE}=a",                YES),
    (f"{ZONE}=a",                 f"{ZONE}=b",                NO),
    (f"{ZONE}=a",                 "",                         YES),  # a node without any such label is in a single zone
    (f"{ZONE}=a",                 f"{REGION}=r",              NO),   # but with another one it is not
    ("",                          f"{ZONE}=b",                YES),
    ("tier=x",                    f"{ZONE}=b",                YES),
    (f"{ZONE}=a__b",              f"{ZONE}=b",                YES),  # several zones
    (f"{ZONE}=a__b",              f"{ZONE}=a",                YES),
    (f"{ZONE}=a__b",              f"{ZONE}=c",                NO),
    (f"{ZONE}=a__b",              f"{ZONE}=a__b",             NO),
    (f"{REGION}=r",               f"{REGION}=r",              YES),
    (f"{REGION}=r",               f"{REGION}=s",              NO),
    (f"{ZONE}=a {REGION}=r",      f"{ZONE}=a {REGION}=s",     NO),   # both
    (f"{ZONE}=a {REGION}=r",      f"{ZONE}=a {REGION}=r",     YES),
    (f"{OLD_ZONE}=a",             f"{OLD_ZONE}=a",            YES),
    (f"{OLD_ZONE}=a",             f"{ZONE}=a",                YES),  # the label by its current name
    (f"{OLD_ZONE}=a",             f"{ZONE}=b",                NO),
    (f"{OLD_REGION}=r",           f"{REGION}=r",              YES),
    (f"{OLD_ZONE}=a",             f"{OLD_ZONE}=b {ZONE}=a",   NO),   # the old name comes first
    (f"{ZONE}=a",                 f"{OLD_ZONE}=a",            NO),   # not the other way round
])  # fmt: skip
def test_zones(volume_labels, node, fits):
    found = ask([claim("data", "pv"), volume("pv", volume_labels)], f"a {node}")
    assert found.rejected == ({} if fits else {"a": ELSEWHERE})


@pytest.mark.parametrize(
    "objects, answer",
    [
        ([claim("data", "pv"), volume("pv")], ""),
        ([], 'UU persistentvolumeclaim "data" not found'),
        ([claim("data", "pv")], 'UU persistentvolume "pv" not found'),
        ([claim("data", "pv", bound=False), volume("pv")], ""),  # naming the volume is enough
        ([claim("data", storage_class="")], "UU PersistentVolumeClaim had no pv name and storageClass name"),
        ([claim("data")], 'UU storageclass.storage.k8s.io "fast" not found'),
        ([claim("data"), storage_class(mode=None)], 'UU VolumeBindingMode not set for StorageClass "fast"'),
        ([claim("data"), storage_class(mode="Immediate")], "UU PersistentVolume had no name"),
        ([claim("data"), storage_class()], ""),  # bound once the pod is scheduled
    ],
)
def test_what_is_decided_before_any_node(objects, answer):
    assert ask(objects, "a").all == answer


def test_evidence_names_the_claim_and_the_zones():
    objects = [claim("x", "p"), volume("p", f"{ZONE}=a__b"), claim("y", "q"), volume("q", f"{ZONE}=c {REGION}=r")]
    found = ask(objects, f"n {ZONE}=c {REGION}=s", "x", "y").failures["n"]
    assert [(failure.term, failure.detail) for failure in found] == [
        ("default/x", f"the volume of default/x is in {ZONE}=a|b"),
        ("default/y", f"the volume of default/y is in {REGION}=r"),
    ]
