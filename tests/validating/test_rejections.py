"""Replicas, selectors, resources, policies and schedules: rejected as by an API server, in its wording."""

import pytest

from bayplan.validating import admission, go_text
from validating import controller_rejections, objects, rejections


@pytest.mark.parametrize("obj, wrong", [*rejections.REJECTED, *controller_rejections.REJECTED])
def test_rejected(obj, wrong):
    assert [str(cause) for cause in admission.validate(obj)] == wrong


@pytest.mark.parametrize("obj", [*rejections.ADMITTED, *controller_rejections.ADMITTED])
def test_admitted(obj):
    assert admission.validate(obj) == []


@pytest.mark.parametrize("obj", controller_rejections.REJECTED_AT_LENGTH)
def test_rejected_at_length(obj):
    assert admission.validate(obj)


@pytest.mark.parametrize("written, shown", [
    ("1", "1"),
    ("0", "0"),
    ("00", "0"),
    ("1000", "1k"),
    ("1000m", "1"),
    ("1500m", "1500m"),
    ("0.5", "500m"),
    ("2.500", "2.500"),  # canonical for Go, because its digits come in threes
    ("2.5", "2500m"),
    ("-0.5", "-500m"),
    ("1024Mi", "1Gi"),
    ("1025Mi", "1025Mi"),
    ("1.5Gi", "1536Mi"),
    ("512", "512"),
    ("0.5Ki", "512"),
    ("1e3", "1e3"),
    ("1000e3", "1e6"),
    ("1n", "1m"),  # rounded away from zero
    ("-1n", "-1m"),
    ("1000.0001", "1000001m"),
    (2, "2"),
    (0.25, "250m"),
])  # fmt: skip
def test_quantities_as_go_prints_them(written, shown):
    assert go_text.quantity_text(written) == shown


@pytest.mark.parametrize("spec, wrong", [
    ({"priority": 3000000000}, "spec.priority: Invalid value: 3000000000: expected a whole number from -2147483648 to 2147483647"),
    ({"restartPolicy": 3}, "spec.restartPolicy: Invalid value: 3: expected text, got a whole number"),
    ({"overhead": {"cpu": "much"}}, "spec.overhead[cpu]: Invalid value: \"much\": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
])  # fmt: skip
def test_pods_that_an_api_server_cannot_decode(spec, wrong):
    assert objects.causes_of(objects.pod(spec)) == [wrong]


@pytest.mark.parametrize("obj, wrong", [
    (rejections.budget("minAvailable: 2147483648"), "spec.minAvailable: Invalid value: 2147483648: expected a whole number from -2147483648 to 2147483647"),
    (rejections.job("manualSelector: 0"), "spec.manualSelector: Invalid value: 0: expected true or false, got a whole number"),
    (rejections.apps("Deployment", "replicas: 999999999999"), "spec.replicas: Invalid value: 999999999999: expected a whole number from -2147483648 to 2147483647"),
])  # fmt: skip
def test_other_kinds_that_an_api_server_cannot_decode(obj, wrong):
    assert objects.causes_of(obj) == [wrong]


def test_fields_of_other_kinds_are_ignored_as_unknown_ones_are():
    assert admission.validate(rejections.apps("Deployment", f"{rejections.WEB}, parallelism: many")) == []
