"""Node affinity and nodeSelector."""

import pytest

from validating import writing

PREFIX = "spec.affinity.nodeAffinity."
NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"


def required(selector):
    return writing.pod({"affinity": {"nodeAffinity": {writing.REQUIRED: writing.read(selector)}}})


@pytest.mark.parametrize("selector, wrong", [
    ("null", []),
    ("{}", [".nodeSelectorTerms: Required value: must have at least one node selector term"]),
    ("{nodeSelectorTerms: []}", [".nodeSelectorTerms: Required value: must have at least one node selector term"]),
    ("{nodeSelectorTerms: [{}]}", []),  # matches no node, but may be written
])  # fmt: skip
def test_required(selector, wrong):
    assert writing.held_against(required(selector), PREFIX + writing.REQUIRED) == wrong


@pytest.mark.parametrize("requirement, wrong", [
    ("key: disk, operator: In, values: [ssd]", []),
    ("key: disk, operator: Exists", []),
    ("key: cores, operator: Gt, values: ['8']", []),
    ("key: cores, operator: Gt, values: [many]", []),  # that it is no number is found out when scheduling
    ("key: disk, operator: In", [".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
    ("key: disk, operator: DoesNotExist, values: [a]", [".values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"]),
    ("key: cores, operator: Lt", [".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"]),
    ("key: cores, operator: Gt, values: ['1', '2']", [".values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'"]),
    ("key: disk, operator: gt, values: ['1']", ['.operator: Invalid value: "gt": not a valid selector operator']),
    ("key: -x, operator: Exists", [f'.key: Invalid value: "-x": {NAME}']),
])  # fmt: skip
@pytest.mark.parametrize("when", ["required", "preferred"])
def test_expression(when, requirement, wrong):
    term = f"{{matchExpressions: [{{{requirement}}}]}}"
    if when == "required":
        obj, below = required(f"{{nodeSelectorTerms: [{term}]}}"), f"{writing.REQUIRED}.nodeSelectorTerms[0]"
    else:
        item = {"weight": 1, "preference": writing.read(term)}
        obj = writing.pod({"affinity": {"nodeAffinity": {writing.PREFERRED: [item]}}})
        below = f"{writing.PREFERRED}[0].preference"
    assert writing.held_against(obj, f"{PREFIX}{below}.matchExpressions[0]") == wrong


def test_only_required_terms_have_their_values_looked_at():
    requirement = {"key": "disk", "operator": "In", "values": ["-x"]}
    obj = required({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]})
    obj["spec"]["affinity"]["nodeAffinity"][writing.PREFERRED] = [
        {"weight": 1, "preference": {"matchExpressions": [requirement]}}
    ]
    below = f"{PREFIX}{writing.REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
    assert writing.held_against(obj, below) == [f'.values[0]: Invalid value: "-x": {VALUE}']


@pytest.mark.parametrize("requirement, wrong", [
    ("key: metadata.name, operator: In, values: [n1]", []),
    ("key: metadata.name, operator: NotIn, values: []", [".values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"]),
    ("key: metadata.name, operator: In, values: [a, b]", [".values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"]),
    ("key: metadata.name, operator: Exists", ['.operator: Invalid value: "Exists": not a valid selector operator']),
    ("key: metadata.name, operator: In, values: [Bad Node]", [f'.values[0]: Invalid value: "Bad Node": {SUBDOMAIN}']),
    ("key: spec.x, operator: In, values: [Bad Node]", ['.key: Invalid value: "spec.x": not a valid field selector key']),
])  # fmt: skip
def test_field(requirement, wrong):
    obj = required(f"{{nodeSelectorTerms: [{{matchFields: [{{{requirement}}}]}}]}}")
    assert writing.held_against(obj, f"{PREFIX}{writing.REQUIRED}.nodeSelectorTerms[0].matchFields[0]") == wrong


@pytest.mark.parametrize("selector, wrong", [
    ({"disk": "ssd", "zone": ""}, []),
    ({"-x": "ssd"}, [f'spec.nodeSelector: Invalid value: "-x": {NAME}']),
    ({"disk": "-x"}, [f'spec.nodeSelector: Invalid value: "-x": {VALUE}']),
])  # fmt: skip
def test_node_selector(selector, wrong):
    assert writing.held_against(writing.pod({"nodeSelector": selector})) == wrong
