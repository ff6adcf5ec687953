"""What watched objects change, decoded as they arrive."""

import json

import msgspec
import pytest

from bayplan.enforcing.quota import NO_LIMITS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api.decoding import Decoding, Key
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


UNREAD = "not read"
UNREAD_METADATA = {
    "managedFields": [{"manager": UNREAD, "fieldsV1": {"f:spec": {UNREAD: {}}}}],
    "finalizers": [UNREAD],
    "selfLink": UNREAD,
}
UNREAD_OF = {
    "pods": {
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "command": [UNREAD],
                    "env": [{"name": UNREAD, "value": UNREAD}],
                    "volumeMounts": [{"name": UNREAD, "mountPath": UNREAD}],
                    "livenessProbe": {"httpGet": {"path": UNREAD}},
                    "terminationMessagePath": UNREAD,
                    "securityContext": {UNREAD: True},
                }
            ],
            "volumes": [{"name": "token", "projected": {"sources": [{"configMap": {"name": UNREAD}}]}}],
            "serviceAccountName": UNREAD,
            "dnsPolicy": UNREAD,
            "securityContext": {UNREAD: True},
            "imagePullSecrets": [{"name": UNREAD}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "message": UNREAD, "lastProbeTime": UNREAD}],
            "containerStatuses": [{"name": "main", "imageID": UNREAD, "containerID": UNREAD, "state": {UNREAD: {}}}],
            "hostIP": UNREAD,
            "podIPs": [{"ip": UNREAD}],
            "qosClass": UNREAD,
        },
    },
    "nodes": {
        "spec": {"podCIDR": UNREAD, "providerID": UNREAD},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "message": UNREAD, "lastHeartbeatTime": UNREAD}],
            "addresses": [{"type": UNREAD, "address": UNREAD}],
            "nodeInfo": {"kernelVersion": UNREAD},
            "volumesInUse": [UNREAD],
        },
    },
    "services": {"spec": {"selector": WEB, "clusterIP": UNREAD, "ports": [{"name": UNREAD}]}, "status": {UNREAD: 1}},
    "replicasets": {"spec": {"template": {"spec": {"containers": [{"name": UNREAD}]}}}, "status": {UNREAD: 1}},
}


@pytest.mark.parametrize("plural", UNREAD_OF)
def test_fields_that_no_decision_reads_are_not_decoded(state, plural):
    """Most bytes of a watch event are in such fields."""
    watched = of(state, plural)
    meta = {"name": "a", "namespace": "shop", **UNREAD_METADATA}
    event = json.dumps({"type": "MODIFIED", "object": {"metadata": meta, **UNREAD_OF[plural]}}).encode() + b"\n"
    (decoded,) = Decoding(watched.item_type).events("WATCH", event)
    assert decoded.object.metadata.name == "a"
    assert UNREAD not in msgspec.json.encode(decoded).decode()


def test_the_events_of_a_chunk_are_decoded_by_one_call(state, monkeypatch):
    watched = of(state, "pods")
    decoding, calls = Decoding(watched.item_type), []
    monkeypatch.setattr(Decoding, "decode_object", lambda *_: calls.append(1))
    line = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "a"}}}).encode() + b"\n"
    assert len(decoding.events("WATCH", 50 * line)) == 50
    assert calls == []
