"""The annotation bayplan.io/affinity."""

import json

import pytest

from bayplan.validating import affinity
from validating import writing

PATH = "metadata.annotations[bayplan.io/affinity]"
RUNNING = f".podAntiAffinity.{writing.RUNNING}[0]"


def annotated(text, **metadata):
    return writing.pod(annotations={affinity.AFFINITY_ANNOTATION: text}, **metadata)


def anti(term):
    return f"podAntiAffinity: {{{writing.RUNNING}: [{{{term}}}]}}"


@pytest.mark.parametrize("text, wrong", [
    (anti("labelSelector: {}, topologyKey: zone, limit: 2, tolerateNamespaces: [kube-system]"), []),
    (anti("labelSelector: {}"), []),  # an empty topology key means any topology here
    (anti("labelSelector: {}, namespaces: []"), []),  # and an empty list every namespace
    (anti("labelSelector: {}, topologyKey: null"), []),
    (json.dumps({"podAffinity": {writing.RUNNING: [{"labelSelector": {}}]}}, indent="\t"), []),
    (anti("limit: -1"), [f"{RUNNING}.limit: Invalid value: -1: must be greater than or equal to 0"]),
    (anti("limit: 1.5"), [f"{RUNNING}.limit: Invalid value: 1.5: expected a whole number, got a fraction"]),
    (anti("limit: few"), [f'{RUNNING}.limit: Invalid value: "few": expected a whole number, got text']),
    (anti("tolerateNamespaces: [a.b]"), [f'{RUNNING}.tolerateNamespaces[0]: Invalid value: "a.b": must not contain dots']),
    (anti("topologyKey: /x"), [f'{RUNNING}.topologyKey: Invalid value: "/x": prefix part must be non-empty']),
    (anti("topologyKey: zone, matchLabelKeys: [app]"), [f"{RUNNING}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
    (anti("labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [app]"), [f'{RUNNING}[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector']),
    (anti("topologykey: zone"), [f'{RUNNING}.topologykey: Invalid value: "topologykey": unknown field; did you mean "topologyKey"?']),
    (anti("topologykey: zone, limit: -1"), [f'{RUNNING}.topologykey: Invalid value: "topologykey": unknown field; did you mean "topologyKey"?', f"{RUNNING}.limit: Invalid value: -1: must be greater than or equal to 0"]),
    ("podAffinty: {}", ['.podAffinty: Invalid value: "podAffinty": unknown field; did you mean "podAffinity"?']),
    ("x: {}", ['.x: Invalid value: "x": unknown field; known are podAffinity, podAntiAffinity']),
    (f"podAffinity: {{{writing.RUNNING}: [{{limit: 1}}]}}", [f".podAffinity.{writing.RUNNING}[0].limit: Forbidden: may be set on required anti-affinity terms only"]),
    (f"podAntiAffinity: {{{writing.PREFERRED}: [{{weight: 0}}]}}", [f".podAntiAffinity.{writing.PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100"]),
    ("", [': Invalid value: "nothing": expected a mapping with podAffinity or podAntiAffinity, got nothing']),
    ("[]", [': Invalid value: "a list": expected a mapping, got a list']),
    ("{", [": Invalid value: neither YAML nor JSON: line 2, column 1: did not find expected node content"]),
    ("podAffinity: {}\npodAffinity: {}", [": Invalid value: neither YAML nor JSON: line 2, column 1: 'podAffinity' is written twice"]),
    ("a: &a [x]\nb: *a", [": Invalid value: aliases are not allowed"]),
    ("[" * 8_000, [": Invalid value: nested more than 32 deep"]),
    ("podAffinity: {}" + " " * 8_178, [": Invalid value: longer than 8192 characters"]),  # before anybody reads it
    ("podAffinity: {}" + " " * 8_177, []),
])  # fmt: skip
def test_annotation(text, wrong):
    assert writing.held_against(annotated(text, labels={"app": "web"}), PATH) == wrong


def test_the_annotation_of_a_template_stands_in_its_metadata():
    obj = writing.workload("CronJob", "batch/v1", {})
    obj["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"] = {
        affinity.AFFINITY_ANNOTATION: anti("limit: -1")
    }
    path = f"spec.jobTemplate.spec.template.{PATH}{RUNNING}.limit"
    assert writing.held_against(obj) == [f"{path}: Invalid value: -1: must be greater than or equal to 0"]


def test_an_annotation_that_is_no_text_is_of_the_wrong_shape():
    assert writing.held_against(annotated({"podAffinity": {}})) == [
        f'{PATH}: Invalid value: "a mapping": expected text, got a mapping'
    ]


def test_reading_keeps_an_empty_list_and_an_absent_one_apart():
    listed = affinity.read_annotation(anti("namespaces: [], topologyKey: null")).pod_anti_affinity
    absent = affinity.read_annotation(anti("limit: 1")).pod_anti_affinity
    assert listed.required_during_scheduling_required_during_execution[0].namespaces == []
    assert absent.required_during_scheduling_required_during_execution[0].namespaces is None


@pytest.mark.parametrize("text", ["{", "podAffinity: 3", anti("limit: few")])
def test_reading_refuses_what_is_malformed(text):
    with pytest.raises(ValueError, match=r"neither YAML|Expected"):
        affinity.read_annotation(text)
