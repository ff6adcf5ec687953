"""Tolerations."""

import pytest

from validating import writing

EMPTY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
SECONDS = "effect must be 'NoExecute' when `tolerationSeconds` is set"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
EFFECTS = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'


@pytest.mark.parametrize("toleration, wrong", [
    ("{operator: Exists}", []),
    ("{key: k, value: v, effect: NoSchedule}", []),
    ("{key: k, operator: Equal, value: v, effect: NoExecute, tolerationSeconds: -1}", []),
    ("{key: -x, operator: Exists}", [f'.key: Invalid value: "-x": {NAME}']),
    ("{}", [f'.operator: Invalid value: "": {EMPTY_KEY}']),
    ("{operator: Equal, value: v}", [f'.operator: Invalid value: "Equal": {EMPTY_KEY}']),
    ("{key: k, operator: Exists, value: v}", [""".operator: Invalid value: "v": value must be empty when `operator` is 'Exists'"""]),
    ("{key: k, value: -x}", [f'.operator: Invalid value: "-x": {VALUE}']),
    ("{key: k, operator: Foo}", ['.operator: Unsupported value: "Foo": supported values: "Equal", "Exists"']),
    ("{key: k, operator: Lt, value: '1'}", ['.operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"']),  # its gate is off
    ("{key: k, effect: Never}", [f'.effect: Unsupported value: "Never": {EFFECTS}']),
    ("{key: k, effect: NoSchedule, tolerationSeconds: 5}", [f'.effect: Invalid value: "NoSchedule": {SECONDS}']),
    ("{key: k, tolerationSeconds: 0}", [f'.effect: Invalid value: "": {SECONDS}']),
])  # fmt: skip
def test_toleration(toleration, wrong):
    obj = writing.pod({"tolerations": [writing.read(toleration)]})
    assert writing.held_against(obj, "spec.tolerations[0]") == wrong


def test_two_faults_of_a_value_are_one_cause():
    obj = writing.pod({"tolerations": [{"key": "k", "value": "y" * 63 + "-"}]})
    assert writing.held_against(obj) == [
        f'spec.tolerations[0].operator: Invalid value: "{"y" * 63}-": must be no more than 63 bytes;{VALUE}'
    ]
