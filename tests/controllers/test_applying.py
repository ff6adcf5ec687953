"""A manifest is merged into the object that exists, as `kubectl apply` does."""

import json

import pytest
import yaml

from bayplan.controllers import applying
from bayplan.reading import checking

TYPES = checking.field_table()
ONLY_SPEC = "{%s}"


def pod_spec(written):
    return {"spec": {"template": {"spec": yaml.safe_load(ONLY_SPEC % written)}}}


def applied(current, manifest, last=None):
    """The pod spec of a Deployment after the manifest is applied; `last` is the manifest that was applied before."""
    live = {**pod_spec(current), "metadata": {"name": "web"}}
    if last is not None:
        live["metadata"]["annotations"] = {applying.LAST_APPLIED: json.dumps(pod_spec(last))}
    found = applying.applied(live, pod_spec(manifest), TYPES, "Deployment")
    return found["spec"]["template"]["spec"]


# Without the last manifest, only the fields that the manifest sets change.
@pytest.mark.parametrize("current, manifest, after", [
    ("nodeName: a",                        "hostname: h",                 "nodeName: a, hostname: h"),
    ("hostname: a",                        "hostname: b",                 "hostname: b"),
    ("hostname: a",                        "hostname: null",              ""),
    ("nodeSelector: {a: '1'}",             "nodeSelector: {b: '2'}",      "nodeSelector: {a: '1', b: '2'}"),
    ("tolerations: [{key: a}, {key: b}]",  "tolerations: [{key: c}]",     "tolerations: [{key: c}]"),  # no merge key
    ("containers: [{name: a, image: x}]",  "containers: [{name: b}]",     "containers: [{name: b}, {name: a, image: x}]"),
    ("containers: [{name: a, image: x}]",  "containers: [{name: a, tty: true}]",
     "containers: [{name: a, image: x, tty: true}]"),
    ("containers: [{name: s}, {name: a}]", "containers: [{name: a, image: x}]",  # what was injected stays in front
     "containers: [{name: s}, {name: a, image: x}]"),
    ("volumes: [{name: v, emptyDir: {}}]", "volumes: [{name: v, configMap: {name: c}}]",  # a union
     "volumes: [{name: v, configMap: {name: c}}]"),
    ("containers: [{name: a, ports: [{containerPort: 80, protocol: TCP}]}]",
     "containers: [{name: a, ports: [{containerPort: 80, name: web}]}]",
     "containers: [{name: a, ports: [{containerPort: 80, protocol: TCP, name: web}]}]"),
    ("containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}]",
     "containers: [{name: a, ports: [{containerPort: 53, protocol: UDP, name: dns}]}]",
     "containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP, name: dns}]}]"),
    ("topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]",
     "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}]",
     "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 2, whenUnsatisfiable: ScheduleAnyway}]"),
])  # fmt: skip
def test_fields_of_the_manifest_are_set(current, manifest, after):
    assert applied(current, manifest) == yaml.safe_load(ONLY_SPEC % after)


# With it, what it had and the new one lacks is removed.
@pytest.mark.parametrize("current, last, manifest, after", [
    ("hostname: a, nodeName: n",           "hostname: a",           "",                     "nodeName: n"),
    ("nodeSelector: {a: '1', b: '2'}",     "nodeSelector: {a: '1'}", "nodeSelector: {}",    "nodeSelector: {b: '2'}"),
    ("containers: [{name: a}, {name: b}]", "containers: [{name: a}, {name: b}]", "containers: [{name: a}]",
     "containers: [{name: a}]"),
    ("containers: [{name: a}, {name: s}]", "containers: [{name: a}]", "containers: [{name: b}]",
     "containers: [{name: b}, {name: s}]"),
    ("containers: [{name: a, env: [{name: x, value: '1'}, {name: y, value: '2'}]}]",
     "containers: [{name: a, env: [{name: x, value: '1'}]}]", "containers: [{name: a, env: []}]",
     "containers: [{name: a, env: [{name: y, value: '2'}]}]"),
])  # fmt: skip
def test_what_the_last_manifest_had_is_removed(current, last, manifest, after):
    assert applied(current, manifest, last) == yaml.safe_load(ONLY_SPEC % after)


def test_replicas_that_the_manifest_leaves_out_stay():
    live = {"kind": "Deployment", "spec": {"replicas": 7, "paused": False}}
    assert applying.applied(live, {"spec": {"paused": True}}, TYPES, "Deployment")["spec"] == {
        "replicas": 7,
        "paused": True,
    }


def test_the_strategy_is_a_union():
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    after = applying.applied(live, {"spec": {"strategy": {"type": "Recreate"}}}, TYPES, "Deployment")
    assert after["spec"]["strategy"] == {"type": "Recreate"}


def test_lists_of_custom_kinds_are_replaced():
    live = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x"}]}}, "paused": True}}
    manifest = {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
    assert applying.applied(live, manifest, {}, "Rollout") == {
        "spec": {"template": {"spec": {"containers": [{"name": "a"}]}}, "paused": True}
    }


@pytest.mark.parametrize("written", ["nonsense", "[]", "{", 7])
def test_a_last_manifest_that_cannot_be_read_is_left_out(written):
    live = {"metadata": {"annotations": {applying.LAST_APPLIED: written}}, "spec": {"replicas": 2}}
    assert applying.applied(live, {"spec": {}}, TYPES, "Deployment")["spec"] == {"replicas": 2}
