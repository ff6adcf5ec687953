"""After any changes of volumes, claims and attachments the index answers like one built from scratch."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.rules import volume_binding
from properties.changing_storage import ChangingStorage

SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN], ids=["upstream", "design"])
@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_index_after_changes_of_storage_answers_like_a_fresh_one(semantics, seed):
    cluster = ChangingStorage(seed, semantics)
    for _ in range(30):
        cluster.step()
        if cluster.chance.random() < 0.5:
            assert cluster.answers() == cluster.fresh_answers()
    assert cluster.answers() == cluster.fresh_answers()


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_undo_restores_the_storage(seed):
    cluster = ChangingStorage(seed, UPSTREAM)
    for _ in range(12):
        cluster.step()
    before, kept = cluster.answers(), [dict(each) for each in (cluster.targets, cluster.placed, cluster.stored)]
    namespaces, mark = dict(cluster.namespaces), cluster.index.mark()
    for _ in range(12):
        cluster.step()
        cluster.answers()
    cluster.index.undo_to(mark)
    cluster.targets, cluster.placed, cluster.stored = kept
    cluster.namespaces = namespaces
    assert cluster.answers() == before == cluster.fresh_answers()


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_claims_get_the_volumes_that_the_reference_implementation_chooses(seed):
    cluster = ChangingStorage(seed, UPSTREAM)
    storage = cluster.index.storage
    for _ in range(10):
        cluster.step()
        for workload in cluster.pending:
            claims = [storage.claims.get(f"default/{name}") for name in workload.needs.claims.names]
            unbound = [claim for claim in claims if claim is not None and not claim.bound]
            for target in cluster.targets.values():
                chosen = volume_binding.volumes_for(workload, cluster.index.slots.by_name[target.name], cluster.index)
                assert [(claim.key, name) for claim, name in chosen] == reference_choice(unbound, target, storage)


def reference_choice(unbound, target, storage):
    """The reference implementation: (claim, volume chosen on the target or ""), by loops over everything."""
    found, taken = [], set()
    for claim in sorted(unbound, key=lambda claim: claim.requested):
        candidates = [
            volume
            for _, volume in sorted(storage.volumes.items())
            if volume.storage_class == claim.storage_class
            and volume.claim in ("", claim.key)
            and volume.capacity >= claim.requested
        ]
        volumes = [volume for volume in candidates if volume.claim] or sorted(
            candidates, key=lambda volume: volume.capacity
        )
        reachable = (
            volume.name
            for volume in volumes
            if volume.name not in taken
            and (volume.required is None or any(term.matches(target.name, target.labels) for term in volume.required))
        )
        name = "" if claim.selected_node else next(reachable, "")
        taken.add(name)
        found.append((claim.key, name))
    return found


def test_random_storage_reaches_every_reason():
    seen = Counter()
    for seed in range(150):
        cluster = ChangingStorage(seed, UPSTREAM)
        for _ in range(20):
            cluster.step()
        for answer in cluster.answers():
            for verdict in answer["nodes"].values():
                seen.update(verdict["reasons"])
    for reason in (
        "node(s) exceed max volume count",
        "node(s) didn't match PersistentVolume's node affinity",
        "node(s) didn't find available persistent volumes to bind",
        "node(s) did not have enough free storage",
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
        "pod has unbound immediate PersistentVolumeClaims",
    ):
        assert seen[reason] > 5, (reason, seen)
