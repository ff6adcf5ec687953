import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bayplan.reading import yaml_documents
from bayplan.reading.documents import Source
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


WORDS = [
    "y", "N", "on", "Off", "yes", "~", "null", "0b1", "0755", "0o17", "1_000", ".5", "1e3", ".inf", ".NaN", "<<", "=",
    "12:30", "2026-01-01", "-", "1.", "+1", "0x1F", "-0", "1e999", "99999999999999999999999", "true", "#", "a #b", "|",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_text_is_text_for_kubectl_too(word):
    content = {"namespace": word, "labels": {word: word}, "listed": [word]}
    source = Source("f.yaml", versioned.as_yaml(content).encode())
    assert yaml_documents.read_value(source) == content


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=8))
def test_any_text_is_read_as_it_was_written(text):
    content = {"a": text, text + "k": 1}
    assert yaml_documents.read_value(Source("f.yaml", versioned.as_yaml(content).encode())) == content
