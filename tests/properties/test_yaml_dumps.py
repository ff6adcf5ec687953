"""
Dumps are read line by line as libyaml reads them: the same objects, lines and faults.

`yaml_documents` is the reference implementation. The texts are lists as kubectl writes them, as other programs do, and
with an edit that may leave them valid or not.
"""

import pathlib

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bayplan.errors import Fault
from bayplan.reading import documents, yaml_documents, yaml_dumps

ROOT = pathlib.Path(__file__).parents[2]
FILES = sorted(
    path for folder in ("examples", "scenarios", "deploy", "tests") for path in (ROOT / folder).rglob("*.y*ml")
)

KEYS = st.sampled_from(
    [
        "name",
        "f:spec",
        'k:{"type":"Ready"}',
        ".",
        "app.kubernetes.io/name",
        "a b",
        "y",
        "12",
        "x:",
        "<<",
        "é",
        "",
        "-",
        "a#b",
    ]
)
TEXTS = st.sampled_from([
    "web-1", "", " ", "yes", "017", "0x1F", "1e3", "12:30", "2026-11-01T08:00:00Z", "a: b", "a #b", "a:", "a\nb\n", "a\n\n b",
    "- a", "--port=80", "?", ":80", "it's", '"', "\\", "{}", "[]", "~", "null", ".inf", "é", "\x85", "a  b ", "&a", "*a", "!a",
    "%", "@", "word " * 30, "=", "<<", "---", "|", ">", "k:v", "\t", "\u2028",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | TEXTS | st.text("ab:# -\n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.fixed_dictionaries(
    {"apiVersion": st.just("v1"), "kind": st.sampled_from(["Pod", "Pod", "Node", "", "List"])},
    optional={"metadata": VALUES, "spec": VALUES, "items": VALUES},
)
INSERTED = st.sampled_from([
    " ", "  ", "\n", ":", ": ", "- ", "-", "#", " #", "&a ", "*a", "!!str ", '"', "'", "{", "[", "|", "\t", "\r", "---\n", "...\n",
    "\x01", "é", "\u2028", "?", ", ", "<<: ", "% ", "@", "a: b\n", "\n\n",
])  # fmt: skip
CHANGES = st.sampled_from(["insert", "replace", "delete", "repeat the line", "drop the line", "begin the line with"])
EDITS = st.none() | st.tuples(st.floats(0, 1), CHANGES, INSERTED)


def edited(text, edit):
    if edit is None:
        return text
    place, what, inserted = edit
    at = int(place * len(text))
    if what in ("insert", "replace", "delete"):
        return text[:at] + ("" if what == "delete" else inserted) + text[at + (what != "insert") :]
    lines = text.splitlines(keepends=True)
    which = min(int(place * len(lines)), len(lines) - 1)
    lines[which : which + 1] = {
        "repeat the line": [lines[which]] * 2,
        "drop the line": [],
        "begin the line with": [f"{inserted}{lines[which]}"],
    }[what]
    return "".join(lines)


def dump(objects, width=80, tail='kind: List\nmetadata:\n  resourceVersion: ""\n'):
    items = yaml.safe_dump(objects, width=width, allow_unicode=True, default_flow_style=False)
    return f"apiVersion: v1\nitems:\n{items}{tail}"


def read(reader, text):
    """The objects with the lines of all their fields, and the faults."""
    source = documents.Source("a.yaml", text.encode())
    found = list(reader(source))
    objects = [
        (item.kind, item.api_version, item.name, item.namespace, item.server_made, item.line, item.root, lines_of(item))
        for item in found
        if not isinstance(item, Fault)
    ]
    return objects, [str(item) for item in found if isinstance(item, Fault)], source.n_documents


def lines_of(document):
    """The line of every field, by its place in the object."""
    located = document.locate()

    def walk(value):
        if isinstance(value, dict):
            return {key: (located.lines[id(value)][key], walk(inner)) for key, inner in value.items()}
        if isinstance(value, list):
            return [(line, walk(inner)) for line, inner in zip(located.lines.get(id(value), ()), value, strict=True)]
        return value

    return walk(located.root)


def check(text):
    objects, faults, n_documents = read(yaml_dumps.read, text)
    expected, expected_faults, expected_n = read(yaml_documents.read, text)
    assert faults == expected_faults
    assert repr(objects[: len(expected)]) == repr(expected)  # 1, 1.0 and True differ
    if len(objects) > len(expected):  # libyaml saw a syntax error further down
        assert "invalid YAML" in faults[-1]
    else:
        assert n_documents == expected_n


@settings(max_examples=600, deadline=None)
@given(st.lists(OBJECTS, min_size=1, max_size=4), st.sampled_from([20, 80, 10_000]), EDITS)
@example([{"kind": "A", "a": "x"}, {"kind": "B"}], 80, (0.99, "insert", "\x01"))
@example([{"kind": "A", "a": "x"}], 80, (0.299, "insert", "#"))
@example([{"kind": "A", "a": "x"}], 80, (0.3, "begin the line with", "\u2028"))
def test_every_list_is_read_as_libyaml_reads_it(objects, width, edit):
    check(edited(dump(objects, width), edit))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("ab: -#'\"\n{}[]&*!|>?%@`,.~", max_size=12), min_size=1, max_size=6), st.integers(0, 6))
def test_every_text_in_an_item_is_read_as_libyaml_reads_it(lines, indent):
    body = "".join(f"{' ' * indent}{line}\n" for line in lines)
    check(f"apiVersion: v1\nitems:\n- kind: A\n  a:\n{body}- kind: B\nkind: List\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_of_the_repository_is_read_as_libyaml_reads_it(path):
    check(path.read_text())


def test_all_objects_of_the_repository_in_one_list_are_read_as_libyaml_reads_them():
    sources = [documents.Source(path.name, path.read_bytes()) for path in FILES]
    found = [item.root for source in sources for item in yaml_documents.read(source) if not isinstance(item, Fault)]
    assert len(found) > 200
    check(dump(found))
