"""Selectors of a placement that nothing checks before they are parsed: as in Karmada, invalid ones match no cluster."""

import msgspec
import pytest

from bayplan.controllers import binding_detector
from bayplan.controllers.resource_interpreter import ResourceTemplate
from bayplan.mapping import placements
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.placements import PropagationPolicy

VALID, INVALID = False, True


@pytest.mark.parametrize("key, operator, values, impossible", [
    ("region", "In", ["r1"], VALID),
    ("region", "NotIn", ["r1"], VALID),
    ("zone", "NotIn", ["not a label"], VALID),  # Karmada compares zones itself
    ("zone", "Exists", ["z"], VALID),
    ("region", "Exists", ["r1"], INVALID),
    ("region", "In", ["not a label"], INVALID),
    ("", "In", ["r1"], INVALID),
    ("", "NotIn", ["r1"], INVALID),
    ("", "DoesNotExist", [], INVALID),
    ("not a key", "NotIn", ["r1"], INVALID),
    ("rack", "NotIn", ["r1"], VALID),  # a field that no cluster has
])  # fmt: skip
def test_field_selectors(key, operator, values, impossible):
    field = {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}
    assert placements.cluster_affinity({"fieldSelector": field}).impossible is impossible


@pytest.mark.parametrize("selector, impossible", [
    ({}, VALID),
    ({"matchLabels": {"k": ""}}, VALID),
    ({"matchLabels": {"": "v"}}, INVALID),
    ({"matchLabels": {"k": "not a label"}}, INVALID),
    ({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["v", "-x"]}]}, INVALID),
    ({"matchExpressions": [{"key": "a/b/c", "operator": "DoesNotExist"}]}, INVALID),
    ({"matchExpressions": [{"key": "k", "operator": "NotIn", "values": []}]}, INVALID),
])  # fmt: skip
def test_label_selectors_of_clusters_and_of_resources(selector, impossible):
    assert placements.cluster_affinity({"labelSelector": selector}).impossible is impossible
    spec = {
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": selector}],
        "placement": {},
    }
    policy = msgspec.convert({"metadata": {"name": "p", "namespace": "d"}, "spec": spec}, PropagationPolicy)
    metadata = ObjectMeta(name="c", namespace="d", labels={"k": ""})
    template = ResourceTemplate(api_version="v1", kind="ConfigMap", metadata=metadata)
    assert bool(binding_detector.explicitness(template, policy)) is not impossible
