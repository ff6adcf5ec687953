"""
Pods of a dump that are decoded many at a time are the same as those that are read one by one.

The reader of single items is the reference implementation. The texts are lists as kubectl writes them, with objects of
several kinds, valid and not, and with an edit that may leave the text valid or not.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.errors import InputError
from bayplan.reading import cluster, collecting, documents, files, pod_batches
from bayplan.reading.documents import Source
from bayplan.reading.files import ReadOptions
from bayplan.reading.pod_sink import PodSink
from bayplan.wire import kinds

NAMES = st.sampled_from(["a", "b", "c", "d", "é", ""])
METADATA = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "namespace": st.sampled_from(["shop", "", 7]),
        "uid": st.just("u"),
        "labels": st.dictionaries(NAMES, NAMES, max_size=2),
        "annotations": st.just({"bayplan.io/affinity": "podAfinity: {}"}),
    },
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "nodeName": st.sampled_from(["n1", "n2", "", 7]),
        "priority": st.integers(0, 3),
        "containers": st.lists(
            st.sampled_from([
                {"name": "c"},
                {"name": "c", "resources": {"requests": {"cpu": "1"}}},
                {"name": "c", "resources": {"requests": {"cpu": "many"}}},
                {"name": None},
            ]),
            max_size=2,
        ),
    },
)  # fmt: skip
STATUS = st.sampled_from([{}, {"phase": "Running"}, {"phase": "Failed"}, {"startTime": "soon", "phase": "Running"}])
OBJECTS = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["v1", "v1", "v1", "v1", "v2"]),
        "kind": st.sampled_from(["Pod", "Pod", "Pod", "Pod", "Pod", "Node", "Service", "List", "ConfigMap"]),
        "metadata": METADATA,
    },
    optional={"spec": SPECS, "status": STATUS, "items": st.just([])},
)
CLEAN = st.builds(
    lambda name, node: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": "u"},
        "spec": {"nodeName": node},
        "status": {"phase": "Running"},
    },
    st.sampled_from("abcdefgh"),
    st.sampled_from(["n1", "n2", ""]),
)
LISTS = st.lists(CLEAN, max_size=12) | st.lists(st.one_of(CLEAN, CLEAN, CLEAN, OBJECTS), max_size=12)
EDITS = st.none() | st.tuples(
    st.floats(0, 1),
    st.sampled_from(["", "x", "}", "]", ",", '"', "\n        },\n        {", "},{", "\n", "\udcff", "7"]),
)


def dumped(objects, indent=8):
    """The list as kubectl prints it; without an indent as an API server and jq -c do."""
    if indent is None:
        content = {"apiVersion": "v1", "items": objects, "kind": "List"}
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    gap = "\n" + " " * indent
    items = f",{gap}".join(json.dumps(one, indent=4, ensure_ascii=False).replace("\n", gap) for one in objects)
    return f'{{\n    "apiVersion": "v1",\n    "items": [{gap}{items}\n    ],\n    "kind": "List"\n}}\n'


def edited(text, edit):
    if edit is None:
        return text
    at = int(edit[0] * len(text))
    return text[:at] + edit[1] + text[at + (0 if edit[1] else 1) :]


def outcome(text, *, as_state):
    """What is read, without the lines of faults, which a batch does not know."""
    source = Source("a.json", text.encode(errors="surrogateescape"))
    sink = PodSink()
    collector = collecting.Collector(namespace="default", strict=True, sinks={kinds.POD: sink})
    if as_state:
        collector.begin_state()
    files._collect(source, collector, files._ProgressReporter(None, 0))
    inputs = collector.inputs
    messages = [
        [(one.message, one.subject, one.path, one.file) for one in listed]
        for listed in (collector.faults, inputs.set_aside)
    ]
    kept = (sink.running, sink.pending, sink.unplaceable, sink.priority_class_of, sink.charged, inputs.inventory.owned)
    pods = [repr(one) for one in (*kept, inputs.inventory.orphans, sorted(inputs.inventory.names))]
    return messages, pods, inputs.skipped, len(inputs.nodes), len(inputs.services), collector._n_given_twice


@pytest.fixture(autouse=True, scope="module")
def small_batches():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "MIN_STREAMED_BYTES", 0)
        patch.setattr(pod_batches, "BATCH_BYTES", 400)
        patch.setattr(pod_batches, "_MAX_BATCH_BYTES", 1500)
        yield


@settings(max_examples=150)
@given(LISTS, EDITS, st.booleans(), st.sampled_from([8, 8, 4, 0, None, None]))
def test_pods_are_the_same_as_one_by_one(objects, edit, as_state, indent):
    text = edited(dumped(objects, indent), edit)
    if not Source("a.json", text.encode(errors="surrogateescape")).is_json_dump:
        return
    together = outcome(text, as_state=as_state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collecting.Collector, "add_pods", lambda *_: False)
        assert together == outcome(text, as_state=as_state)


@pytest.mark.parametrize("indent", [8, None])
def test_pods_are_decoded_together(monkeypatch, indent):
    taken = []
    real = collecting.Collector.add_pods

    def noted(self, pods, source):
        found = real(self, pods, source)
        taken.append((len(pods), found))
        return found

    monkeypatch.setattr(collecting.Collector, "add_pods", noted)
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p-{i}", "namespace": "shop"},
            "spec": {"nodeName": "n"},
        }
        for i in range(20)
    ]
    outcome(dumped(pods, indent), as_state=True)
    assert all(found for _, found in taken)
    assert sum(n for n, _ in taken) == 20
    assert len(taken) < 11


@pytest.mark.parametrize("again", [0, 19])
def test_a_pod_that_the_dump_has_twice_is_read_once(again, tmp_path):
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{i}"}, "spec": {"nodeName": "n"}}
        for i in range(20)
    ]
    (tmp_path / "dump.json").write_text(dumped([*pods, pods[again]]))
    inputs, sink = cluster.read(ReadOptions(state=[str(tmp_path / "dump.json")]))
    assert len(sink.running) == 20
    assert inputs.hints == ["the state has 1 object more than once; the first of each is used"]


def test_a_pod_that_is_given_twice_under_f_is_a_fault(tmp_path):
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{i}", "uid": "u"}, "status": {"phase": "Running"}}
        for i in range(20)
    ]
    (tmp_path / "dump.json").write_text(dumped([*pods, pods[0]]))
    with pytest.raises(InputError, match="Pod default/p-0: the same object is given twice, first in "):
        cluster.read(ReadOptions([str(tmp_path / "dump.json")]))


def test_a_change_of_a_pod_within_a_batch_is_merged(tmp_path):
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{i}"}, "spec": {"nodeName": "n"}}
        for i in range(20)
    ]
    for pod in pods:
        pod["spec"]["containers"] = [{"name": "c", "image": "i"}]
    (tmp_path / "dump.json").write_text(dumped(pods))
    changed = {
        **pods[7],
        "metadata": {"name": "p-7", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "j"}]},
    }
    (tmp_path / "change.json").write_text(json.dumps(changed))
    inputs, sink = cluster.read(ReadOptions([str(tmp_path / "change.json")], state=[str(tmp_path / "dump.json")]))
    assert len(sink.running) == 20
    assert [workload.name for workload, _ in sink.running if workload.labels] == ["p-7"]
    assert len(inputs.replaced) == 1
