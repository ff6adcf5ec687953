"""Cordoned nodes."""

import pytest

from bayplan.rules.node_unschedulable import NodeUnschedulable
from rules.shorthand import node, pod, run, tolerations

CORDONED = "UU node(s) were unschedulable"
TAINT = "node.kubernetes.io/unschedulable"
YES, NO = True, False


@pytest.mark.parametrize("cordoned, tolerated, fits", [
    (False, "",                         YES),
    (True,  "",                         NO),
    (True,  "other",                    NO),
    (True,  TAINT,                      YES),
    (True,  f"{TAINT}:NoSchedule",      YES),
    (True,  f"{TAINT}:NoExecute",       NO),
    (True,  f"{TAINT}=true:NoSchedule", NO),   # the taint has no value
    (True,  f"{TAINT}=:NoSchedule",     YES),
    (True,  ":",                        YES),
])  # fmt: skip
def test_cordoned_nodes(cordoned, tolerated, fits):
    on = [node("a", unschedulable=cordoned), node("b")]
    found = run(NodeUnschedulable(), pod("new", tolerations=tolerations(tolerated)), on)
    assert found.rejected == ({} if fits else {"a": CORDONED})


def test_evidence_of_a_cordoned_node():
    (failure,) = run(NodeUnschedulable(), pod("new"), [node("a", unschedulable=True)]).failures["a"]
    assert failure.detail == "the node is cordoned (spec.unschedulable)"
