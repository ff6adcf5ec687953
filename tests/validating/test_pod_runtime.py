"""Volumes, probes, environment, security and names: rejected as by an API server, in its wording."""

import copy
import random

import pytest

from bayplan.validating import admission
from bayplan.validating.pod_runtime import containers, pod_specs
from validating import mutations, rejections, runtime_rejections

ODD = (None, True, 0, 2**70, 1.5, "", "1Gi", [], [None], ["a"], {}, {"name": 3}, [{}])


@pytest.mark.parametrize("obj, wrong", runtime_rejections.REJECTED)
def test_rejected(obj, wrong):
    assert [str(cause) for cause in admission.validate_all(obj)] == wrong


@pytest.mark.parametrize("obj", runtime_rejections.ADMITTED)
def test_admitted(obj):
    assert admission.validate_all(obj) == []


def test_how_pods_run_is_not_validated_for_placing_them():
    assert admission.validate(runtime_rejections.probed("exec: {}")) == []


@pytest.mark.parametrize("kind", sorted(set(mutations.KINDS)))
@pytest.mark.parametrize("name", mutations.VALID["specs"])
def test_the_objects_that_mutations_start_from_are_valid(kind, name):
    for volume in mutations.VALID["volumes"]:
        spec = {**mutations.valid_spec(name, volume), **({"restartPolicy": "Never"} if "Job" in kind else {})}
        assert admission.validate_all(mutations.object_of_kind(kind, spec, mutations.VALID["claim"])) == []


def test_the_fields_without_rules_are_skipped_without_losing_a_cause(monkeypatch):
    tables = (*rejections.REJECTED, *runtime_rejections.REJECTED)
    asked = [*(obj for obj, _ in tables), *mutations.mutated(seed=2, count=100)]
    found = [admission.validate_all(obj) for obj in asked]
    monkeypatch.setattr(containers, "FIELDS_WITHOUT_RULES", frozenset())
    monkeypatch.setattr(pod_specs, "FIELDS_WITHOUT_RULES", frozenset())
    assert [admission.validate_all(obj) for obj in asked] == found


def test_values_of_any_type_get_an_answer():
    rng = random.Random(1)
    for obj in mutations.mutated(seed=1, count=300):
        for _ in range(3):
            holder, key = rng.choice(list(places(obj["spec"])))
            holder[key] = copy.deepcopy(rng.choice(ODD))
        admission.validate_all(obj)


def places(value):
    """Every place within the value: its holder, and the key or the position in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield value, key
        yield from places(below)


def test_all_causes_are_reported_at_once():
    obj = rejections.pod("restartPolicy: Often, dnsPolicy: Mine, volumes: [{name: A}]")
    assert [cause.field for cause in admission.validate_all(obj)] == [
        "spec.restartPolicy",
        "spec.volumes[0].name",
        "spec.dnsPolicy",
    ]
