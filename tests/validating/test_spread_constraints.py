"""Topology spread constraints."""

import pytest

from validating import writing

GOOD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
ONLY = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not"
ACTIONS = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
POLICIES = 'supported values: "Honor", "Ignore"'


@pytest.mark.parametrize("changed, wrong", [
    ("{}", []),
    ("{maxSkew: 0}", [".maxSkew: Invalid value: 0: must be greater than zero"]),
    ("{maxSkew: null}", [".maxSkew: Invalid value: 0: must be greater than zero"]),
    ("{topologyKey: ''}", [".topologyKey: Required value: can not be empty"]),
    ("{topologyKey: bad key}", []),  # unlike in an affinity term
    ("{whenUnsatisfiable: Never}", [f'.whenUnsatisfiable: Unsupported value: "Never": {ACTIONS}']),
    ("{whenUnsatisfiable: null}", [f'.whenUnsatisfiable: Unsupported value: "": {ACTIONS}']),
    ("{minDomains: 2}", []),
    ("{minDomains: -1}", [".minDomains: Invalid value: -1: must be greater than zero"]),
    ("{minDomains: 2, whenUnsatisfiable: ScheduleAnyway}", [f".minDomains: Invalid value: 2: {ONLY} ScheduleAnyway"]),
    ("{minDomains: 0, whenUnsatisfiable: ScheduleAnyway}", [".minDomains: Invalid value: 0: must be greater than zero", f".minDomains: Invalid value: 0: {ONLY} ScheduleAnyway"]),
    ("{nodeAffinityPolicy: Honor, nodeTaintsPolicy: Ignore}", []),
    ("{nodeAffinityPolicy: Maybe}", [f'.nodeAffinityPolicy: Unsupported value: "Maybe": {POLICIES}']),
    ("{nodeTaintsPolicy: ''}", [f'.nodeTaintsPolicy: Unsupported value: "": {POLICIES}']),
    ("{nodeTaintsPolicy: null}", []),
    ("{matchLabelKeys: [app], labelSelector: null}", [".matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
    ("{matchLabelKeys: [app], labelSelector: {matchLabels: {app: web}}}", ['[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector']),
    ("{labelSelector: {matchExpressions: [{key: app}]}}", ['.labelSelector.matchExpressions[0].operator: Invalid value: "": not a valid selector operator']),
])  # fmt: skip
def test_constraint(changed, wrong):
    obj = writing.pod({"topologySpreadConstraints": [{**GOOD, **writing.read(changed)}]}, labels={"app": "web"})
    assert writing.held_against(obj, "spec.topologySpreadConstraints[0]") == wrong


def test_a_repeated_constraint_is_reported_at_the_earlier_one():
    other = {**GOOD, "topologyKey": "host"}
    obj = writing.pod({"topologySpreadConstraints": [GOOD, other, GOOD, GOOD]})
    path = "spec.topologySpreadConstraints[{}].{{topologyKey, whenUnsatisfiable}}"
    message = 'Duplicate value: "{zone, DoNotSchedule}"'
    assert writing.held_against(obj) == [f"{path.format(0)}: {message}", f"{path.format(2)}: {message}"]
