"""Counts, selectors, resources, policies and schedules: refused as an API server refuses them, in its words."""

import pytest

from bayplan.validating import admission, go_text
from validating import refusals, writing


@pytest.mark.parametrize("obj, wrong", refusals.REFUSALS)
def test_what_is_refused(obj, wrong):
    assert [str(cause) for cause in admission.validate(obj)] == wrong


@pytest.mark.parametrize("obj", refusals.ADMITTED)
def test_what_is_admitted(obj):
    assert admission.validate(obj) == []


@pytest.mark.parametrize("written, shown", [
    ("1", "1"),
    ("0", "0"),
    ("00", "0"),
    ("1000", "1k"),
    ("1000m", "1"),
    ("1500m", "1500m"),
    ("0.5", "500m"),
    ("2.500", "2.500"),  # taken for canonical, because its digits come in threes
    ("2.5", "2500m"),
    ("-0.5", "-500m"),
    ("1024Mi", "1Gi"),
    ("1025Mi", "1025Mi"),
    ("1.5Gi", "1536Mi"),
    ("512", "512"),
    ("0.5Ki", "512"),
    ("1e3", "1e3"),
    ("1000e3", "1e6"),
    ("1n", "1m"),  # whoever asks for something gets something
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
def test_what_a_server_cannot_even_read(spec, wrong):
    assert writing.held_against(writing.pod(spec)) == [wrong]


@pytest.mark.parametrize("obj, wrong", [
    (refusals.budget("minAvailable: 2147483648"), "spec.minAvailable: Invalid value: 2147483648: expected a whole number from -2147483648 to 2147483647"),
    (refusals.job("manualSelector: 0"), "spec.manualSelector: Invalid value: 0: expected true or false, got a whole number"),
    (refusals.apps("Deployment", "replicas: 999999999999"), "spec.replicas: Invalid value: 999999999999: expected a whole number from -2147483648 to 2147483647"),
])  # fmt: skip
def test_what_cannot_be_read_of_other_kinds(obj, wrong):
    assert writing.held_against(obj) == [wrong]


def test_fields_of_other_kinds_are_passed_over_as_unknown_ones_are():
    assert admission.validate(refusals.apps("Deployment", f"{refusals.WEB}, parallelism: many")) == []
