"""Clusters from which the workload is being evicted."""

import pytest

from bayplan.rules.cluster_eviction import ClusterEviction
from rules.shorthand import binding, run_fleet

EVICTING = "U cluster(s) is in the process of eviction"


@pytest.mark.parametrize("evicting, out", [([], ""), (["c1"], "c1"), (["c1", "c3"], "c1 c3"), (["gone"], "")])
def test_evictions(evicting, out):
    found = run_fleet(ClusterEviction(), binding("web", evicting=evicting, runs="c2"), "c1; c2; c3")
    assert found.rejected == dict.fromkeys(out.split(), EVICTING)
