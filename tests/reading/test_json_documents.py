"""JSON documents: one object, several, lists, and syntax errors."""

import json

import pytest

from bayplan.reading import documents, json_documents


def read(text):
    return list(json_documents.read(documents.Source("a.json", text.encode())))


def obj(kind, name, **more):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **more}


def summary(found):
    return [(item.kind, item.name, item.line) for item in found]


def test_one_object():
    assert summary(read(json.dumps(obj("Pod", "a"), indent=2))) == [("Pod", "a", 1)]


@pytest.mark.parametrize("between, lines", [("\n", (1, 2, 3)), ("", (1, 1, 1)), (" \n\n ", (1, 3, 5))])
def test_one_object_after_another(between, lines):
    text = between.join(json.dumps(obj("Pod", name)) for name in "abc")
    assert summary(read(text)) == [("Pod", name, line) for name, line in zip("abc", lines, strict=True)]


def test_items_of_a_list_with_their_lines():
    listed = {"apiVersion": "v1", "items": [obj("Pod", "a"), obj("Node", "b"), obj("Pod", "a")], "kind": "List"}
    assert summary(read(json.dumps(listed, indent=1))) == [("Pod", "a", 4), ("Node", "b", 11), ("Pod", "a", 18)]


def test_lines_in_a_dump_are_right_in_any_order_of_access():
    running = {"metadata": {"uid": "u", "name": "p"}, "spec": {}, "status": {"phase": "Running"}}
    dumped = [{"apiVersion": "v1", "kind": "Pod", **running} for _ in range(3)]
    text = json.dumps({"apiVersion": "v1", "items": dumped, "kind": "List"}, indent=1)
    begins = [number for number, line in enumerate(text.splitlines(), 1) if line == "  {"]
    first, second, third = read(text)
    assert first.typed is not None
    assert [third.line, first.line, second.line] == [begins[2], begins[0], begins[1]]
    assert second.fault("so", "status.phase").line == begins[1] + 9


def test_lists_within_lists_and_typed_lists():
    inner = {"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}
    found = read(json.dumps({"kind": "List", "apiVersion": "v1", "items": [inner, obj("Node", "n")]}, indent=0))
    assert [(item.api_version, item.kind, item.name) for item in found] == [
        ("v1", "Pod", "a"),
        ("v1", "Pod", "b"),
        ("v1", "Node", "n"),
    ]
    assert [item.line for item in found] == [9, 14, 21]


def test_a_list_within_a_list_whose_items_are_no_list_is_a_fault():
    inner = {"kind": "List", "apiVersion": "v1", "items": "x"}
    found = read(json.dumps({"kind": "List", "apiVersion": "v1", "items": [inner, obj("Node", "n")]}))
    assert [str(found[0]), found[1].name] == ["a.json:1, List: items: expected a list", "n"]


def test_a_path_has_a_line():
    text = json.dumps(
        {"items": [obj("Pod", "a"), obj("Pod", "b", spec={"x": [1, {"y": None}]})], "kind": "List"}, indent=1
    )
    document = read(text)[1]
    for path, line in [("spec", 16), ("spec.x[0]", 18), ("spec.x[1].y", 20), ("spec.nothing", 16)]:
        assert documents.line_of(document, path) == line, path


def test_text_that_looks_like_structure_does_not_mislead_lines():
    text = '{"kind": "Pod",\n "a": "}],{\\"\\n",\n "b": [1,\n  2.5e3, true]\n}'
    document = read(text)[0]
    assert [documents.line_of(document, path) for path in ("a", "b", "b[0]", "b[1]")] == [2, 3, 3, 4]


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"kind": "Pod",', "a.json:1: invalid JSON: it ends too early"),
        ('{"kind":\n "Pod",\n}', "a.json:3: invalid JSON: trailing comma in object"),
        ('{"kind": "Pod"}\n]', "a.json:2: "),
        ('{"kind": NaN}', "a.json:1: invalid JSON: invalid character"),
        ('{"items": {}, "kind": "List"}', "a.json:1: items: expected a list"),
        ('{"kind": "List",\n"items": [\n5]}', "a.json:3: expected an object with apiVersion and kind"),
        ('{"a":' * 100_000, "a.json:1: invalid JSON: "),
        ('{"kind": "Pod", "a": ' + "[" * 5_000 + "]" * 5_000 + "}", "a.json:1: invalid JSON: nested too deeply"),
    ],
)
def test_a_syntax_error_is_one_fault(text, message):
    faults = [str(item) for item in read(text) if not isinstance(item, documents.Document)]
    assert len(faults) == 1
    assert faults[0].startswith(message), faults


@pytest.fixture
def streamed(monkeypatch):
    """Read every list as a dump that is too large to be scanned as a whole."""
    monkeypatch.setattr(documents, "MIN_STREAMED_BYTES", 0)


RUNNING = {"metadata": {"uid": "u", "name": "ä"}, "spec": {}, "status": {"phase": "Running"}}
DUMPED = {"apiVersion": "v1", "kind": "Pod", **RUNNING}
BY_KUBECTL = {"apiVersion": "v1", "items": [DUMPED, obj("Node", "n")], "kind": "List", "metadata": {}}
BY_SERVER = {"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": ""}, "items": [RUNNING, RUNNING]}


@pytest.mark.parametrize(
    "lists",
    [
        [BY_KUBECTL],
        [BY_SERVER],
        [{**BY_KUBECTL, "items": []}],
        [{**BY_KUBECTL, "items": [BY_SERVER, DUMPED]}],
        [BY_KUBECTL, BY_SERVER, BY_KUBECTL],
        [BY_KUBECTL, obj("Pod", "b"), BY_KUBECTL],
        [{**BY_KUBECTL, "more": 1}, BY_KUBECTL],  # only the end of the file is known before it is read
    ],
)
@pytest.mark.parametrize("indent", [None, 4])
def test_a_large_dump_is_read_as_any_other_list(lists, indent, streamed, monkeypatch):
    text = "\n".join(json.dumps(one, indent=indent, ensure_ascii=False) for one in lists)
    assert documents.Source("a.json", text.encode()).is_json_dump
    found = [(one.api_version, one.kind, one.name, one.line) for one in read(text)]
    monkeypatch.setattr(documents, "MIN_STREAMED_BYTES", len(text) * 2)
    assert found == [(one.api_version, one.kind, one.name, one.line) for one in read(text)]


@pytest.mark.parametrize(
    "broken, message",
    [
        ('{"kind": "Pod" "metadata": 5}', "a.json:3: invalid JSON: expected ',' or '}'"),
        ("5", "a.json:3: expected an object with apiVersion and kind"),
        ("", "a.json:4: invalid JSON: trailing comma in array"),
        (",", "a.json:3: invalid JSON: "),
        ('{}, {"kind": ', "a.json:4: invalid JSON: "),
    ],
)
def test_a_syntax_error_in_a_large_dump_is_one_fault(broken, message, streamed):
    text = f'{{"apiVersion": "v1", "items": [\n{json.dumps(DUMPED)},\n{broken}\n], "kind": "List"}}'
    *_, fault = read(text)
    assert str(fault).startswith(message)
    assert sum(not isinstance(one, documents.Document) for one in read(text)) == 1


def test_bytes_in_a_large_dump_that_are_not_utf_8_are_a_fault(streamed):
    text = json.dumps({**BY_KUBECTL, "items": [obj("Node", "n"), DUMPED]}).encode().replace(b"Running", b"R\xffnning")
    node, fault = json_documents.read(documents.Source("a.json", text))
    assert node.name == "n"
    assert str(fault) == f"a.json:1: not UTF-8: byte 0xff at offset {text.index(0xFF)}"
