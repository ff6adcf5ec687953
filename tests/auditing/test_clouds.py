"""Which clouds and sites nodes are in, and what does not prove it."""

import pytest
from scenery import finding, judge, node, nodes, verdicts

from bayplan.auditing import layout
from bayplan.auditing.catalogue import Catalogue

UNDECIDED, PASS, FAIL = "UNDECIDED", "PASS", "FAIL"


def servers(*provider_ids, **more):
    return [
        node(f"cp-{i}", "cp", f"z{i}/h{i}", region="-", provider_id=one, **more) for i, one in enumerate(provider_ids)
    ]


@pytest.mark.parametrize("provider_ids, verdict", [
    (("openstack:///1", "openstack:///2", "openstack:///3"),          UNDECIDED),  # any number of clouds
    (("openstack://east/1", "openstack://west/2", "openstack://south/3"), UNDECIDED),
    (("openstack://east/1", "openstack://east/2", "openstack://east/3"), FAIL),    # a region is in one cloud
    (("openstack://east/1", "openstack://east/2", "openstack://west/3"), FAIL),    # at best two of three
    (("openstack:///1", "aws:///2", "gce:///3"),                      PASS),
    (("openstack:///1", "openstack:///2", "gce:///3"),                UNDECIDED),
    (("aws:///1", "aws:///2", "aws:///3"),                            FAIL),
    (("vsphere://1", "vsphere://2", "vsphere://3"),                   UNDECIDED),
])  # fmt: skip
def test_an_equal_kind_of_provider_does_not_prove_one_cloud(provider_ids, verdict):
    found = judge(servers(*provider_ids), stages=[("loss-safe", "clouds")])
    assert verdicts(found)["stage"] == verdict


def test_labels_and_inventories_say_which_cloud_it_is():
    ids = ("openstack:///1", "openstack:///2", "openstack:///3")
    stage = [("distributed", "clouds")]
    labelled = [
        node(f"cp-{i}", "cp", f"z{i}/h{i}", provider_id=one, labels={"cloud": f"c{i}"}, region=f"r{i}")
        for i, one in enumerate(ids)
    ]
    assert verdicts(judge(labelled, stages=stage, catalogue=Catalogue().preferring("cloud", "cloud")))["stage"] == PASS
    stated = {f"cp-{i}": {"cloud": "private"} for i in range(3)}
    assert verdicts(judge(servers(*ids), stages=stage, inventory=stated))["stage"] == FAIL


def test_sites_are_the_last_stage_and_clouds_come_before():
    given = [node(f"cp-{i}", "cp", f"z{i}/h{i}", region=f"r{i}", provider_id=f"aws:///{i}") for i in range(3)]
    assert str(judge(given).stage) == "distributed over sites, loss-safe for sites"
    assert list(layout.STAGES) == ["machines", "zones", "clouds", "sites"]


def test_contradictory_labels_reach_no_site():
    given = nodes("cp x/a r", "cp x/b s", "cp x/c t")  # one zone in three regions
    found = judge(given, stages=[("distributed", "sites")])
    assert verdicts(found)["stage"] == UNDECIDED
    assert found.stage.distributed.at_least == "machines"


def test_a_region_label_that_the_provider_id_contradicts_reaches_no_site():
    given = [
        node(f"cp-{i}", "cp", f"z{i}/h{i}", region=region, provider_id=f"openstack://home/{i}")
        for i, region in enumerate(("home", "east", "west"))
    ]
    found = judge(given, stages=[("distributed", "sites")])
    assert verdicts(found)["scs-0214-labels-current"] == FAIL
    assert "region east, the provider id says home" in finding(found, "scs-0214-labels-current").message
    assert verdicts(found)["stage"] == UNDECIDED


def test_a_hidden_control_plane_has_no_stage():
    found = judge(nodes("worker x/a", "worker y/b"))
    assert str(found.stage) == "of unknown stage: no part of it is visible"
    assert "unknown" in finding(found, "stage").message
