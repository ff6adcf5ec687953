"""YAML documents: lines, several documents, lists, and malicious files."""

import textwrap
import time

import pytest

from bayplan.reading import documents, yaml_documents

POD = """
    apiVersion: v1
    kind: Pod
    metadata:
      name: web
      labels:
        app.kubernetes.io/name: web
    spec:
      containers:
      - name: a
        resources: {limits: {nvidia.com/gpu: 1}}
      - name: b
        ports:
        - containerPort: 80
"""


def read(text):
    return list(yaml_documents.read(documents.Source("a.yaml", textwrap.dedent(text).encode())))


@pytest.mark.parametrize(
    "path, line",
    [
        ("", 2),
        ("kind", 3),
        ("metadata", 4),
        ("metadata.name", 5),
        ("metadata.labels[app.kubernetes.io/name]", 7),
        ("spec.containers[0]", 10),
        ("spec.containers[0].resources.limits[nvidia.com/gpu]", 11),
        ("spec.containers[1].ports[0].containerPort", 14),
        ("spec.containers[1].image", 12),  # absent: the line of what should hold it
        ("spec.containers[7].name", 9),
        ("spec.nodeSelector.disk", 8),
        ("metadata.name.further", 5),
    ],
)
def test_a_path_has_a_line(path, line):
    (document,) = read(POD)
    assert documents.line_of(document, path) == line


def test_lines_of_aliases_and_merged_keys():
    (document,) = read("""\
        kind: Thing
        base: &base
          cpu: 1
          inner: &inner
            deep: x
        merged:
          <<: *base
        again: *inner
        """)
    assert documents.line_of(document, "merged.cpu") == 3
    assert documents.line_of(document, "merged.inner.deep") == 5
    assert documents.line_of(document, "again.deep") == 5


def test_several_documents_and_empty_ones():
    found = read("# nothing yet\n---\nkind: A\n---\n---\n# a remark\n---\nkind: B\n...\n---\nkind: C\n")
    assert [(item.kind, item.line) for item in found] == [("A", 3), ("B", 8), ("C", 11)]


def test_items_of_a_list_are_returned_one_by_one():
    found = read("""\
        apiVersion: v1
        items:
        - apiVersion: v1
          kind: Node
          metadata: {name: n1}
        - {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: p}}]}
        kind: List
        """)
    assert [(item.kind, item.name, item.line) for item in found] == [("Node", "n1", 3), ("Pod", "p", 6)]


def test_items_of_a_typed_list_get_its_kind_at_the_end():
    found = read("apiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\nkind: PodList\n")
    assert [(item.api_version, item.kind, item.name) for item in found] == [("v1", "Pod", "a"), ("v1", "Pod", "b")]


def test_a_list_shares_anchors_between_its_items():
    found = read("items:\n- {kind: A, x: &x {z: 1}}\n- {kind: B,\n   x: *x}\nkind: List\n")
    assert found[1].root["x"] == {"z": 1}
    assert documents.line_of(found[1], "x.z") == 2


def test_items_are_returned_before_the_whole_file_is_read():
    text = "items:\n" + "- kind: Pod\n  metadata: {name: a}\n" * 10_000 + "kind: List\n"
    source = documents.Source("a.yaml", text.encode())
    next(yaml_documents.read(source))
    assert source.position < source.size / 4


def test_duplicate_keys_are_reported_with_both_lines():
    found = read("kind: A\nspec:\n  replicas: 1\n  paused: true\n  replicas: 2\n  paused: no\n")
    assert [str(fault) for fault in found[:2]] == [
        "a.yaml:5: the key replicas is given twice, first on line 3",
        "a.yaml:6: the key paused is given twice, first on line 4",
    ]


def test_keys_are_compared_as_kubectl_compares_them():
    assert "first on line 1" in str(read("yes: 1\ntrue: 2\n")[0])


@pytest.mark.parametrize(
    "text, message",
    [
        ("kind: A\nspec: [\n", "a.yaml:3: invalid YAML: did not find expected node content while parsing a flow node"),
        ("kind: A\n  b: c\n", "a.yaml:2: invalid YAML: mapping values are not allowed in this context"),
        ("kind: A\n\tb: c\n", "a.yaml:2: invalid YAML: found a tab character that violates indentation"),
        ("just text\n", "a.yaml:1: expected an object with apiVersion and kind"),
        ("- a\n- b\n", "a.yaml:1: expected an object with apiVersion and kind"),
        ("items:\n- 5\nkind: List\n", "a.yaml:2: expected an object with apiVersion and kind"),
        ("a: &a [*a]\n", "a.yaml:1: *a has no anchor before it, or stands within it"),
    ],
)
def test_a_syntax_error_is_one_fault(text, message):
    faults = [str(item) for item in read(text) if not isinstance(item, documents.Document)]
    assert len(faults) == 1
    assert faults[0].startswith(message)


def laughs():
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text, message",
    [
        (laughs(), "aliases expand the document by more than 200,000 nodes"),
        ("a: " + "[" * 500_000, "nested more than 200 levels deep"),
        ("a: " + "{b: " * 500_000, "nested more than 200 levels deep"),
        ("\n".join(" " * depth + "a:" for depth in range(2_000)), "nested more than 200 levels deep"),
        ("- " * 100_000, "nested more than 200 levels deep"),
        ("a: &x {b: " + "&y [" * 300 + "]", "nested more than 200 levels deep"),
    ],
)
def test_malicious_files_fail_fast(text, message):
    started = time.perf_counter()
    found = read(text)
    assert time.perf_counter() - started < 1
    assert [item.message for item in found] == [message]


def test_values_are_the_same_without_libyaml(monkeypatch):
    fast = read(POD)[0].root
    monkeypatch.setattr(yaml_documents, "_Parser", yaml_documents.yaml.SafeLoader)
    slow = read(POD)[0]
    assert slow.root == fast
    assert documents.line_of(slow, "spec.containers[1].ports[0].containerPort") == 14
    assert "expected" in str(read("a: [\n")[0])
