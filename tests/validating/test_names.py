"""Label keys, label values and DNS names."""

import pytest

from bayplan.validating import names

KEY = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
KEY_FORM = "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"


def shortened(details):
    return [detail.split(" (e.g.")[0] for detail in details]


@pytest.mark.parametrize("key, wrong", [
    ("app", []),
    ("A", []),
    ("UPPER_ok", []),
    ("example.com/My.name", []),
    ("x" * 63, []),
    ("x" * 64, ["name part must be no more than 63 bytes"]),
    ("é" * 32, ["name part must be no more than 63 bytes", f"name part {KEY}"]),  # bytes, not characters
    ("", ["name part must be non-empty", f"name part {KEY}"]),
    ("-x", [f"name part {KEY}"]),
    ("x\n", [f"name part {KEY}"]),  # a dollar affinity_kind would let the line end pass
    ("x/", ["name part must be non-empty", f"name part {KEY}"]),
    ("/x", ["prefix part must be non-empty"]),
    ("/", ["prefix part must be non-empty", "name part must be non-empty", f"name part {KEY}"]),
    ("Ex.com/x", [f"prefix part {SUBDOMAIN}"]),
    ("a..b/-", [f"prefix part {SUBDOMAIN}", f"name part {KEY}"]),
    ("a" * 253 + "/x", []),
    ("a" * 254 + "/x", ["prefix part must be no more than 253 bytes"]),
    ("a/b/c", [f"a valid label key {KEY}"]),
])  # fmt: skip
def test_label_key(key, wrong):
    assert shortened(names.label_key(key)) == wrong


def test_the_whole_text_of_a_label_key_detail():
    assert names.label_key("-x") == [f"name part {KEY} {KEY_FORM}"]
    optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
    assert names.label_key("a/b/c") == [f"a valid label key {KEY} {KEY_FORM} {optional}"]


@pytest.mark.parametrize("value, wrong", [
    ("", []),
    ("a.b-c_d", []),
    ("y" * 63, []),
    ("y" * 64, ["must be no more than 63 bytes"]),
    ("y" * 63 + "-", ["must be no more than 63 bytes", VALUE]),
    ("bad value", [VALUE]),
    ("-x", [VALUE]),
    ("a/b", [VALUE]),
])  # fmt: skip
def test_label_value(value, wrong):
    assert shortened(names.label_value(value)) == wrong


@pytest.mark.parametrize("name, wrong", [
    ("team-a", []),
    ("1", []),
    ("x" * 64, ["must be no more than 63 characters"]),
    ("", [LABEL]),
    ("Bad_NS", [LABEL]),
    ("a.b", ["must not contain dots"]),
    ("-a.b", [LABEL]),
])  # fmt: skip
def test_dns_label(name, wrong):
    assert shortened(names.dns_label(name)) == wrong


@pytest.mark.parametrize("name, wrong", [
    ("n1.example.com", []),
    ("x" * 254, ["must be no more than 253 characters"]),
    ("Bad Node", [SUBDOMAIN]),
    ("n1.", [SUBDOMAIN]),
    ("", [SUBDOMAIN]),
])  # fmt: skip
def test_dns_subdomain(name, wrong):
    assert shortened(names.dns_subdomain(name)) == wrong
