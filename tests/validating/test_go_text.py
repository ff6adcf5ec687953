"""Values as Go prints them."""

import pytest

from bayplan.validating import go_text
from bayplan.wire.placements import WirePlacement


@pytest.mark.parametrize("text, printed", [
    ("plain", '"plain"'),
    ('say "x"', r'"say \"x\""'),
    ("a\\b", r'"a\\b"'),
    ("tab\tline\n", r'"tab\tline\n"'),
    ("\x00\x7f", r'"\x00\x7f"'),
    ("<é日😀>", '"<é日😀>"'),
    ("\u00a0\u200b\u2028", r'"\u00a0\u200b\u2028"'),  # a space that is no ASCII space does not print
    ("\U000e0001", r'"\U000e0001"'),
    ("\ud800", '"\ufffd"'),
])  # fmt: skip
def test_quoted(text, printed):
    assert go_text.quoted(text) == printed


@pytest.mark.parametrize("value, printed", [
    ("Gt", '"Gt"'),
    ("<&>", r'"\u003c\u0026\u003e"'),  # escaped for HTML, unlike in quoting
    ("\x7f\u2028", '"\x7f\\u2028"'),
    ("a\nb\x01", r'"a\nb\u0001"'),
    ("\ud800", '"\ufffd"'),
    (3, "3"),
    ({"b": [1], "a": None}, '{"a":null,"b":[1]}'),
])  # fmt: skip
def test_as_json(value, printed):
    assert go_text.as_json(value) == printed


def test_length_is_counted_in_bytes():
    assert [go_text.n_bytes(text) for text in ("ab", "é", "日", "\ud800")] == [2, 2, 3, 3]


def test_a_toleration_has_no_empty_fields():
    written = {"clusterTolerations": [{"effect": "NoExecute"}], "clusterAffinities": [{}]}
    assert go_text.struct_json(written, WirePlacement) == (
        '{"clusterAffinities":[{"affinityName":""}],"clusterTolerations":[{"effect":"NoExecute"}]}'
    )
