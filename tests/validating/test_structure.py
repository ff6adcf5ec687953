"""One walk finds every difference between a value and its type; it has two wordings."""

from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings, strategies
from msgspec import inspect

from bayplan.model.semantics import Semantics
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Workload
from bayplan.reading import checking, questions
from bayplan.validating import structure, structure_faults, type_checks
from bayplan.validating.guard import GuardSettings
from bayplan.validating.structure import Either, ListOf, MapOf, Nulls, Problem, Record, Scalar, Text, Whole
from bayplan.wire.controllers import Controller, PodDisruptionBudget
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.meta import Int32
from bayplan.wire.nodes import Node
from bayplan.wire.placements import PropagationPolicy, WirePlacement
from bayplan.wire.pods import Pod
from bayplan.wire.storage import PersistentVolume


class Port(msgspec.Struct, rename="camel"):
    number: Int32
    host_ip: str = ""


class Service(msgspec.Struct, rename="camel"):
    name: str
    ports: list[Port] = []
    labels: dict[str, str] | None = None
    headless: bool = False
    share: float = 1.0
    target: int | str = 80
    policy: Literal["Local", "Cluster"] = "Local"
    span: tuple[str, int] = ("", 0)
    parent: "Service | None" = None
    raw: Any = None


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    users: tuple[str, ...] = ()


def differences(value, wire, **settings):
    return list(structure.walk(value, structure.shape_of(wire), **settings))


@pytest.mark.parametrize("value, path, in_a_file, by_a_server", [
    ({"name": 5}, "name", "expected a string, got the number 5 (put it in quotes)", "Invalid value: 5: expected text, got a whole number"),
    ({"name": True}, "name", "expected a string, got true (put it in quotes)", "Invalid value: true: expected text, got true or false"),
    ({"name": ["a"]}, "name", "expected a string, got a list", 'Invalid value: "a list": expected text, got a list'),
    ({"ports": {}}, "ports", "expected a list, got a mapping", 'Invalid value: "a mapping": expected a list, got a mapping'),
    ({"ports": [7]}, "ports[0]", "expected a mapping, got the number 7", "Invalid value: 7: expected a mapping, got a whole number"),
    ({"ports": [{"number": 2**31}]}, "ports[0].number", f"expected a whole number from {-(2**31)} to {2**31 - 1}, got the number {2**31}", f"Invalid value: {2**31}: expected a whole number from {-(2**31)} to {2**31 - 1}"),
    ({"ports": [{}, {"number": 1.5}]}, "ports[1].number", "expected a whole number, got the number 1.5", "Invalid value: 1.5: expected a whole number, got a fraction"),
    ({"labels": {"a/b": False}}, "labels[a/b]", "expected a string, got false (put it in quotes)", "Invalid value: false: expected text, got true or false"),
    ({"labels": "a"}, "labels", 'expected a mapping, got the string "a"', 'Invalid value: "a": expected a mapping, got text'),
    ({"headless": "no"}, "headless", 'expected true or false, got the string "no"', 'Invalid value: "no": expected true or false, got text'),
    ({"share": "1"}, "share", 'expected a number, got the string "1"', 'Invalid value: "1": expected a number, got text'),
    ({"target": []}, "target", "expected a whole number or a string, got a list", 'Invalid value: "a list": expected a whole number or text, got a list'),
    ({"policy": "Globl"}, "policy", 'expected Cluster or Local, got the string "Globl"', 'Invalid value: "Globl": expected Cluster or Local, got text'),
    ({"span": ["a", 1, 2]}, "span", "expected a list of 2, got a list of 3", 'Invalid value: "a list": expected a list of 2, got a list'),
    ({"span": ["a", "b"]}, "span[1]", 'expected a whole number, got the string "b"', 'Invalid value: "b": expected a whole number, got text'),
    ({"parent": {"parent": {"name": {}}}}, "parent.parent.name", "expected a string, got a mapping", 'Invalid value: "a mapping": expected text, got a mapping'),
    ({"ports": [{"hostip": ""}]}, "ports[0].hostip", "unknown field, did you mean hostIp?", 'Invalid value: "hostip": unknown field; did you mean "hostIp"?'),
    ({"xyz": 1}, "xyz", "unknown field", 'Invalid value: "xyz": unknown field; known are name, ports, labels, headless, share, target, policy, span, parent, raw'),
    ({"name": "a" * 41, "labels": "b" * 41}, "labels", f'expected a mapping, got the string "{"b" * 40}…"', f'Invalid value: "{"b" * 41}": expected a mapping, got text'),
])  # fmt: skip
def test_the_two_wordings(value, path, in_a_file, by_a_server):
    (finding,) = differences(value, Service, closed=True)
    cause = type_checks.cause_of(finding)
    assert (finding.path, cause.field) == (path, path)
    assert (structure_faults.message(finding), cause.message) == (in_a_file, by_a_server)


@pytest.mark.parametrize("nulls, found", [
    (Nulls.EVERYWHERE, []),
    (Nulls.FIELDS, ["ports[0]: expected a mapping, got null"]),
    (Nulls.NOWHERE, [
        "ports[0]: expected a mapping, got null",
        "share: expected a number, got null",
        "name: expected a string, got nothing",
    ]),
])  # fmt: skip
def test_where_null_fits(nulls, found):
    value = {"ports": [None], "labels": None, "share": None, "raw": None}
    reported = [f"{one.path}: {structure_faults.message(one)}" for one in differences(value, Service, nulls=nulls)]
    assert reported == found


def test_all_differences_are_found_in_written_order():
    value = {"headless": 1, "ports": [{"number": "x", "hostIp": 2}, 3], "name": None, "labels": {"a": 1, "b": 2}}
    paths = [one.path for one in differences(value, Service)]
    assert paths == ["headless", "ports[0].number", "ports[0].hostIp", "ports[1]", "labels[a]", "labels[b]"]


def test_unknown_names_are_differences_only_in_closed_records():
    assert differences({"name": "a", "x": 1}, Service) == []
    (finding,) = differences({"user": []}, Closed)
    assert (finding.problem, finding.got) == (Problem.UNKNOWN_FIELD, "user")
    assert structure_faults.message(finding) == "unknown field, did you mean users?"


def test_shapes_made_by_hand():
    options = Record({"color": Scalar(), "file": Either((ListOf(Scalar()), Scalar()))}, closed=True, noun="option")
    commands = Record({"place": options}, closed=True, noun="command", bracketed=True)
    value = {"place": {"colour": 1, "color": [], "file": ["a", {}]}, "plaze": {}}
    reported = [f"{one.path}: {structure_faults.message(one)}" for one in structure.walk(value, commands, "commands")]
    assert reported == [
        "commands[place].colour: unknown option, did you mean color?",
        "commands[place].color: expected a string, a number, true or false, got a list",
        "commands[place].file[1]: expected a string, a number, true or false, got a mapping",
        "commands[plaze]: unknown command, did you mean place?",
    ]


@pytest.mark.parametrize("shape, value, expected", [
    (Whole(1), 0, "a whole number of at least 1"),
    (Whole(None, 9), 10, "a whole number of at most 9"),
    (Whole(1, 9), 10, "a whole number from 1 to 9"),
    (Whole(1, 9, from_float=True), 10.0, "a whole number from 1 to 9"),
    (Whole(1, 9), 5.0, "a whole number"),
    (Whole(1, 9), True, "a whole number"),
])  # fmt: skip
def test_ranges_of_integers(shape, value, expected):
    (finding,) = structure.walk(value, shape)
    assert structure.expected_text(finding, text="text") == expected


def test_a_float_without_a_fraction_is_an_integer_where_the_shape_says_so():
    assert not list(structure.walk(5.0, Whole(1, 9, from_float=True)))
    assert not list(structure.walk({"a": "b"}, MapOf(Text())))


def test_decoding_reports_all_differences_with_their_paths():
    with pytest.raises(structure_faults.InputError) as raised:
        structure_faults.decode(b'{"ports": [{"number": "x"}], "headless": 1}', Service, "services[0]")
    assert [str(fault) for fault in raised.value.faults] == [
        'services[0].ports[0].number: expected a whole number, got the string "x"',
        "services[0].headless: expected true or false, got the number 1",
        "services[0].name: expected a string, got nothing",
    ]
    with pytest.raises(structure_faults.InputError) as raised:
        structure_faults.convert(["a"], Service)
    assert str(raised.value) == "expected a mapping, got a list"
    assert structure_faults.convert({"name": "a"}, Service) == Service("a")
    assert structure_faults.decode(b'{"name": "a"}', Service) == Service("a")
    for text, message in [
        (b"{", "invalid JSON: it ends too early"),
        (b'{"name": "\xff"}', "invalid JSON: not UTF-8"),
        (b'{"name": ' + b"[" * 100_000, "invalid JSON: nested too deeply"),
        (b'{"name": ' + b"9" * 5000 + b"}", "invalid JSON: Integer value out of range"),
    ]:
        with pytest.raises(structure_faults.InputError, match=message):
            structure_faults.decode(text, Service)


# Types without Fraction, which is decoded by a hook, and without dates.
COMPARED = (
    Service, Closed, Pod, Node, Controller, PodDisruptionBudget, PersistentVolume, Cluster, ResourceBinding,
    PropagationPolicy, WirePlacement, GuardSettings, Semantics, questions.PodQuestion, questions.FleetQuestion,
)  # fmt: skip
LEAVES = strategies.one_of(
    strategies.none(),
    strategies.booleans(),
    strategies.integers(-(2**64), 2**64),
    strategies.floats(allow_nan=False),
    strategies.sampled_from(["", "a", "Local", "all"]),
)
WRONG = strategies.recursive(
    LEAVES,
    lambda inner: (
        strategies.lists(inner, max_size=2) | strategies.dictionaries(strategies.just("a"), inner, max_size=1)
    ),
    max_leaves=3,
)


def values_of(info, depth=0):
    """Values of a type, in which a few are replaced by something else."""
    fitting = _fitting(info, depth)
    return strategies.integers(0, 40).flatmap(lambda chance: fitting if chance else WRONG)


def _fitting(info, depth):
    match info:
        case inspect.UnionType():
            return strategies.one_of([values_of(one, depth) for one in info.types])
        case inspect.StructType():
            optional = {f.encode_name: values_of(f.type, depth + 1) for f in info.fields if depth < 6}
            required = {f.encode_name: optional.pop(f.encode_name, WRONG) for f in info.fields if f.required}
            shown = strategies.sets(strategies.sampled_from(sorted(optional)), max_size=4) if optional else None
            if shown is None:
                return strategies.fixed_dictionaries(required)
            return shown.flatmap(
                lambda names: strategies.fixed_dictionaries(required | {name: optional[name] for name in sorted(names)})
            )
        case inspect.ListType() | inspect.VarTupleType():
            return strategies.lists(values_of(info.item_type, depth + 1), max_size=2)
        case inspect.TupleType():
            return strategies.tuples(*(values_of(one, depth + 1) for one in info.item_types)).map(list)
        case inspect.DictType():
            return strategies.dictionaries(strategies.sampled_from("ab"), values_of(info.value_type, depth + 1))
        case inspect.LiteralType():
            return strategies.sampled_from(info.values)
    return {
        inspect.StrType: strategies.sampled_from(["", "a"]),
        inspect.IntType: strategies.integers(0, 9),
        inspect.FloatType: strategies.floats(0, 9),
        inspect.BoolType: strategies.booleans(),
        inspect.NoneType: strategies.none(),
    }.get(type(info), LEAVES)


@pytest.mark.parametrize("wire", COMPARED)
@settings(deadline=None)
@given(data=strategies.data())
def test_msgspec_refuses_what_has_differences_and_nothing_else(wire, data):
    value = data.draw(values_of(inspect.type_info(wire)))
    found = differences(value, wire, nulls=Nulls.NOWHERE)
    try:
        msgspec.convert(value, wire)
        refused = False
    except msgspec.ValidationError:
        refused = True
    assert refused == bool(found)
    _name_everything(found)


@settings(deadline=None)
@given(data=strategies.data())
def test_without_nulls_go_and_msgspec_agree_on_wire_types(data):
    """With null everywhere, only nulls and missing fields are no longer found."""
    value = data.draw(values_of(inspect.type_info(Pod)))
    strict = differences(value, Pod, nulls=Nulls.NOWHERE)
    expected = [one.path for one in strict if one.got is not None]
    assert [one.path for one in differences(value, Pod)] == expected


@settings(deadline=None)
@given(value=WRONG)
def test_findings_by_the_tables_of_fields_name_everything(value):
    pod = {"spec": value, "metadata": {"labels": value, "nam": value}}
    _name_everything(list(structure.walk(pod, checking.shapes()["Pod"])))


def _name_everything(found):
    for one in found:
        cause = type_checks.cause_of(one)
        assert one.expected
        assert cause.field == one.path
        for text in (structure_faults.message(one), cause.message):
            assert "expected " in text or "unknown field" in text
            assert "expected ," not in text
        if one.problem in (Problem.WRONG_TYPE, Problem.MISSING_FIELD):
            assert ", got " in structure_faults.message(one)
            assert ", got " in cause.message


@pytest.mark.parametrize(
    "example",
    [
        Workload(namespace="shop", name="web", labels={"app": "web"}, needs=Needs()),
        Target(name="n1", labels={}, allocatable=(("cpu", 4000),)),
        GuardSettings(),
    ],
)
def test_what_msgspec_encodes_has_the_shape_of_its_type(example):
    encoded = msgspec.json.decode(msgspec.json.encode(example))
    assert differences(encoded, type(example), nulls=Nulls.NOWHERE) == []
