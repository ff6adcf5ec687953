"""Volumes, probes, environment, security and names: refused as an API server refuses them, in its words."""

import copy
import random

import pytest

from bayplan.validating import admission
from bayplan.validating.pod_runtime import containers, pod_specs
from validating import mutations, refusals, running_refusals

ODD = (None, True, 0, 2**70, 1.5, "", "1Gi", [], [None], ["a"], {}, {"name": 3}, [{}])


@pytest.mark.parametrize("obj, wrong", running_refusals.REFUSALS)
def test_what_is_refused(obj, wrong):
    assert [str(cause) for cause in admission.validate_all(obj)] == wrong


@pytest.mark.parametrize("obj", running_refusals.ADMITTED)
def test_what_is_admitted(obj):
    assert admission.validate_all(obj) == []


def test_who_places_pods_does_not_ask_how_they_run():
    assert admission.validate(running_refusals.probed("exec: {}")) == []


@pytest.mark.parametrize("kind", sorted(set(mutations.KINDS)))
@pytest.mark.parametrize("name", mutations.SOUND["specs"])
def test_what_is_changed_at_random_was_sound(kind, name):
    for volume in mutations.SOUND["volumes"]:
        spec = {**mutations.sound_spec(name, volume), **({"restartPolicy": "Never"} if "Job" in kind else {})}
        assert admission.validate_all(mutations.made(kind, spec, mutations.SOUND["claim"])) == []


def test_a_look_at_the_names_of_fields_spares_only_what_would_find_nothing(monkeypatch):
    tables = (*refusals.REFUSALS, *running_refusals.REFUSALS)
    asked = [*(obj for obj, _ in tables), *mutations.mutated(seed=2, count=100)]
    found = [admission.validate_all(obj) for obj in asked]
    monkeypatch.setattr(containers, "FIELDS_WITHOUT_RULES", frozenset())
    monkeypatch.setattr(pod_specs, "FIELDS_WITHOUT_RULES", frozenset())
    assert [admission.validate_all(obj) for obj in asked] == found


def test_whatever_the_types_are_there_is_an_answer():
    rng = random.Random(1)
    for obj in mutations.mutated(seed=1, count=300):
        for _ in range(3):
            holder, key = rng.choice(list(places(obj["spec"])))
            holder[key] = copy.deepcopy(rng.choice(ODD))
        admission.validate_all(obj)


def places(value):
    """Every place within the value: what holds it, and the key or the position there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield value, key
        yield from places(below)


def test_all_faults_are_told_at_once_also_those_of_placing():
    obj = refusals.pod("restartPolicy: Often, dnsPolicy: Mine, volumes: [{name: A}]")
    assert [cause.field for cause in admission.validate_all(obj)] == [
        "spec.restartPolicy",
        "spec.volumes[0].name",
        "spec.dnsPolicy",
    ]
