"""Taints of clusters: each has its own reason."""

import pytest

from bayplan.rules.cluster_taints import ClusterTaints
from rules.shorthand import binding, cluster, run_fleet, taints, tolerations


@pytest.mark.parametrize("tainted, tolerated, text", [
    ("",                          "",               None),
    ("a=1:NoSchedule",            "",               "a=1:NoSchedule"),
    ("a:NoSchedule",              "",               "a:NoSchedule"),   # without a value there is no `=`
    ("a:NoExecute",               "",               "a:NoExecute"),
    ("a:PreferNoSchedule",        "",               None),
    ("a=1:NoSchedule",            "a=1:NoSchedule", None),
    ("a=1:NoSchedule",            "a=2:NoSchedule", "a=1:NoSchedule"),
    ("a=1:NoSchedule",            "a",              None),
    ("a=1:NoSchedule",            "a:NoExecute",    "a=1:NoSchedule"),
    ("a=1:NoSchedule",            ":",              None),             # no key and Exists: every taint
    ("a:NoExecute",               ":NoSchedule",    "a:NoExecute"),
    ("a:NoSchedule,b:NoExecute",  "",               "a:NoSchedule"),   # the first untolerated taint
    ("a:NoSchedule,b:NoExecute",  "a",              "b:NoExecute"),
    ("p:PreferNoSchedule,b:NoExecute", "",          "b:NoExecute"),
])  # fmt: skip
def test_taints(tainted, tolerated, text):
    asked = binding("web", placement={"clusterTolerations": tolerations(tolerated)})
    found = run_fleet(ClusterTaints(), asked, [cluster("c1", taints=taints(tainted)), cluster("c2")])
    assert found.rejected == ({} if text is None else {"c1": f"UU cluster(s) had untolerated taint {{{text}}}"})
    assert [failure.term for failures in found.failures.values() for failure in failures] == [text][
        : len(found.failures)
    ]


def test_each_taint_has_its_own_reason():
    on = [
        cluster(f"c{i}", taints=taints(text)) for i, text in enumerate(("a:NoSchedule", "b:NoSchedule", "a:NoSchedule"))
    ]
    found = run_fleet(ClusterTaints(), binding("web", runs="c2"), on)
    texts = {
        name: f"UU cluster(s) had untolerated taint {{{key}:NoSchedule}}" for name, key in (("c0", "a"), ("c1", "b"))
    }
    assert found.rejected == texts  # c2 has the workload
