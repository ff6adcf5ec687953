"""The policy that the index finds is the one that reading every policy finds, in a number of steps that stays small."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.controllers import binding_detector, resource_interpreter
from bayplan.controllers.policy_index import PolicyIndex
from bayplan.wire.controllers import Controller
from bayplan.wire.placements import PropagationPolicy
from reference.fleet import policies as reference

NAMESPACES, NAMES = st.sampled_from(["a", "b"]), st.sampled_from(["x", "y", "z"])
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["1", "2"]), max_size=2)
SELECTORS = st.fixed_dictionaries(
    {"apiVersion": st.sampled_from(["apps/v1", "apps/v1", "v1"]), "kind": st.just("Deployment")},
    optional={
        "name": NAMES,
        "namespace": NAMESPACES,
        "labelSelector": st.one_of(
            LABELS.map(lambda labels: {"matchLabels": labels}),
            st.just({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        ),
    },
)
POLICIES = st.lists(
    st.tuples(st.sampled_from(["", "a", "b"]), st.lists(SELECTORS, max_size=3), st.integers(0, 2), st.booleans()),
    max_size=12,
)


def policy(name, namespace, selectors, priority=0, going=False):
    metadata = {"name": name, "namespace": namespace}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"resourceSelectors": selectors, "priority": priority, "placement": {}}
    return msgspec.convert({"metadata": metadata, "spec": spec}, PropagationPolicy)


def template(name="x", namespace="a", labels=(), claimed=None):
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    if claimed:
        metadata["labels"][binding_detector.CLUSTER_WIDE_ID] = "id"
        metadata["annotations"] = {binding_detector.CLAIMED_CLUSTER_WIDE: claimed}
    spec = {"replicas": 1, "template": {"spec": {"containers": [{"name": "c"}]}}}
    written = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    return resource_interpreter.template_of_controller(msgspec.convert(written, Controller))


@settings(max_examples=400, deadline=None)
@given(POLICIES, NAMES, NAMESPACES, LABELS, st.sampled_from([None, None, "p0", "p1"]))
def test_the_index_finds_what_reading_every_policy_finds(drawn, name, namespace, labels, claimed):
    policies = [
        policy(f"p{i}", where, selectors, priority, going and i % 3 == 0)
        for i, (where, selectors, priority, going) in enumerate(drawn)
    ]
    asked = template(name, namespace, labels, claimed)
    assert PolicyIndex(policies).policy_for(asked) is reference.policy_for(asked, policies)


def test_few_policies_are_read_for_a_template(monkeypatch):
    """By name, by a label of its own beside one that all have, and of the whole kind, most of them read none."""
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    policies = []
    for i in range(300):
        shared = {"matchLabels": {"team": "shop", "app": f"app-{i}"}}
        policies.append(policy(f"name-{i}", "a", [{**kind, "name": f"w-{i}"}]))
        policies.append(policy(f"label-{i}", "a", [{**kind, "labelSelector": shared}]))
        policies.append(policy(f"kind-{i}", "a", [kind]))
    read = []
    count = binding_detector.explicitness
    monkeypatch.setattr(binding_detector, "explicitness", lambda *both: read.append(1) or count(*both))
    index = PolicyIndex(policies)
    chosen = [
        index.policy_for(template(f"w-{i}", "a", {"team": "shop", "app": f"app-{i}"})).metadata.name for i in range(300)
    ]
    assert chosen == [f"name-{i}" for i in range(300)]
    assert len(read) <= 3 * 300
