"""Bindings as workloads: the annotations of many bindings are read once for each text."""

import json

import pytest

from bayplan.mapping import bindings
from bayplan.validating import yaml_text
from bayplan.wire.fleets import ResourceBinding

TERM = """
    workloadAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: cluster, labelSelector: {matchLabels: {tier: %s}}, matchLabelKeys: [group]}
"""


@pytest.fixture
def parsed(monkeypatch):
    """The texts that were parsed as YAML since the test began."""
    texts, parse = [], yaml_text.parse

    def counted(text):
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(yaml_text, "parse", counted)
    bindings._remembered_rules.cache_clear()
    return texts


def binding(name, annotation, group="1", placement=None):
    written = ResourceBinding()
    written.metadata.name, written.spec.placement = name, placement
    labels = json.dumps({"group": group})
    written.metadata.annotations = {"bayplan.io/placement": annotation, "bayplan.io/workload-labels": labels}
    return written


def selected(workload):
    (term,) = workload.needs.affinity.anti_required
    return str(term.selector)


def test_equal_annotations_are_parsed_once(parsed):
    bindings.workload_of(binding("a", TERM % "prod"))
    n_parsed = len(parsed)
    found = [bindings.workload_of(binding(f"b{i}", TERM % "prod", group=str(i))) for i in range(100)]
    assert len(parsed) == n_parsed
    assert [selected(one) for one in found] == [f"group={i},tier=prod" for i in range(100)]
    bindings.workload_of(binding("c", TERM % "test"))
    assert len(parsed) == 2 * n_parsed


def test_one_annotation_adds_to_different_placements():
    everywhere, one = {}, {"clusterAffinity": {"clusterNames": ["m1"]}}
    found = [
        bindings.workload_of(binding("a", TERM % "prod", placement=each)) for each in (everywhere, one, everywhere)
    ]
    assert [one.binding.placement.groups[0].tiers[0].names for one in found] == [(), ("m1",), ()]
    assert {selected(one) for one in found} == {"group=1,tier=prod"}


def test_a_workload_that_lacks_a_key_has_a_term_that_matches_nothing():
    written = binding("a", TERM % "prod")
    del written.metadata.annotations["bayplan.io/workload-labels"]
    (term,) = bindings.workload_of(written).needs.affinity.anti_required
    assert term.selector is None


def test_a_faulty_annotation_is_reported_for_every_binding():
    for name in "ab":
        assert "neither YAML nor JSON" in bindings.workload_of(binding(name, "{")).unplaceable
