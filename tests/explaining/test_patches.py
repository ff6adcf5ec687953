"""Every fix is a patch on manifests: applied to them and asked again, the pod fits where the fix says."""

import copy
import itertools

import msgspec
import numpy as np
import pytest

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.explaining import fixes, json_patch, patches
from bayplan.explaining.patches import ManifestSource, ManifestToRevise
from bayplan.placing import recreating
from bayplan.reading import questions
from bayplan.rules import profiles
from reference import strategies

REFUSALS = 2000
PARTS = 20


def situation(question):
    made = questions.pod_situation_of(msgspec.convert(question, questions.PodQuestion))
    return made, Engine(made.index, profiles.pod_rules(made.profile))


def feasible_names(workload, engine):
    feasible = filtering.run(workload, engine).feasible
    return sorted(engine.index.slots.at(int(slot)).name for slot in np.flatnonzero(feasible))


def key_of(pod):
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def source_of(question):
    pods = {key_of(pod): pod for pod in (question["pod"], *question["pods"])}
    nodes = {node["metadata"]["name"]: node for node in question["nodes"]}
    return ManifestSource(lambda key, _: ManifestToRevise(pods[key]), nodes.get)


def patched(question, found):
    """The question after the patches of a fix, applied to its manifests."""
    changed = copy.deepcopy(question)
    for one in found:
        is_node = one.object["kind"] == "Node"
        name = one.object["name"] if is_node else f"{one.object['namespace']}/{one.object['name']}"
        where = changed["nodes"] if is_node else changed["pods"]
        if not is_node and name == key_of(question["pod"]):
            changed["pod"] = json_patch.applied(one.patch, question["pod"])
            continue
        before = [m for m in where if (m["metadata"]["name"] if is_node else key_of(m)) == name]
        after = json_patch.applied(one.patch, before[0] if before else None)
        where[:] = [m for m in where if m not in before] + ([] if after is None else [after])
    return changed


def check(question):
    """Apply the patches of every fix and ask again; returns how many fixes there are."""
    made, engine = situation(question)
    policy = fixes.EvictionPolicy(
        recreated=lambda placed: recreating.as_recreated(placed, made.index, made.spread_context)
    )
    proposals = fixes.find_proposals(made.workload, engine, policy)
    source = source_of(question)
    for fix in (one.fix for one in proposals):
        again, after = situation(patched(question, patches.of_fix(fix.revisions, made.workload.key, source)))
        assert feasible_names(again.workload, after) == fix.fits_on, fix.change
        assert fix.fits_on, fix.change
        if fix.moved:
            after.index.add(again.workload, next(n for n in fix.fits_on if fits_then(again, after, n, fix, made)))
    return len(proposals)


def fits_then(again, after, name, fix, made):
    """Whether all moved pods fit where the fix says once the pod is on this node."""
    with after.index.tentatively():
        after.index.add(again.workload, name)
        for key, target in fix.moved:
            moved = recreating.as_recreated(made.index.records[key], made.index, made.spread_context)
            if target not in feasible_names(moved, after):
                return False
            after.index.add(moved, target)
    return True


def refusals(start, count):
    """Questions whose pod fits nowhere, from this number on."""
    found = 0
    for seed in itertools.count(start):
        question = strategies.seeded(seed)
        made, engine = situation(question)
        if not made.workload.unplaceable and not feasible_names(made.workload, engine):
            yield question
            found += 1
            if found == count:
                return


@pytest.mark.parametrize("part", range(PARTS))
def test_every_fix_of_random_refusals_helps_when_its_patches_are_applied(part):
    assert sum(check(question) for question in refusals(part * 1_000_000, REFUSALS // PARTS)) > 0
