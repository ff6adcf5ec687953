"""Node affinity, pod affinity, and the annotation bayplan.io/affinity."""

import json

import pytest

from bayplan.validating import affinity
from validating import objects

# Pod affinity


NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"


@pytest.mark.parametrize("term, wrong", [
    ("topologyKey: zone, labelSelector: {}", []),
    ("labelSelector: {}", [".topologyKey: Required value: can not be empty", '.topologyKey: Invalid value: "": name part must be non-empty', f'.topologyKey: Invalid value: "": {NAME}']),
    ("topologyKey: bad key, labelSelector: {}", [f'.topologyKey: Invalid value: "bad key": {NAME}']),
    ("topologyKey: zone, namespaces: [default, Bad_NS]", [f'.namespace: Invalid value: "Bad_NS": {LABEL}']),
    ("topologyKey: zone, namespaces: ['', a.b]", [f'.namespace: Invalid value: "": {LABEL}', '.namespace: Invalid value: "a.b": must not contain dots']),
    ("topologyKey: zone, namespaces: []", []),
    ("topologyKey: zone", []),  # a null selector is only warned about
])  # fmt: skip
@pytest.mark.parametrize("affinity_kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    "when, below",
    [(objects.REQUIRED, "[0]"), (objects.PREFERRED, "[0].podAffinityTerm"), (objects.DURING_EXECUTION, "[0]")],
)
def test_pod_affinity_term(affinity_kind, when, below, term, wrong):
    spec = objects.with_term(f"{{{term}}}", affinity_kind, when)
    assert objects.causes_of(objects.pod(spec), f"spec.affinity.{affinity_kind}.{when}{below}") == wrong


@pytest.mark.parametrize("weight, shown", [(1, None), (100, None), (0, "0"), (-1, "-1"), (101, "101"), (None, "0")])
@pytest.mark.parametrize("path, item", [
    ("podAffinity", {"podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}),
    ("podAntiAffinity", {"podAffinityTerm": {"topologyKey": "zone", "labelSelector": {}}}),
    ("nodeAffinity", {"preference": {}}),
])  # fmt: skip
def test_weights_are_from_1_to_100(path, item, weight, shown):
    spec = {"affinity": {path: {objects.PREFERRED: [{"weight": weight, **item}]}}}
    wrong = [] if shown is None else [f"[0].weight: Invalid value: {shown}: must be in the range 1-100"]
    assert objects.causes_of(objects.pod(spec), f"spec.affinity.{path}.{objects.PREFERRED}") == wrong


@pytest.mark.parametrize("affinity_kind, when, own, wrong", [
    ("podAntiAffinity", objects.REQUIRED, "limit: 2", []),
    ("podAntiAffinity", objects.DURING_EXECUTION, "limit: 0, tolerateNamespaces: [kube-system]", []),
    ("podAntiAffinity", objects.DURING_EXECUTION, "limit: -1", [".limit: Invalid value: -1: must be greater than or equal to 0"]),
    ("podAntiAffinity", objects.REQUIRED, "tolerateNamespaces: [ok, a.b]", ['.tolerateNamespaces[1]: Invalid value: "a.b": must not contain dots']),
    ("podAntiAffinity", objects.PREFERRED, "limit: 2", [".limit: Forbidden: may be set on required anti-affinity terms only"]),
    ("podAffinity", objects.REQUIRED, "limit: 2, tolerateNamespaces: []", [".limit: Forbidden: may be set on required anti-affinity terms only", ".tolerateNamespaces: Forbidden: may be set on required anti-affinity terms only"]),
])  # fmt: skip
def test_limit_and_tolerated_namespaces_are_for_required_anti_affinity_only(affinity_kind, when, own, wrong):
    spec = objects.with_term(f"{{topologyKey: zone, labelSelector: {{}}, {own}}}", affinity_kind, when)
    below = f"spec.affinity.{affinity_kind}.{when}[0]" + (".podAffinityTerm" if when == objects.PREFERRED else "")
    assert objects.causes_of(objects.pod(spec), below) == wrong


# Node affinity


PREFIX = "spec.affinity.nodeAffinity."
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"


def required(selector):
    return objects.pod({"affinity": {"nodeAffinity": {objects.REQUIRED: objects.read(selector)}}})


@pytest.mark.parametrize("selector, wrong", [
    ("null", []),
    ("{}", [".nodeSelectorTerms: Required value: must have at least one node selector term"]),
    ("{nodeSelectorTerms: []}", [".nodeSelectorTerms: Required value: must have at least one node selector term"]),
    ("{nodeSelectorTerms: [{}]}", []),  # valid although it matches no node
])  # fmt: skip
def test_a_required_node_affinity_has_at_least_one_term(selector, wrong):
    assert objects.causes_of(required(selector), PREFIX + objects.REQUIRED) == wrong


@pytest.mark.parametrize("requirement, wrong", [
    ("key: disk, operator: In, values: [ssd]", []),
    ("key: disk, operator: Exists", []),
    ("key: cores, operator: Gt, values: ['8']", []),
    ("key: cores, operator: Gt, values: [many]", []),  # only scheduling finds that it is no number
    ("key: disk, operator: In", [".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
    ("key: disk, operator: DoesNotExist, values: [a]", [".values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"]),
    ("key: cores, operator: Lt", [".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"]),
    ("key: cores, operator: Gt, values: ['1', '2']", [".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"]),
    ("key: disk, operator: gt, values: ['1']", ['.operator: Invalid value: "gt": not a valid selector operator']),
    ("key: -x, operator: Exists", [f'.key: Invalid value: "-x": {NAME}']),
])  # fmt: skip
@pytest.mark.parametrize("when", ["required", "preferred"])
def test_node_affinity_expression(when, requirement, wrong):
    term = f"{{matchExpressions: [{{{requirement}}}]}}"
    if when == "required":
        obj, below = required(f"{{nodeSelectorTerms: [{term}]}}"), f"{objects.REQUIRED}.nodeSelectorTerms[0]"
    else:
        item = {"weight": 1, "preference": objects.read(term)}
        obj = objects.pod({"affinity": {"nodeAffinity": {objects.PREFERRED: [item]}}})
        below = f"{objects.PREFERRED}[0].preference"
    assert objects.causes_of(obj, f"{PREFIX}{below}.matchExpressions[0]") == wrong


def test_only_the_values_of_required_terms_are_validated():
    requirement = {"key": "disk", "operator": "In", "values": ["-x"]}
    obj = required({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]})
    obj["spec"]["affinity"]["nodeAffinity"][objects.PREFERRED] = [
        {"weight": 1, "preference": {"matchExpressions": [requirement]}}
    ]
    below = f"{PREFIX}{objects.REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
    assert objects.causes_of(obj, below) == [f'.values[0]: Invalid value: "-x": {VALUE}']


@pytest.mark.parametrize("requirement, wrong", [
    ("key: metadata.name, operator: In, values: [n1]", []),
    ("key: metadata.name, operator: NotIn, values: []", [".values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"]),
    ("key: metadata.name, operator: In, values: [a, b]", [".values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"]),
    ("key: metadata.name, operator: Exists", ['.operator: Invalid value: "Exists": not a valid selector operator']),
    ("key: metadata.name, operator: In, values: [Bad Node]", [f'.values[0]: Invalid value: "Bad Node": {SUBDOMAIN}']),
    ("key: spec.x, operator: In, values: [Bad Node]", ['.key: Invalid value: "spec.x": not a valid field selector key']),
])  # fmt: skip
def test_node_affinity_field(requirement, wrong):
    obj = required(f"{{nodeSelectorTerms: [{{matchFields: [{{{requirement}}}]}}]}}")
    assert objects.causes_of(obj, f"{PREFIX}{objects.REQUIRED}.nodeSelectorTerms[0].matchFields[0]") == wrong


@pytest.mark.parametrize("selector, wrong", [
    ({"disk": "ssd", "zone": ""}, []),
    ({"-x": "ssd"}, [f'spec.nodeSelector: Invalid value: "-x": {NAME}']),
    ({"disk": "-x"}, [f'spec.nodeSelector: Invalid value: "-x": {VALUE}']),
])  # fmt: skip
def test_node_selector(selector, wrong):
    assert objects.causes_of(objects.pod({"nodeSelector": selector})) == wrong


# The annotation


PATH = "metadata.annotations[bayplan.io/affinity]"
ANNOTATED_TERM = f".podAntiAffinity.{objects.DURING_EXECUTION}[0]"


def annotated(text, **metadata):
    return objects.pod(annotations={affinity.AFFINITY_ANNOTATION: text}, **metadata)


def anti(term):
    return f"podAntiAffinity: {{{objects.DURING_EXECUTION}: [{{{term}}}]}}"


@pytest.mark.parametrize("text, wrong", [
    (anti("labelSelector: {}, topologyKey: zone, limit: 2, tolerateNamespaces: [kube-system]"), []),
    (anti("labelSelector: {}"), []),  # an empty topology key means any topology here
    (anti("labelSelector: {}, namespaces: []"), []),  # and an empty list every namespace
    (anti("labelSelector: {}, topologyKey: null"), []),
    (json.dumps({"podAffinity": {objects.DURING_EXECUTION: [{"labelSelector": {}}]}}, indent="\t"), []),
    (anti("limit: -1"), [f"{ANNOTATED_TERM}.limit: Invalid value: -1: must be greater than or equal to 0"]),
    (anti("limit: 1.5"), [f"{ANNOTATED_TERM}.limit: Invalid value: 1.5: expected a whole number, got a fraction"]),
    (anti("limit: few"), [f'{ANNOTATED_TERM}.limit: Invalid value: "few": expected a whole number, got text']),
    (anti("tolerateNamespaces: [a.b]"), [f'{ANNOTATED_TERM}.tolerateNamespaces[0]: Invalid value: "a.b": must not contain dots']),
    (anti("topologyKey: /x"), [f'{ANNOTATED_TERM}.topologyKey: Invalid value: "/x": prefix part must be non-empty']),
    (anti("topologyKey: zone, matchLabelKeys: [app]"), [f"{ANNOTATED_TERM}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
    (anti("labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [app]"), [f'{ANNOTATED_TERM}[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector']),
    (anti("topologykey: zone"), [f'{ANNOTATED_TERM}.topologykey: Invalid value: "topologykey": unknown field; did you mean "topologyKey"?']),
    (anti("topologykey: zone, limit: -1"), [f'{ANNOTATED_TERM}.topologykey: Invalid value: "topologykey": unknown field; did you mean "topologyKey"?', f"{ANNOTATED_TERM}.limit: Invalid value: -1: must be greater than or equal to 0"]),
    ("podAffinty: {}", ['.podAffinty: Invalid value: "podAffinty": unknown field; did you mean "podAffinity"?']),
    ("x: {}", ['.x: Invalid value: "x": unknown field; known are podAffinity, podAntiAffinity']),
    (f"podAffinity: {{{objects.DURING_EXECUTION}: [{{limit: 1}}]}}", [f".podAffinity.{objects.DURING_EXECUTION}[0].limit: Forbidden: may be set on required anti-affinity terms only"]),
    (f"podAntiAffinity: {{{objects.PREFERRED}: [{{weight: 0}}]}}", [f".podAntiAffinity.{objects.PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100"]),
    ("", [': Invalid value: "nothing": expected a mapping with podAffinity or podAntiAffinity, got nothing']),
    ("[]", [': Invalid value: "a list": expected a mapping, got a list']),
    ("{", [": Invalid value: neither YAML nor JSON: line 2, column 1: did not find expected node content"]),
    ("podAffinity: {}\npodAffinity: {}", [": Invalid value: neither YAML nor JSON: line 2, column 1: 'podAffinity' is written twice"]),
    ("a: &a [x]\nb: *a", [": Invalid value: aliases are not allowed"]),
    ("[" * 8_000, [": Invalid value: nested more than 32 deep"]),
    ("podAffinity: {}" + " " * 8_178, [": Invalid value: longer than 8192 characters"]),  # before it is parsed
    ("podAffinity: {}" + " " * 8_177, []),
])  # fmt: skip
def test_annotation(text, wrong):
    assert objects.causes_of(annotated(text, labels={"app": "web"}), PATH) == wrong


def test_the_annotation_of_a_template_is_reported_below_its_metadata():
    obj = objects.workload("CronJob", "batch/v1", {})
    obj["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"] = {
        affinity.AFFINITY_ANNOTATION: anti("limit: -1")
    }
    path = f"spec.jobTemplate.spec.template.{PATH}{ANNOTATED_TERM}.limit"
    assert objects.causes_of(obj) == [f"{path}: Invalid value: -1: must be greater than or equal to 0"]


def test_an_annotation_that_is_no_text_has_the_wrong_type():
    assert objects.causes_of(annotated({"podAffinity": {}})) == [
        f'{PATH}: Invalid value: "a mapping": expected text, got a mapping'
    ]


def test_reading_distinguishes_an_empty_list_from_an_absent_one():
    listed = affinity.read_annotation(anti("namespaces: [], topologyKey: null")).pod_anti_affinity
    absent = affinity.read_annotation(anti("limit: 1")).pod_anti_affinity
    assert listed.required_during_scheduling_required_during_execution[0].namespaces == []
    assert absent.required_during_scheduling_required_during_execution[0].namespaces is None


@pytest.mark.parametrize("text", ["{", "podAffinity: 3", anti("limit: few")])
def test_reading_a_malformed_annotation_raises(text):
    with pytest.raises(ValueError, match=r"neither YAML|Expected"):
        affinity.read_annotation(text)
