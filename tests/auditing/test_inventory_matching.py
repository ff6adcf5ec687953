"""Obfuscated labels beside an inventory: what must agree is which nodes share a machine, not what it is called."""

import pytest
from scenery import finding, judge, node, verdicts

from bayplan.auditing.catalogue import Catalogue

CURRENT = "scs-0214-labels-current"
MACHINES = "scs-0214-cp-machines"
HASHES = {"a": "9f86d081884c7d659a2f", "b": "60303ae22b998861bce3", "c": "fd61a03af4f77d870fc2"}


def control_plane(*labels, zones=""):
    """A control-plane node for each label; `-` has none."""
    return [node(f"cp-{i}", "cp", f"{(zones or 'z' * len(labels))[i]}/{label}") for i, label in enumerate(labels)]


def inventory(*hosts, level="host"):
    return {f"cp-{i}": {level: host} for i, host in enumerate(hosts) if host != "-"}


@pytest.mark.parametrize("labels, hosts, current, machines", [
    ("abc", "123",  "PASS", "PASS"),
    ("aab", "112",  "PASS", "PASS"),
    ("aaa", "111",  "PASS", "FAIL"),
    ("abc", "112",  "FAIL", "PASS"),       # a live migration put two on one machine
    ("aab", "123",  "FAIL", "PASS"),       # the label says one machine, the inventory two
    ("abc", "111",  "FAIL", "FAIL"),       # what the inventory has observed decides
    ("ab-", "121",  "PASS", "PASS"),
    ("aa-", "--1",  "UNDECIDED", "UNDECIDED"),  # the hash and the name may be one machine
    ("a-", "12",    "PASS", "PASS"),       # both are in the inventory
    ("aab", "1--",  "PASS", "PASS"),
    ("ab-", "1-2",  "PASS", "PASS"),       # b and 2 may be one machine, but not the first
])  # fmt: skip
def test_hashed_labels_agree_by_grouping(labels, hosts, current, machines):
    given = control_plane(*(HASHES.get(label, "-") for label in labels))
    found = judge(given, inventory=inventory(*(f"compute-{host}" if host != "-" else "-" for host in hosts)))
    assert verdicts(found)[CURRENT] == current
    assert verdicts(found)[MACHINES] == machines


def test_a_hash_and_a_name_that_may_be_one_machine_are_not_two():
    given = control_plane(HASHES["a"], "-")
    found = judge(given, inventory={"cp-1": {"host": "compute-1"}})
    assert verdicts(found)[MACHINES] == "UNDECIDED"


def test_different_hashes_are_different_machines_whatever_is_missing():
    found = judge(control_plane(HASHES["a"], HASHES["b"], "-"), inventory={"cp-2": {"host": "compute-1"}})
    assert verdicts(found)[MACHINES] == "PASS"
    assert verdicts(found)["fd-quorum-etcd-host"] == "UNDECIDED"  # the third may share a machine with either


def test_a_hash_may_be_the_hash_of_a_machine_whose_label_is_plain():
    found = judge(control_plane("h1", HASHES["a"]), inventory={"cp-0": {"host": "h1"}})
    assert verdicts(found)[MACHINES] == "UNDECIDED"


def test_nodes_of_one_hash_share_a_machine_also_where_it_may_be_one_of_the_inventory():
    workers = [node(f"w-{i}", "worker", "z/-") for i in range(3)]
    found = judge([*control_plane(HASHES["a"], HASHES["a"]), *workers], inventory={
        f"w-{i}": {"host": f"h{i}"} for i in range(3)
    })  # fmt: skip
    assert verdicts(found)[MACHINES] == "FAIL"


def test_nodes_of_one_machine_share_it_also_where_it_may_be_that_of_a_hash():
    others = [node(f"w-{i}", "worker", f"z/{HASHES[label]}") for i, label in enumerate("abc")]
    found = judge([*control_plane("-", "-"), *others], inventory=inventory("h1", "h1"))
    assert verdicts(found)[MACHINES] == "FAIL"


def test_a_hash_and_a_name_of_one_machine_contradict_each_other():
    found = judge(control_plane("h1", HASHES["a"], HASHES["b"]), inventory=inventory("h1", "h1", "h2"))
    assert verdicts(found)[CURRENT] == "FAIL"
    assert finding(found, CURRENT).message == "cp-0, cp-1: one host by the inventory, 2 by label"


def test_contradictions_do_not_say_which_hash_is_which_machine():
    given = control_plane(HASHES["a"], HASHES["b"], HASHES["c"])
    stated = inventory("compute-1", "compute-1", "compute-2")
    found = judge(given, inventory=stated)
    message = finding(found, CURRENT).message
    assert message == "cp-0, cp-1: one host by the inventory, 2 by label"
    assert finding(found, CURRENT).nodes == ("cp-0", "cp-1")
    domains = {one.at("host") for one in found.layout.nodes}
    assert domains == {"host of cp-0", HASHES["c"]}
    revealed = judge(given, inventory=stated, catalogue=Catalogue(inventory_revealed=True))
    assert finding(revealed, CURRENT).message == f"{message} (compute-1: {HASHES['b']}, {HASHES['a']})"
    assert {one.at("host") for one in revealed.layout.nodes} == {"compute-1", "compute-2"}


def test_names_that_labels_and_the_inventory_share_are_compared_as_names():
    found = judge(control_plane("h1", "h2"), inventory=inventory("h2", "h1"))
    assert verdicts(found)[CURRENT] == "FAIL"  # they were swapped: by grouping this would not show
    assert "host h1, inventory says h2" in finding(found, CURRENT).message


def test_host_labels_with_names_of_their_own_are_obfuscated():
    found = judge(control_plane("room-1", "room-2"), inventory=inventory("compute-1", "compute-2"))
    assert verdicts(found)[CURRENT] == "PASS"


@pytest.mark.parametrize("zones, stated, verdict", [
    (("x", "y"),                         ("x", "y"), "PASS"),
    (("x", "y"),                         ("v", "w"), "FAIL"),  # names of zones are names: volumes need them
    ((HASHES["a"], HASHES["b"]),         ("v", "w"), "PASS"),
    ((HASHES["a"], HASHES["a"]),         ("v", "w"), "FAIL"),
])  # fmt: skip
def test_zones_are_obfuscated_only_by_hashes(zones, stated, verdict):
    given = [node(f"cp-{i}", "cp", f"{zone}/h{i}") for i, zone in enumerate(zones)]
    assert verdicts(judge(given, inventory=inventory(*stated, level="zone")))[CURRENT] == verdict
