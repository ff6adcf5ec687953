"""The annotation bayplan.io/placement: its content, its objects, and how it is merged into a placement."""

import copy
import json
import pathlib
import re

import pytest
import yaml

from bayplan.validating import admission, placement_annotation
from validating import objects

PATH = "metadata.annotations[bayplan.io/placement]"
REQUIRED = f".workloadAntiAffinity.{objects.REQUIRED}"
TERM = "labelSelector: {matchLabels: {app.tier: prod}}, matchLabelKeys: [karmada.io/group]"
KARMADA_HAS_FIELD = "Forbidden: Karmada has a field for this: it belongs into the policy's placement"


def anti(term, when=objects.REQUIRED):
    return f"workloadAntiAffinity: {{{when}: [{{{term}}}]}}"


@pytest.mark.parametrize("text, wrong", [
    (anti(TERM), []),
    (json.dumps({"workloadAffinity": {objects.REQUIRED: [{"affinityEnabled": True}]}}), []),
    ("{}", []),
    ("preferredClusterAffinities: [{affinityName: idc, clusterNames: [m1]}, {affinityName: cloud}]", []),
    (anti("topologykey: zone"), [f'{REQUIRED}[0].topologykey: Invalid value: "topologykey": unknown field; did you mean "topologyKey"?']),
    ("workloadAntiAfinity: {}", ['.workloadAntiAfinity: Invalid value: "workloadAntiAfinity": unknown field; did you mean "workloadAntiAffinity"?']),
    (anti("topologykey: zone, namespaces: [a.b]"), [f'{REQUIRED}[0].topologykey: Invalid value: "topologykey": unknown field; did you mean "topologyKey"?', f'{REQUIRED}[0].namespaces[0]: Invalid value: "a.b": must not contain dots']),
    ("clusterAffinity: {suplements: []}", ['.clusterAffinity.suplements: Invalid value: "suplements": unknown field; did you mean "supplements"?']),
    (anti("matchLabelKeys: app"), [f'{REQUIRED}[0].matchLabelKeys: Invalid value: "app": expected a list, got text']),
    (anti("affinityEnabled: 'true'"), [f'{REQUIRED}[0].affinityEnabled: Invalid value: "true": expected true or false, got text']),
    ("spreadConstraints: []", [f".spreadConstraints: {KARMADA_HAS_FIELD}"]),
    ("replicaScheduling: {}", [f".replicaScheduling: {KARMADA_HAS_FIELD}"]),
    ("workloadAffinity: {antiAffinity: {groupByLabelKey: app}}", [f".workloadAffinity.antiAffinity: {KARMADA_HAS_FIELD}"]),
    ("clusterAffinities: [{affinityName: a, clusterNames: [m1], overflowAffinities: []}]", [f".clusterAffinities[0].overflowAffinities: {KARMADA_HAS_FIELD}"]),
    ("", [': Invalid value: "nothing": expected a mapping with the placement fields that Karmada lacks, such as workloadAntiAffinity, got nothing']),
    ("[]", [': Invalid value: "a list": expected a mapping, got a list']),
    ("{", [": Invalid value: neither YAML nor JSON: line 2, column 1: did not find expected node content"]),
    ("a: &a [x]\nb: *a", [": Invalid value: aliases are not allowed"]),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["template", "custom", "PropagationPolicy", "ClusterPropagationPolicy", "binding"])
def test_the_annotation_alone(text, wrong, kind):
    annotations = {placement_annotation.PLACEMENT_ANNOTATION: text}
    if kind == "template":
        obj = objects.workload("Deployment", "apps/v1", {})
    elif kind == "custom":
        obj = {"apiVersion": "flink.apache.org/v1beta1", "kind": "FlinkDeployment", "metadata": {"name": "x"}}
    elif kind == "binding":
        obj = objects.binding({})
    else:
        obj = objects.policy(kind=kind)
    obj["metadata"]["annotations"] = annotations
    assert objects.causes_of(obj, PATH) == wrong


@pytest.mark.parametrize(
    "obj", [objects.pod(), objects.policy(), objects.binding({}), {"kind": "ConfigMap", "metadata": {}}]
)
def test_an_annotation_that_is_no_text_is_reported_once(obj):
    obj = copy.deepcopy(obj)
    obj["metadata"]["annotations"] = {placement_annotation.PLACEMENT_ANNOTATION: {}}
    assert objects.causes_of(obj) == [f'{PATH}: Invalid value: "a mapping": expected text, got a mapping']


SINGLE = "{clusterAffinity: {clusterNames: [m1]}}"
TERMS = "{clusterAffinities: [{affinityName: a, clusterNames: [m1]}, {affinityName: b, clusterNames: [m2]}]}"


@pytest.mark.parametrize("placement, text, wrong", [
    (SINGLE, "clusterAffinity: {supplements: [{clusterNames: [m2]}]}", []),
    (SINGLE, "clusterAffinity: {clusterNames: [m1], supplements: [{clusterNames: [m2]}]}", []),
    (SINGLE, "clusterAffinity: {clusterNames: [m3], supplements: [{clusterNames: [m2]}]}", [".clusterAffinity.clusterNames: Forbidden: differs from spec.placement.clusterAffinity.clusterNames"]),
    ("{}", "clusterAffinity: {clusterNames: [m1], supplements: [{clusterNames: [m2]}]}", []),
    ("{}", "clusterAffinity: {supplements: [{clusterNames: [m2]}]}", [".clusterAffinity: Required value: supplements can only be used together with the inline ClusterAffinity"]),
    (TERMS, "clusterAffinities: [{affinityName: b, supplements: [{clusterNames: [m3]}]}]", []),
    (TERMS, "clusterAffinities: [{affinityName: c, supplements: []}]", [".clusterAffinities[0].affinityName: Forbidden: spec.placement.clusterAffinities has no term of this name"]),
    (TERMS, "clusterAffinities: [{affinityName: b, exclude: [m3]}]", [".clusterAffinities[0].exclude: Forbidden: differs from spec.placement.clusterAffinities[1].exclude"]),
    (TERMS, "clusterAffinity: {}", [": Forbidden: clusterAffinities cannot co-exist with clusterAffinity"]),
    (SINGLE, "clusterAffinities: []", [": Forbidden: clusterAffinities cannot co-exist with clusterAffinity"]),
    (TERMS, "affinityStrategy: {mode: Inherited}", []),
    (SINGLE, "affinityStrategy: {mode: Inherited}", ['.affinityStrategy.mode: Invalid value: "Inherited": can only be used together with clusterAffinities']),
    ("{clusterAffinity: {clusterNames: [m1], supplements: [{}]}}", "clusterAffinity: {supplements: [{}]}", [".clusterAffinity.supplements: Forbidden: spec.placement.clusterAffinity.supplements is set already"]),
    ("{clusterAffinities: [{affinityName: a, clusterNames: [m1]}], affinityStrategy: {mode: Exclusive}}", "affinityStrategy: {mode: Inherited}", [".affinityStrategy: Forbidden: spec.placement.affinityStrategy is set already"]),
    (SINGLE, "preferredClusterAffinities: [{affinityName: a, clusterNames: [m1]}]", [".preferredClusterAffinities: Forbidden: preferredClusterAffinities cannot co-exist with clusterAffinity or clusterAffinities"]),
])  # fmt: skip
@pytest.mark.parametrize(
    "build",
    [
        objects.policy,
        lambda placement, annotation: objects.binding(
            {"placement": objects.read(placement)}, **{placement_annotation.PLACEMENT_ANNOTATION: annotation}
        ),
    ],
)
def test_the_annotation_must_not_contradict_the_placement(placement, text, wrong, build):
    assert objects.causes_of(build(placement, annotation=text), PATH) == wrong


@pytest.mark.parametrize("placement, text, whole", [
    (SINGLE, "clusterAffinity: {supplements: [{clusterNames: [m2]}]}", "{clusterAffinity: {clusterNames: [m1], supplements: [{clusterNames: [m2]}]}}"),
    (TERMS, "clusterAffinities: [{affinityName: b, supplements: [{}]}]", "{clusterAffinities: [{affinityName: a, clusterNames: [m1]}, {affinityName: b, clusterNames: [m2], supplements: [{}]}]}"),
    ("{clusterAffinity: null}", "clusterAffinities: [{affinityName: b}]", "{clusterAffinities: [{affinityName: b}]}"),
    (TERMS, "affinityStrategy: {mode: Inherited}", TERMS[:-1] + ", affinityStrategy: {mode: Inherited}}"),
    ("{workloadAffinity: {affinity: {groupByLabelKey: k}}}", f"workloadAffinity: {{{objects.REQUIRED}: [{{labelSelector: {{}}}}]}}", f"{{workloadAffinity: {{affinity: {{groupByLabelKey: k}}, {objects.REQUIRED}: [{{labelSelector: {{}}}}]}}}}"),
    (f"{{{anti('topologyKey: a')}}}", anti("topologyKey: b"), f"{{workloadAntiAffinity: {{{objects.REQUIRED}: [{{topologyKey: a}}, {{topologyKey: b}}]}}}}"),
])  # fmt: skip
def test_merging_changes_neither_placement_nor_annotation(placement, text, whole):
    written, annotated = objects.read(placement), placement_annotation.read_annotation(text)
    before = copy.deepcopy((written, annotated))
    assert placement_annotation.merge(written, annotated) == objects.read(whole)
    assert (written, annotated) == before


def test_reading_an_invalid_annotation_raises():
    with pytest.raises(ValueError, match=r"bayplan.io/placement\]\.x: .*unknown field"):
        placement_annotation.read_annotation("x: 1")


PAGE = pathlib.Path(__file__).parents[2] / "docs" / "reference" / "annotations.md"
EXAMPLES = [
    yaml.safe_load(block)
    for block in re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if "kind: PropagationPolicy" in block
]


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda one: one["metadata"]["annotations"]["bayplan.io/placement"][:40]
)
def test_the_examples_of_the_page_are_valid(example):
    assert admission.validate(example) == []
    text = example["metadata"]["annotations"]["bayplan.io/placement"]
    assert placement_annotation.merge(example["spec"]["placement"], placement_annotation.read_annotation(text))


def test_the_page_has_an_example_of_each_form():
    texts = [one["metadata"]["annotations"]["bayplan.io/placement"] for one in EXAMPLES]
    forms = [
        "matchLabelKeys",
        "affinityEnabled",
        "preferredDuring",
        "supplements:\n-",
        "supplements:\n  ",
        "mode: Inherited",
        "preferredClusterAffinities",
    ]
    assert [form for form in forms if not any(form in text for text in texts)] == []
