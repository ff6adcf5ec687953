"""Label selectors, and the label keys that a pod's creation merges into them: rules 4 to 7."""

import pytest

from validating import objects

TERM = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
VALUES = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
NAME = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
BOTH = "exists in both matchLabelKeys and labelSelector"
MISMATCH = "exists in both matchLabelKeys and mismatchLabelKeys"


@pytest.mark.parametrize("selector, wrong", [
    ("{}", []),
    ("null", []),
    ("{matchLabels: {app: web}, matchExpressions: [{key: tier, operator: Exists}]}", []),
    ("{matchLabels: {app: -x}}", [f'.matchLabels: Invalid value: "-x": {VALUES}']),
    ("{matchLabels: {-x: web}}", [f'.matchLabels: Invalid value: "-x": {NAME}']),
    ("{matchLabels: {app: null}}", []),  # null is the empty value
    ("{matchExpressions: [{key: a, operator: In, values: [b, '']}]}", []),
    ("{matchExpressions: [{key: a, operator: In}]}", [".matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
    ("{matchExpressions: [{key: a, operator: NotIn, values: []}]}", [".matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
    ("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}", [".matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"]),
    ("{matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]}", [".matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"]),
    ("{matchExpressions: [{key: a, operator: Gt, values: ['1']}]}", ['.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector operator']),
    ("{matchExpressions: [{key: a, operator: <in>}]}", ['.matchExpressions[0].operator: Invalid value: "\\u003cin\\u003e": not a valid selector operator']),
    ("{matchExpressions: [{key: a}]}", ['.matchExpressions[0].operator: Invalid value: "": not a valid selector operator']),
    ("{matchExpressions: [{key: a, operator: In, values: [b, -x]}]}", [f'.matchExpressions[0].values[1]: Invalid value: "-x": {VALUES}']),
    ("{matchExpressions: [{key: a, operator: Exists}, {key: -x, operator: Exists}]}", [f'.matchExpressions[1].key: Invalid value: "-x": {NAME}']),
])  # fmt: skip
@pytest.mark.parametrize("which", ["labelSelector", "namespaceSelector"])
def test_selector(which, selector, wrong):
    spec = objects.with_term({"topologyKey": "zone", which: objects.read(selector)})
    assert objects.causes_of(objects.pod(spec), f"{TERM}.{which}") == wrong


@pytest.mark.parametrize("term, wrong", [
    ("labelSelector: {}, matchLabelKeys: [app], mismatchLabelKeys: [tier]", []),
    # rule 4
    ("matchLabelKeys: [app]", [".matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
    ("mismatchLabelKeys: [-x]", [".mismatchLabelKeys: Forbidden: must not be specified when labelSelector is not set"]),
    ("labelSelector: null, matchLabelKeys: []", []),
    # rule 5
    ("labelSelector: {}, matchLabelKeys: [app, -x]", [f'.matchLabelKeys[1]: Invalid value: "-x": {NAME}']),
    ("labelSelector: {}, mismatchLabelKeys: [-x]", [f'.mismatchLabelKeys[0]: Invalid value: "-x": {NAME}']),
    # rule 6: the path lacks the list's name
    ("labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [tier, app]", [f'[1]: Invalid value: "app": {BOTH}']),
    ("labelSelector: {matchExpressions: [{key: app, operator: Exists}]}, matchLabelKeys: [app]", [f'[0]: Invalid value: "app": {BOTH}']),
    ("labelSelector: {matchLabels: {tier: x}}, matchLabelKeys: [tier]", []),  # the pod has no such label: nothing is merged
    ("labelSelector: {matchLabels: {tier: x}, matchExpressions: [{key: tier, operator: Exists}]}, matchLabelKeys: [tier]", [f'[0]: Invalid value: "tier": {BOTH}']),
    ("labelSelector: {matchLabels: {app: web}}, mismatchLabelKeys: [app]", []),
    ("labelSelector: {}, matchLabelKeys: [app, app]", [f'[1]: Invalid value: "app": {BOTH}']),  # the last place it is listed at
    # rule 7, and what the merge makes of it
    ("labelSelector: {}, matchLabelKeys: [tier], mismatchLabelKeys: [tier]", [f'.matchLabelKeys[0]: Invalid value: "tier": {MISMATCH}']),
    ("labelSelector: {}, matchLabelKeys: [app], mismatchLabelKeys: [app]", [f'[0]: Invalid value: "app": {BOTH}', f'.matchLabelKeys[0]: Invalid value: "app": {MISMATCH}']),
])  # fmt: skip
def test_label_keys_of_a_term(term, wrong):
    spec = objects.with_term(f"{{topologyKey: zone, {term}}}")
    assert objects.causes_of(objects.pod(spec, labels={"app": "web"}), TERM) == wrong


def test_an_invalid_label_is_reported_wherever_it_was_merged():
    spec = objects.with_term("{topologyKey: zone, labelSelector: {}, matchLabelKeys: [app]}")
    assert objects.causes_of(objects.pod(spec, labels={"app": "-x"})) == [
        f'metadata.labels: Invalid value: "-x": {VALUES}',
        f'{TERM}.labelSelector.matchExpressions[0].values[0]: Invalid value: "-x": {VALUES}',
    ]


def test_the_label_keys_of_a_template_are_not_merged():
    spec = objects.with_term("{topologyKey: zone, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [app]}")
    assert objects.causes_of(objects.workload("Deployment", "apps/v1", spec)) == []
