"""Custom kinds are read as by the customizations that Karmada ships: its own test data, object by object."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from bayplan.controllers import interpreted_kinds
from bayplan.model import quantities

with gzip.open(Path(__file__).parent / "interpretations.jsonl.gz", "rt") as lines:
    CASES = [json.loads(line) for line in lines]


def interpreted(case):
    written = case["object"]
    kind = interpreted_kinds.INTERPRETED[written["apiVersion"], written["kind"]]
    return interpreted_kinds.interpret(kind, written, with_components=case["operation"] == "InterpretComponent")


def amounts(requirements):
    """The requests as exact amounts; None without requirements."""
    if requirements is None:
        return None
    written = requirements.get("resourceRequest") or {}
    return {name: quantities.parse(text) for name, text in written.items()}


def components(found):
    written = [one if isinstance(one, dict) else msgspec.structs.asdict(one) for one in found]
    requirements = [
        one.get("replicaRequirements") or msgspec.to_builtins(one.get("replica_requirements")) for one in written
    ]
    return sorted(
        (one["name"], one["replicas"], amounts(asked)) for one, asked in zip(written, requirements, strict=True)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['operation']} {case['name']}")
def test_a_custom_kind_is_read_as_by_karmada(case):
    found, expected = interpreted(case), case["expect"]
    if "components" in expected:
        assert components(found.components) == components(expected["components"])
    if "replicas" in expected:
        assert found.replicas == expected["replicas"]
    if "requirements" in expected:
        assert amounts(msgspec.to_builtins(found.requirements)) == amounts(expected["requirements"])


def test_every_kind_that_karmada_reads_has_a_case():
    of_cases = {(case["object"]["apiVersion"], case["object"]["kind"]) for case in CASES}
    assert of_cases | {("apps.kruise.io/v1alpha1", "SidecarSet")} == set(interpreted_kinds.INTERPRETED)
