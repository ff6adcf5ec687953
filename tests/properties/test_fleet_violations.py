"""The violations that the tracker finds in a fleet are those of the reference implementation."""

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing.tracking import ViolationTracker
from bayplan.mapping import bindings, targets
from bayplan.mapping.bindings import LabelKeys
from bayplan.model.workloads import LEAVING_SUFFIX
from bayplan.placing import place_bindings
from bayplan.reading import questions
from bayplan.reading.questions import FleetQuestion
from reference.fleet import strategies
from reference.fleet import violations as reference_implementation

SEEDS = st.integers(0, 2**32)


class ChangingFleet:
    """A fleet whose bindings and clusters are added and removed, once in an index and once as manifests."""

    def __init__(self, seed, preset):
        self.chance = random.Random(seed)
        drawn = strategies.seeded(seed, presets=(preset,), most_bindings=10)
        self.options, self.resources = drawn["options"], drawn["resources"]
        self.every = {"clusters": drawn["clusters"], "bindings": drawn["bindings"]}
        self.present = {"clusters": list(drawn["clusters"]), "bindings": []}
        self.question = msgspec.convert(drawn, FleetQuestion)
        situation = questions.fleet_situation_of(msgspec.structs.replace(self.question, bindings=[]))
        self.index = situation.index
        self.tracker = ViolationTracker(self.index)

    def step(self):
        kind = self.chance.choice(("bindings", "bindings", "bindings", "clusters"))
        if not self.every[kind]:
            return
        thing = self.chance.choice(self.every[kind])
        if thing in self.present[kind]:
            self.present[kind].remove(thing)
            getattr(self, f"remove_{kind}")(thing)
        else:
            self.present[kind].append(thing)
            getattr(self, f"add_{kind}")(thing)

    def add_clusters(self, manifest):
        written = self.question.clusters[self.every["clusters"].index(manifest)]
        self.index.add_target(targets.target_of_cluster(written))

    def remove_clusters(self, manifest):
        self.index.remove_target(manifest["metadata"]["name"])

    def add_bindings(self, manifest):
        written = self.question.bindings[self.every["bindings"].index(manifest)]
        options = self.question.options
        keys = LabelKeys(frozen(options.affinity_label_keys), frozen(options.anti_affinity_label_keys))
        how = bindings.BindingContext(questions.semantics_of(options), keys)
        templates = {questions._reference(each): each for each in reversed(self.resources)}
        workload = bindings.workload_of(written, templates.get(questions._template_of(written)), how)
        place_bindings.put_on(self.index, workload, bindings.shares_of(written), bindings.draining_from(written))

    def remove_bindings(self, manifest):
        meta = manifest["metadata"]
        name = f"{meta['namespace']}/{meta['name']}"
        for key in [key for key in self.index.records if key.partition(LEAVING_SUFFIX)[0] == name]:
            self.index.remove(key)

    def by_reference(self):
        return reference_implementation.broken({**self.present, "resources": self.resources, "options": self.options})

    def tracked(self):
        return sorted(
            (v.owner, v.rule_type.value, v.term, v.topology_key, sorted(v.domain.split(", ")), v.target, v.peers)
            for v in self.tracker.violations()
        )


def frozen(keys):
    return None if keys is None else tuple(keys)


@pytest.mark.parametrize("preset", ["upstream", "design"])
@settings(max_examples=80, deadline=None)
@given(seed=SEEDS)
def test_tracker_agrees_with_the_reference_implementation(preset, seed):
    fleet = ChangingFleet(seed, preset)
    for _ in range(25):
        fleet.step()
        if fleet.chance.random() < 0.6:
            assert fleet.tracked() == fleet.by_reference()
    assert fleet.tracked() == fleet.by_reference()
