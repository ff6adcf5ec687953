"""A pod that names its node."""

import pytest

from bayplan.rules.node_name import NodeName
from rules.shorthand import pod, run

OTHER_NODE = "UU node(s) didn't match the requested node name"


@pytest.mark.parametrize("asked, out", [("new", ""), ("new@a", "b"), ("new@b", "a"), ("new@gone", "a b")])
def test_a_pod_that_names_its_node(asked, out):
    found = run(NodeName(), pod(asked), "a; b")
    assert found.rejected == dict.fromkeys(out.split(), OTHER_NODE)
    for (failure,) in found.failures.values():
        assert failure.detail == f"spec.nodeName is {asked.partition('@')[2]}"
