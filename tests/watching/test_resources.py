"""What watched objects change, decoded as they arrive."""

import json

import msgspec
import pytest

from bayplan.enforcing.quota import NO_LIMITS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api.decoding import Key
from bayplan.model import labels
from bayplan.model.semantics import UPSTREAM
from bayplan.watching import resources
from bayplan.watching.cluster_state import ClusterState

WEB = {"app": "web"}


@pytest.fixture
def state():
    return ClusterState(PlacementIndex(UPSTREAM), None, None, is_responsible=lambda _name: True)


def put(watched, name="a", **content):
    written = {"metadata": {"name": name, "namespace": "shop"}, **content}
    watched.put(msgspec.json.decode(json.dumps(written), type=watched.item_type))


def of(state, plural):
    return next(one for one in resources.scheduling_resources(state) if one.resource.plural == plural)


@pytest.mark.parametrize("plural, kind, selector, expected", [
    ("replicasets", "ReplicaSet", {"matchLabels": WEB}, labels.equals(WEB)),
    ("statefulsets", "StatefulSet", {"matchLabels": WEB}, labels.equals(WEB)),
    ("replicationcontrollers", "ReplicationController", WEB, labels.equals(WEB)),
    ("replicationcontrollers", "ReplicationController", None, labels.equals({})),  # an API server sets one
])  # fmt: skip
def test_the_selector_of_a_controller_is_known_until_it_is_deleted(state, plural, kind, selector, expected):
    watched = of(state, plural)
    put(watched, spec={"selector": selector, "template": {"spec": {"nodeName": 1}}})  # its template is not decoded
    assert state.spread_context.current.controllers == {(kind, "shop", "a"): expected}
    watched.drop(Key("shop", "a"), "")
    assert state.spread_context.current.controllers == {}


def test_the_labels_of_a_namespace_are_known_until_it_is_deleted(state):
    watched = of(state, "namespaces")
    watched.put(msgspec.json.decode(b'{"metadata": {"name": "shop", "labels": {"team": "x"}}}', type=watched.item_type))
    assert state.index.peer_index.namespaces["shop"] == {"team": "x"}
    watched.drop(Key("", "shop"), "")
    assert "shop" not in state.index.peer_index.namespaces


def test_a_quota_without_data_has_no_limits(state):
    watched = resources.quota_resource(state)
    put(watched, data={"research": "{cpu: 64}"})
    assert set(state.quota_limits.by_namespace) == {"research"}
    put(watched)
    assert state.quota_limits == NO_LIMITS
