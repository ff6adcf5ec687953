"""Host ports: which conflict, and whose they are."""

import pytest

from bayplan.rules.node_ports import NodePorts
from rules.shorthand import container, pod, run

TAKEN = "U node(s) didn't have free ports for the requested pod ports"
YES, NO = True, False


def ports(text):
    """`10.0.0.1:80/UDP` and `80`; the address and the protocol may be left out."""
    found = []
    for word in text.split():
        address, protocol = word.partition("/")[::2]
        ip, _, number = address.rpartition(":")
        port = {"containerPort": 1, "hostPort": int(number), "hostIP": ip, "protocol": protocol}
        found.append({key: value for key, value in port.items() if value or key == "hostPort"})
    return container(ports=found)


@pytest.mark.parametrize("taken, asked, fits", [
    ("80",            "80",            NO),
    ("80",            "81",            YES),
    ("80",            "80/TCP",        NO),   # TCP is the default
    ("80",            "80/UDP",        YES),
    ("80/SCTP",       "80/SCTP",       NO),
    ("10.0.0.1:80",   "10.0.0.2:80",   YES),
    ("10.0.0.1:80",   "10.0.0.1:80",   NO),
    ("10.0.0.1:80",   "0.0.0.0:80",    NO),   # all addresses include this one
    ("0.0.0.0:80",    "10.0.0.1:80",   NO),
    ("0.0.0.0:80",    "0.0.0.0:80",    NO),
    ("10.0.0.1:80",   "80",            NO),   # no address means all
    ("80",            "10.0.0.1:80",   NO),
    ("80",            "",              YES),
    ("",              "80",            YES),
    ("80 81",         "82 81",         NO),   # one of several
    ("0",             "0",             YES),  # host port 0 is none
])  # fmt: skip
def test_host_ports(taken, asked, fits):
    placed = [pod("old@a", containers=[ports(taken)])]
    found = run(NodePorts(), pod("new", containers=[ports(asked)]), "a; b", placed)
    assert found.rejected == ({} if fits else {"a": TAKEN})


def test_only_restartable_init_containers_hold_ports():
    once, always = ports("80"), {**ports("80"), "restartPolicy": "Always"}
    placed = [pod("old@a", initContainers=[always])]
    assert run(NodePorts(), pod("new", initContainers=[always]), "a", placed).rejected == {"a": TAKEN}
    assert run(NodePorts(), pod("new", initContainers=[once]), "a", placed).rejected == {}


def test_evidence_names_the_port_and_its_holders():
    placed = [
        pod("x@a", containers=[ports("10.0.0.1:80")]),
        pod("y@a", containers=[ports("10.0.0.2:80 81")]),
        pod("z@b", containers=[ports("80")]),
        pod("u@a", containers=[ports("80/UDP 82")]),
    ]
    found = run(NodePorts(), pod("new", containers=[ports("80 81 83")]), "a; b", placed).failures["a"]
    assert [(failure.detail, failure.peers) for failure in found] == [
        ("TCP port 80 of 0.0.0.0 is taken", ("default/x", "default/y")),
        ("TCP port 81 of 0.0.0.0 is taken", ("default/y",)),
    ]
    found = run(NodePorts(), pod("new", containers=[ports("10.0.0.1:80")]), "a", placed).failures["a"]
    assert [failure.peers for failure in found] == [("default/x",)]
