"""NodeResourcesBalancedAllocation: 75 if the balance of a node stays, more if the pod makes it more even."""

import pytest

from bayplan.rules.balanced_allocation import BalancedAllocation, BalancedAllocationArguments
from rules.shorthand import container, node, pod, run

GPU = "nvidia.com/gpu"
THREE = ("cpu", "memory", GPU)

# b = int(100 * (1 - std)) of the shares, score = 50 + (50 + b with the pod - b without) // 2


@pytest.mark.parametrize(
    "resources, offers, taken, asked, raw",
    [
        (("cpu", "memory"), {}, {}, {"cpu": "1", "memory": "2Gi"}, 75),
        (("cpu", "memory"), {}, {}, {"cpu": "4"}, 50),  # 100 to 50
        (("cpu", "memory"), {}, {}, {"memory": "8Gi"}, 50),
        (("cpu", "memory"), {}, {}, {"cpu": "2"}, 62),  # 100 to 75, rounded down
        (("cpu", "memory"), {}, {"cpu": "4"}, {"memory": "8Gi"}, 100),  # 50 to 100
        (("cpu", "memory"), {}, {"cpu": "4"}, {"cpu": "4"}, 75),  # a share is at most 1
        (("cpu", "memory"), {}, {"cpu": "2"}, {"memory": "4Gi"}, 87),  # 75 to 100
        (("cpu", "memory"), {"cpu": "0"}, {}, {"memory": "4Gi"}, 75),  # one resource is always even
        (("cpu", "memory"), {"cpu": "0", "memory": "0"}, {}, {"memory": "4Gi"}, 75),
        (("cpu", "memory"), {}, {}, {}, None),  # requests neither
        (("cpu", "memory"), {}, {}, {"cpu": "0"}, None),
        (("cpu", "memory"), {GPU: "1"}, {}, {GPU: "1"}, None),
        (THREE, {GPU: "1"}, {}, {"cpu": "2", "memory": "4Gi", GPU: "1"}, 63),  # std 0.2357: 100 to 76
        (
            THREE,
            {GPU: "1"},
            {"cpu": "2", "memory": "4Gi"},
            {GPU: "1"},
            75,
        ),  # 76 before (0.5 0.5 0), 76 after (0.5 0.5 1)
        (THREE, {GPU: "1"}, {}, {"cpu": "1", "memory": "2Gi"}, 75),  # what the pod does not request is left out
        ((GPU,), {GPU: "2"}, {}, {GPU: "1"}, 75),
        (("cpu",), {}, {}, {"memory": "1Gi"}, None),
    ],
)
def test_scores(resources, offers, taken, asked, raw):
    on = [node("n", **{"cpu": "4", "memory": "8Gi", **offers}), node("other", cpu="4", memory="8Gi", **{GPU: "1"})]
    placed = [pod("old@n", containers=[container(**taken)])]
    rule = BalancedAllocation(BalancedAllocationArguments(resources))
    found = run(rule, pod("new", containers=[container(**asked)]), on, placed)
    assert (found.raw and found.raw["n"]) == raw
    assert found.scores == found.raw  # not normalised
    assert found.rejected == {}


def test_as_many_nodes_as_fill_the_index():
    on = [node(f"n{i}", cpu="4", memory="8Gi") for i in range(16)]
    found = run(BalancedAllocation(), pod("new", containers=[container(cpu="2")]), on)
    assert set(found.raw.values()) == {62}
