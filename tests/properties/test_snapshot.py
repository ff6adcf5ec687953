"""A snapshot gives the same answers as its source, and with hashed names it contains no original name."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asking import comparable, engine_answer
from bayplan.controllers import label_keys
from bayplan.wire import kinds
from bayplan.wire.placements import WirePlacement
from bayplan.wire.pods import Pod
from bayplan.writing.name_hashing import Renaming
from bayplan.writing.snapshots import Snapshot
from reference import strategies

KEY = b"the key of these tests"
KINDS = {row.kind: (row.api_version, row.wire_type) for row in kinds.decoded()}


def typed(written):
    """As decoded; a new pod as it is admitted, which comes before a snapshot."""
    found = msgspec.convert(written, KINDS[written["kind"]][1])
    return label_keys.merged(found) if isinstance(found, Pod) and not found.metadata.uid else found


def snapshot_question(question, renaming):
    """The question with its objects as a snapshot writes them."""
    parts = {part: list(question[part]) for part in ("nodes", "namespaces", "pods", "objects")}
    parts["pod"] = [question["pod"]]
    objects = [typed(one) for part in parts.values() for one in part]
    items = iter(json.loads(Snapshot(objects).text(renaming))["items"])
    again = {part: [next(items) for _ in members] for part, members in parts.items()}
    return {**question, **again, "pod": again["pod"][0]}


def plain(question, preset):
    """Without a configuration, whose names are not hashed."""
    return {**question, "options": {"semantics": preset}}


@pytest.mark.parametrize("preset", ["upstream", "design"])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_answer_is_the_same(preset, seed):
    question = plain(strategies.seeded(seed), preset)
    assert comparable(engine_answer(snapshot_question(question, None))) == comparable(engine_answer(question))


@pytest.mark.parametrize("preset", ["upstream", "design"])
@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_with_hashed_names_it_is_the_same_but_for_names(preset, seed):
    question = plain(strategies.seeded(seed), preset)
    renaming = Renaming(KEY)
    ours = comparable(engine_answer(snapshot_question(question, renaming)))
    theirs = comparable(engine_answer(question))
    assert ours["best"] == sorted(map(renaming.name, theirs["best"]))
    assert ours["nodes"].keys() == set(map(renaming.name, theirs["nodes"]))
    for name, (code, plugin, reasons, *scores) in theirs["nodes"].items():
        our_code, our_plugin, our_reasons, *our_scores = ours["nodes"][renaming.name(name)]
        assert (our_code, our_plugin, our_scores) == (code, plugin, scores)
        assert len(our_reasons) == len(reasons)


# Names in every place that a name can be in

CANARIES = st.sampled_from([
    "canary", "Canary-7", "canary-0", "7-canary", "kube-canary", "canary.example.com", "canary.example.com/canary",
    "canary:5000/canary:1", "canary=canary", "canary__canary", "node-role.kubernetes.io/canary", "2026-canary",
    "canary@sha256:00", '{"canary": "canary"}', "app: canary", "{canary", "hugepages-canary", "canary 50%",
])  # fmt: skip

ANNOTATIONS = (
    "bayplan.io/affinity", "bayplan.io/audit", "bayplan.io/placement", "bayplan.io/workload-labels",
    "canary.example.com/note", "policy.karmada.io/applied-placement", "volume.kubernetes.io/selected-node",
)  # fmt: skip


def filled(draw, wire, depth=0):
    """A value of the type with a name in every text, wherever the type has room for one."""
    kind = type(wire).__name__
    if kind == "StructType":
        if wire.cls is WirePlacement:
            depth = max(depth, 3)
        known = wire.fields if depth < 9 else ()
        return {field.encode_name: filled(draw, field.type, depth + 1) for field in known}
    if kind == "UnionType":
        some = [one for one in wire.types if type(one).__name__ != "NoneType"]
        return filled(draw, next((one for one in some if type(one).__name__ == "StrType"), some[0]), depth)
    if kind == "ListType":
        return [filled(draw, wire.item_type, depth + 1)] if depth < 9 else []
    if kind == "DictType":
        return {draw(CANARIES): filled(draw, wire.value_type, depth + 1)}
    return {"IntType": 3, "FloatType": 3.0, "BoolType": True}.get(kind) or draw(CANARIES)


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_no_name_survives(kind, data):
    version, wire = KINDS[kind]
    written = filled(data.draw, msgspec.inspect.type_info(wire))
    written |= {"apiVersion": version, "kind": kind}
    written["metadata"]["annotations"] = {key: data.draw(CANARIES) for key in ANNOTATIONS}
    if "placement" in written.get("spec", {}):
        written["spec"]["placement"] = filled(data.draw, msgspec.inspect.type_info(WirePlacement), 3)
    found = typed(written)
    assert "canary" in Snapshot([found]).text().lower()
    assert "canary" not in Snapshot([found]).text(Renaming(KEY)).lower()
