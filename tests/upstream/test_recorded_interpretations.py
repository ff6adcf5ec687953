"""Custom objects are read as by Karmada's own interpreter: by the customizations that it ships, and by those given."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from bayplan.controllers import interpreted_kinds
from bayplan.controllers.interpretation import NotInterpretedError
from bayplan.model import quantities
from bayplan.reading import lua_customizations
from bayplan.reading.lua_customizations import LuaScript

with gzip.open(Path(__file__).parent / "interpretations.jsonl.gz", "rt") as lines:
    CASES = [json.loads(line) for line in lines]
BY_KIND = {}
for one in CASES:
    BY_KIND.setdefault(("Lua " if "customizations" in one else "") + one["object"]["kind"], []).append(one)
ERROR = "an error"


def amounts(requirements):
    """The requests as exact amounts; None without requirements."""
    if requirements is None:
        return None
    written = requirements.get("resourceRequest") or {}
    return {name: quantities.parse(text) for name, text in written.items()}


def components(found):
    return sorted((one["name"], one["replicas"], amounts(one.get("replicaRequirements"))) for one in found)


def expected(case, *, with_components):
    found = case["expect"]
    if with_components:
        return ERROR if "componentError" in found else components(found["components"] or [])
    return ERROR if "replicaError" in found else (found["replicas"], amounts(found["requirements"]))


def answered(case, worker, *, with_components):
    """What this package reads, in the same form."""
    written = case["object"]
    if "customizations" in case:
        (rules,) = (one["spec"]["customizations"] for one in case["customizations"])
        rule, function = (
            ("componentResource", "GetComponents") if with_components else ("replicaResource", "GetReplicas")
        )
        found = lua_customizations.answer(LuaScript("one", rules[rule]["luaScript"], function), written, worker)
    else:
        kind = interpreted_kinds.INTERPRETED[written["apiVersion"], written["kind"]]
        try:
            found = interpreted_kinds.interpret(kind, written, with_components=with_components)
        except NotInterpretedError:
            found = ERROR
    if isinstance(found, str):
        return ERROR
    if not with_components:
        return found.replicas, amounts(msgspec.to_builtins(found.requirements))
    return components({"replicas": 0, **msgspec.to_builtins(one)} for one in found.components)


@pytest.mark.parametrize("kind", sorted(BY_KIND))
def test_a_custom_kind_is_read_as_by_karmada(kind):
    with lua_customizations.Worker() as worker:
        for case in BY_KIND[kind]:
            found = case["expect"]
            for name, with_components in (("replica", False), ("component", True)):
                if f"{name}s" in found or f"{name}Error" in found:
                    answer = answered(case, worker, with_components=with_components)
                    assert answer == expected(case, with_components=with_components), case["name"]


def test_every_kind_that_karmada_reads_has_a_case():
    assert {kind for _, kind in interpreted_kinds.INTERPRETED} | {"Lua Game"} == set(BY_KIND)
