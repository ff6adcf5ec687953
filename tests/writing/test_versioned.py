import json

import pytest
import yaml

from bayplan.writing import versioned


def test_version_and_kind_come_first():
    assert list(versioned.document("Thing", {"a": 1})) == ["apiVersion", "kind", "a"]


@pytest.mark.parametrize(
    "value", ["web", "yes", "1e3", "0x10", "012", "1_000", "null", "~", "", "a: b", "ü", "x\x9by", "\u202e"]
)
def test_text_stays_text(value):
    content = {"value": value}
    assert json.loads(versioned.as_json(content)) == content
    assert yaml.safe_load(versioned.as_yaml(content)) == content


@pytest.mark.parametrize("value", ["1e3", "12", "0o17", "1.5", ".5"])
def test_text_that_looks_like_a_number_is_quoted(value):
    assert versioned.as_yaml({"value": value}) in (f'value: "{value}"\n', f"value: '{value}'\n")


def test_json_escapes_control_characters():
    text = versioned.as_json({"value": "\x1b[2J\x9b2J\u202e"})
    assert text.isascii()
    assert "\x1b" not in text


def test_yaml_has_no_anchors():
    shared = {"a": 1}
    assert "&" not in versioned.as_yaml({"x": shared, "y": shared})
