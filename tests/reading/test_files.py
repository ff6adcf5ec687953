"""Paths, directories and standard input, and the faults of each."""

import errno
import io
import json
import os
import pathlib

import pytest

from bayplan import errors
from bayplan.controllers.desired_state import ObjectKey
from bayplan.reading import files, yaml_documents
from bayplan.reading.files import ReadOptions
from bayplan.wire import kinds

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}\n"


def names(objects):
    return [item.metadata.name for item in objects]


def faults_of_paths(paths, **options):
    with pytest.raises(errors.InputError) as caught:
        files.load(ReadOptions(paths, **options))
    return [str(fault) for fault in caught.value.faults]


def test_a_directory_is_read_in_order_and_not_deeper(write, tmp_path):
    for name in ("b.yaml", "a.yml", "c.json", "deeper/d.yaml", "notes.txt"):
        text = (
            NODE % name[0] if not name.endswith("json") else '{"apiVersion":"v1","kind":"Node","metadata":{"name":"c"}}'
        )
        write(text, name)
    assert names(files.load(ReadOptions([str(tmp_path)])).nodes) == ["a", "b", "c"]
    assert names(files.load(ReadOptions([str(tmp_path)], recursive=True)).nodes) == ["a", "b", "c", "d"]


def test_a_file_given_twice_is_read_once(write, tmp_path):
    path = write(NODE % "a")
    assert names(files.load(ReadOptions([path, str(tmp_path), f"{tmp_path}/./a.yaml"])).nodes) == ["a"]


def test_a_file_given_by_name_may_have_any_extension(write):
    assert names(files.load(ReadOptions([write(NODE % "a", "dump.txt")])).nodes) == ["a"]


@pytest.mark.parametrize("text", [NODE % "a", '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}'])
def test_standard_input(text):
    assert names(files.load(ReadOptions(["-"], stdin=io.BytesIO(text.encode()))).nodes) == ["a"]


JSON_NODE = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "%s"}}'
JSON_LIST = '{"apiVersion": "v1", "kind": "List", "items": [%s]}'


@pytest.mark.parametrize("text", [
    f"{JSON_NODE % 'a'}\n---\n{JSON_NODE % 'b'}\n---\n{JSON_NODE % 'c'}\n",
    f"{JSON_NODE % 'a'}\n---\n{NODE % 'b'}---\n{NODE % 'c'}",
    f"{JSON_LIST % (JSON_NODE % 'a' + ', ' + JSON_NODE % 'b')}\n---\n{NODE % 'c'}",
    f"{JSON_NODE % 'a'}\n---  # a comment\n{JSON_LIST % (JSON_NODE % 'b' + ', ' + JSON_NODE % 'c')}\n---\n",
])  # fmt: skip
@pytest.mark.parametrize("name", ["all.yaml", "all.json"])
def test_json_documents_between_lines_of_yaml(text, name, write):
    """As kubectl's decoder, which goes on as YAML where the second document is no JSON."""
    assert names(files.load(ReadOptions([write(text, name)])).nodes) == ["a", "b", "c"]


def test_json_that_is_broken_after_the_first_document_is_a_fault(write):
    path = write(f"{JSON_NODE % 'a'}\n---\n{JSON_NODE % 'b'}, oops: [")
    assert len(faults_of_paths([path])) == 1
    path = write(f"{JSON_NODE % 'a'}\n{JSON_NODE % 'b'}\n---\n{JSON_NODE % 'c'}", "b.yaml")
    assert faults_of_paths([path]) == [f"{path}:3: invalid JSON: invalid character"]


def test_a_pipe_can_be_read():
    reading, writing = os.pipe()
    os.write(writing, (NODE % "a").encode())
    os.close(writing)
    assert names(files.load(ReadOptions([f"/dev/fd/{reading}"])).nodes) == ["a"]
    os.close(reading)


def test_yaml_in_braces_is_not_json(load):
    assert names(load("{apiVersion: v1, kind: Node, metadata: {name: a}}\n").nodes) == ["a"]


def test_a_byte_order_mark_is_ignored(load):
    assert names(load(b"\xef\xbb\xbf" + (NODE % "a").encode()).nodes) == ["a"]
    assert names(load(b'\xef\xbb\xbf{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}').nodes) == ["a"]


@pytest.mark.parametrize(
    "text, message",
    [
        (b"", "a.yaml: the file is empty"),
        (b" \n\n", "a.yaml: the file is empty"),
        (b"# later\n---\n# more\n", "a.yaml: the file holds no object"),
        (b"\x7fELF\x02\x00\x00", "a.yaml: a binary file, expected YAML or JSON"),
        (b"kind: Pod\nmetadata: {name: \xff}\n", "a.yaml:2: not UTF-8: byte 0xff at offset 27"),
        ("kind: Pod\n".encode("utf-16"), "a.yaml: the text is UTF-16, expected UTF-8; save it again as UTF-8"),
        (b'{"kind": "Pod",\n"x": "\xc3"}', "a.yaml:2: not UTF-8: byte 0xc3 at offset 22"),
        (b"%YAML 3.0\n---\na: 1\n", "a.yaml:1: invalid YAML: found incompatible YAML document"),
        (b"a: 1\n", "a.yaml:1: kind: expected an object with apiVersion and kind"),
        (b"kind: Pod\n", "a.yaml:1, Pod: apiVersion: expected an object with apiVersion and kind"),
        (b"kind: pod\napiVersion: v1\n", "a.yaml:1, pod: kind: unknown kind pod, did you mean Pod?"),
        (
            b"apiVersion: v1\nkind: Deployment\nmetadata: {name: a}\n",
            "a.yaml:1, Deployment a: apiVersion: expected apps/v1 for a Deployment, got v1",
        ),
        (b"apiVersion: v1\nkind: Pod\nspec: {}\n", "a.yaml:1, Pod default/: metadata.name: expected a name"),
    ],
)
def test_an_unreadable_file_is_one_fault(faults_of, text, message):
    assert faults_of(text) == [message]


@pytest.mark.parametrize(
    "text, message",
    [
        ('"spec":\n{"priority":1e400}', "a.json:1, Pod default/a: invalid JSON: Number out of range"),
        ('"spec":\n{"nodeName":"\\ud800"}', "a.json:2: invalid JSON: "),
        ('"spec":\n{"nodeName":"\\x"}', "a.json:2: invalid JSON: invalid escaped character"),
        ('"x": ' + '{"a":' * 900 + "1" + "}" * 900, "a.json:1"),
    ],
)
def test_json_with_invalid_values_is_a_fault(faults_of, text, message):
    (reported,) = faults_of('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},' + text + "}", "a.json")
    assert reported.startswith(message)


def test_each_unreadable_path_is_one_fault(tmp_path, write):
    (tmp_path / "empty").mkdir()
    write(NODE % "x", "outer/inner/a.yaml")
    unreadable = tmp_path / "gone.yaml"
    unreadable.symlink_to(tmp_path / "nowhere")
    paths = [f"{tmp_path}/nothing", f"{tmp_path}/empty", f"{tmp_path}/outer", str(unreadable), "https://example.com/a"]
    assert [line.replace(f"{tmp_path}/", "") for line in faults_of_paths(paths)] == [
        "nothing: no such file or directory",
        "empty: the directory holds no .yaml, .yml or .json file",
        "outer: the directory holds no .yaml, .yml or .json file; its subdirectories do: add -R",
        "gone.yaml: no such file or directory",
        "https://example.com/a: addresses are not read; fetch it first and give the file",
    ]


@pytest.mark.parametrize("recursive", [True, False])
def test_a_folder_that_cannot_be_listed_is_a_fault(recursive, tmp_path, write, monkeypatch):
    write(NODE % "x", "a.yaml")
    write(NODE % "y", "closed/b.yaml")
    look = os.scandir

    def scandir(path):
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    paths = [str(tmp_path if recursive else tmp_path / "closed")]
    assert faults_of_paths(paths, recursive=recursive) == [f"{tmp_path}/closed: cannot be read: Permission denied"]


@pytest.mark.parametrize("kind", ["List", "PodList", "ConfigMapList"])
@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_a_list_whose_items_are_no_list(faults_of, kind, name):
    reported = faults_of(f'{{"apiVersion": "v1", "kind": "{kind}", "items": {{}}}}', name)
    assert [line.rpartition("items: ")[2] for line in reported] == ["expected a list"]


def test_faults_of_all_files_are_reported_at_once(write, tmp_path):
    write("a: [\n", "1.yaml")
    write(b"\0\0", "2.yaml")
    write("kind: Pod\napiVersion: v1\nmetadata: {name: a, label: {}}\nspec: {nodename: x}\n", "3.yaml")
    write('{"kind": "Pod",}', "4.json")
    reported = faults_of_paths([str(tmp_path), "missing.yaml"])
    assert [line.replace(f"{tmp_path}/", "") for line in reported] == [
        "missing.yaml: no such file or directory",
        "1.yaml:2: invalid YAML: did not find expected node content while parsing a flow node",
        "2.yaml: a binary file, expected YAML or JSON",
        "3.yaml:3, Pod default/a: metadata.label: unknown field, did you mean labels?",
        "3.yaml:4, Pod default/a: spec.nodename: unknown field, did you mean nodeName?",
        "4.json:1: invalid JSON: trailing comma in object",
    ]


@pytest.mark.parametrize("items", ["[]", "null"])
@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_a_list_without_items_is_accepted(load, items, name):
    assert load(f'{{"apiVersion": "v1", "kind": "List", "items": {items}}}', name).pods == []
    assert load(f"apiVersion: v1\nitems: {items}\nkind: PodList\n").pods == []


def test_a_duplicate_object_is_reported_with_both_places(write, tmp_path):
    write(POD % "a" + "---\n" + NODE % "a", "1.yaml")
    write(NODE % "b" + "---\n" + POD % "a", "2.yaml")
    reported = faults_of_paths([str(tmp_path)])
    assert [line.replace(f"{tmp_path}/", "") for line in reported] == [
        (
            "2.yaml:5, Pod default/a: the same object is given twice, first in 1.yaml:1; "
            "give what runs with --state instead of -f"
        )
    ]


def test_duplicate_objects_on_one_line(faults_of):
    node = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}'
    reported = faults_of(f'{{"kind":"List","items":[{node},{node}]}}', "a.json")
    assert reported[0].startswith("a.json:1, Node a: the same object is given twice, first in ")


def test_an_object_with_items_that_is_no_list(faults_of):
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nitems: []\nspec:\n  nodename: x\n"
    assert faults_of(text) == [
        "a.yaml:4, Pod default/a: items: unknown field",
        "a.yaml:6, Pod default/a: spec.nodename: unknown field, did you mean nodeName?",
    ]


def test_one_name_in_two_namespaces_is_two_objects(load):
    other = (POD % "a").replace("name: a", "name: a, namespace: other")
    assert [pod.metadata.namespace for pod in load(f"{POD % 'a'}---\n{other}").pods] == ["default", "other"]
    assert [pod.metadata.namespace for pod in load(POD % "a", namespace="shop").pods] == ["shop"]


def test_cluster_wide_objects_have_no_namespace(load):
    found = load("apiVersion: v1\nkind: Node\nmetadata: {name: a, namespace: x}\n")
    assert found.nodes[0].metadata.namespace == ""


def test_generated_names_are_deterministic(load):
    text = (POD % "a").replace("name: a", "generateName: web-")
    found = [load(f"{text}---\n{text}") for _ in range(2)]
    assert names(found[0].pods) == names(found[1].pods)
    assert len(set(names(found[0].pods))) == 2
    assert all(name.startswith("web-") and len(name) == 9 for name in names(found[0].pods))


def test_skipped_kinds_are_counted(load):
    found = load("""\
        {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {any: thing}}
        ---
        {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
        ---
        {apiVersion: v1, kind: ServiceAccount, metadata: {name: c}}
        ---
        {apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: d}}
        """)
    assert (found.skipped, found.unknown) == ({"ConfigMap": 2, "ServiceAccount": 1}, {"Service": 1})
    assert found.services == []


def test_every_kind_has_its_list(load):
    versions = {
        "v1": "Node Pod Namespace Service PersistentVolume PersistentVolumeClaim ReplicationController",
        "apps/v1": "Deployment ReplicaSet StatefulSet DaemonSet",
        "batch/v1": "Job",
        "storage.k8s.io/v1": "StorageClass",
        "scheduling.k8s.io/v1": "PriorityClass",
        "policy/v1": "PodDisruptionBudget",
    }
    text = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
        for version, listed in versions.items()
        for kind in listed.split()
    ]
    found = load("\n".join(map(json.dumps, text)), "a.json")
    single = (found.nodes, found.pods, found.namespaces, found.services, found.volumes, found.claims)
    single += (found.storage_classes, found.priority_classes, found.disruption_budgets)
    assert [len(items) for items in single] == [1] * 9
    assert {kind: len(items) for kind, items in found.controllers.items()} == dict.fromkeys(found.controllers, 1)
    assert found.disruption_budgets[0].metadata.namespace == "default"
    assert len(found.documents) == 15


def test_hand_written_objects_keep_their_document_and_dumps_do_not(load):
    dumped = NODE % "b, uid: u1" + "status: {}\n"
    found = load(f"{NODE % 'a'}---\n{dumped}")
    assert list(found.documents) == [ObjectKey("Node", "", "a")]


def test_a_sink_receives_no_kind_of_the_same_name_in_another_group(load):
    taken = []
    found = load(
        """\
        {apiVersion: example.io/v1, kind: Pod, metadata: {name: a}}
        ---
        {apiVersion: batch.example.io/v1, kind: CronJob, metadata: {name: b}, spec: {jobTemplate: 1}}
        """,
        sinks={kinds.POD: taken.append},
    )
    assert taken == []
    assert found.unknown == {"Pod": 1, "CronJob": 1}


def test_a_sink_receives_objects_instead_of_the_list(load):
    taken = []
    found = load(f"{POD % 'a'}---\n{NODE % 'n1'}", sinks={kinds.POD: taken.append})
    assert names(taken) == ["a"]
    assert (names(found.nodes), found.pods) == (["n1"], [])
    assert found.inventory.names == {"default/a"}


def test_faults_of_a_sink_are_reported_with_their_place(faults_of):
    def reject(pod):
        raise errors.InputError(errors.Fault("too odd", path="spec.containers[0].name"))

    assert faults_of(POD % "a", sinks={kinds.POD: reject}) == [
        "a.yaml:4, Pod default/a: spec.containers[0].name: too odd"
    ]


def test_progress_and_the_hint_for_large_yaml(write, monkeypatch):
    monkeypatch.setattr(files, "MIN_SLOW_YAML_BYTES", 1000)
    monkeypatch.setattr(yaml_documents, "HAS_LIBYAML", False)
    path = write("".join(f"---\n{NODE % f'n{i}'}" for i in range(600)))
    reported = []
    found = files.load(ReadOptions([path], progress=reported.append))
    size = pathlib.Path(path).stat().st_size
    hints = [step.hint for step in reported if step.hint]
    assert "JSON (kubectl get -o json) is read about thirty times faster" in hints[0]
    assert hints == found.hints
    assert "C part" in hints[1]
    assert [step.objects_read for step in reported] == [0, 0, 500, 600]
    assert reported[-1].bytes_read == reported[-1].bytes_total == size
    assert 0 < reported[2].bytes_read <= size


def test_disruption_budgets_are_read(load):
    found = load("""
        {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: db},
         spec: {minAvailable: 2, selector: {matchLabels: {app: db}}}}
        """)
    assert [each.spec.min_available for each in found.disruption_budgets] == [2]
