"""Constraints are counted on the pod as written, wherever a pod can have many of them."""

import msgspec
import pytest

from bayplan.mapping import pod_size
from bayplan.wire.pods import Pod

SELECTOR = {"matchLabels": {"app": "web"}}
TERM = {"topologyKey": "zone", "labelSelector": SELECTOR}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
HOSTS = {"key": "host", "operator": "In", "values": [str(i) for i in range(30)]}


@pytest.mark.parametrize("spec, expected", [
    ({}, 0),
    ({"nodeSelector": {"a": "1", "b": "2"}}, 2),
    ({"tolerations": [{"key": "a"}, {"key": "b"}]}, 2),
    ({"affinity": {"podAntiAffinity": {REQUIRED: [TERM, TERM]}}}, 4),
    ({"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]}}}, 2),
    ({"affinity": {"podAffinity": {REQUIRED: [{**TERM, "namespaces": [str(i) for i in range(40)]}]}}}, 6),
    ({"affinity": {"podAffinity": {REQUIRED: [{**TERM, "namespaceSelector": SELECTOR, "matchLabelKeys": ["x"]}]}}}, 4),
    ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [HOSTS]}]}}}}, 5),
    ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {"matchFields": [HOSTS]}}]}}}, 5),
    ({"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {"matchExpressions": [HOSTS]}}]}, 5),
    ({"containers": [{"ports": [{}, {}], "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}}]}, 5),
    ({"initContainers": [{}, {}]}, 2),
    ({"volumes": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}, 3),
])  # fmt: skip
def test_every_list_counts(spec, expected):
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    assert pod_size.n_constraints(pod) == expected


def test_labels_count():
    pod = msgspec.convert({"metadata": {"name": "p", "labels": {str(i): "" for i in range(7)}}}, Pod)
    assert pod_size.n_constraints(pod) == 7
