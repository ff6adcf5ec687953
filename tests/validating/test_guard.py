"""The anti-affinity guard: what is restricted and what is exempt, and the pitfalls that it warns about."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.enforcing import pod_guard
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.validating.guard import Exempt, GuardSettings, Requester
from reference import guard as reference_implementation
from reference import strategies
from validating import objects

ANTI = "podAntiAffinity"
TERM = f"spec.affinity.{ANTI}.{objects.REQUIRED}[0]"
BEYOND = 'Forbidden: "zone" reaches beyond a node, and hard anti-affinity across all namespaces may only use kubernetes.io/hostname'
EVERYWHERE = "{labelSelector: {}, namespaceSelector: {}, topologyKey: zone}"
DEFAULT = GuardSettings()


def verdict(obj, semantics=UPSTREAM, settings=DEFAULT, requester=pod_guard.NO_REQUESTER, **more):
    return pod_guard.guard_verdict(pod_guard.read_pod_like(obj, "default"), semantics, settings, requester, **more)


def causes_of(obj, *how, **more):
    return [str(cause) for cause in verdict(obj, *how, **more).causes]


def term(text, when=objects.REQUIRED, affinity_kind=ANTI):
    return objects.pod(objects.with_term(text, affinity_kind, when))


@pytest.mark.parametrize("text, upstream, design", [
    (EVERYWHERE, True, True),
    ("{labelSelector: {matchLabels: {app: web}}, namespaceSelector: {}, topologyKey: zone}", True, True),
    ("{namespaceSelector: {}, topologyKey: zone}", True, True),  # even if it matches no pod
    ("{labelSelector: {}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname}", False, False),
    ("{labelSelector: {}, topologyKey: zone}", False, False),
    ("{labelSelector: {}, namespaces: [], topologyKey: zone}", False, True),
    ("{labelSelector: {}, namespaces: [], namespaceSelector: {}, topologyKey: zone}", True, True),
    ("{labelSelector: {}, namespaces: [a, b], topologyKey: zone}", False, False),
    ("{labelSelector: {}, namespaces: [a], namespaceSelector: {}, topologyKey: zone}", True, True),
    ("{labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}, topologyKey: zone}", False, False),
    # Every namespace has this label.
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}]}, topologyKey: zone}", True, True),
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [a]}]}, topologyKey: zone}", True, True),
    # A namespace that is created without further labels is selected.
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}, {key: x, operator: DoesNotExist}]}, topologyKey: zone}", True, True),
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}, {key: x, operator: NotIn, values: [a]}]}, topologyKey: zone}", True, True),
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [a]}]}, topologyKey: zone}", True, True),
    ("{labelSelector: {}, namespaces: [a], namespaceSelector: {matchExpressions: [{key: x, operator: DoesNotExist}]}, topologyKey: zone}", True, True),
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a, b]}]}, topologyKey: zone}", False, False),
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: DoesNotExist}, {key: x, operator: Exists}]}, topologyKey: zone}", False, False),
    ("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}, {key: x, operator: Exists}]}, topologyKey: zone}", False, False),
    ("{labelSelector: {}, namespaceSelector: {}, topologyKey: zone, limit: 3, tolerateNamespaces: [kube-system]}", True, True),
])  # fmt: skip
@pytest.mark.parametrize("when", [objects.REQUIRED, objects.DURING_EXECUTION])
def test_required_anti_affinity_across_all_namespaces_is_limited_to_a_node(text, upstream, design, when):
    path = f"spec.affinity.{ANTI}.{when}[0].topologyKey"
    for semantics, rejected in ((UPSTREAM, upstream), (DESIGN, design)):
        assert causes_of(term(text, when), semantics) == ([f"{path}: {BEYOND}"] if rejected else [])


EXISTING = {
    "default": {},
    "kube-system": {},
    **{f"n{i}": {"managed": "yes", "team": "ab"[i % 2], "index": str(i)} for i in range(20)},
}


def named(*numbers, key="zone"):
    return f"{{labelSelector: {{}}, namespaces: [{', '.join(f'n{i}' for i in numbers)}], topologyKey: {key}}}"


def selecting(expression, key="zone"):
    return f"{{labelSelector: {{}}, namespaceSelector: {{matchExpressions: [{{{expression}}}]}}, topologyKey: {key}}}"


@pytest.mark.parametrize("terms, reached", [
    ([named(*range(20))], 20),
    ([named(*range(18))], 18),
    ([named(*range(17))], 0),
    ([named(*range(10)), named(*range(10, 20))], 20),  # together
    ([named(*range(10)), named(*range(10, 20), key="region")], 0),  # in different domains
    ([named(*range(20), key="kubernetes.io/hostname")], 0),
    ([selecting("key: managed, operator: Exists")], 20),
    ([selecting("key: managed, operator: In, values: [yes]".replace("yes", '"yes"'))], 20),
    ([selecting("key: team, operator: In, values: [a]")], 0),
    ([selecting("key: team, operator: In, values: [a]"), selecting("key: team, operator: In, values: [b]")], 20),
    ([selecting("key: team, operator: In, values: [a]"), "{labelSelector: {}, topologyKey: zone}"], 0),
])  # fmt: skip
@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN])
def test_terms_are_judged_by_the_namespaces_that_exist(terms, reached, semantics):
    obj = objects.pod({"affinity": {ANTI: {objects.REQUIRED: [objects.read(text) for text in terms]}}})
    assert causes_of(obj, semantics) == []
    found = causes_of(obj, semantics, namespaces=EXISTING)
    assert len(found) == (len(terms) if reached else 0)
    assert all(cause.endswith(f"; these terms reach {reached} of 20 other namespaces") for cause in found)


def test_a_term_within_the_own_namespace_stays_allowed_beside_one_that_reaches_all():
    terms = [named(*range(20)), "{labelSelector: {}, topologyKey: zone}"]
    obj = objects.pod({"affinity": {ANTI: {objects.REQUIRED: [objects.read(text) for text in terms]}}})
    (found,) = causes_of(obj, namespaces=EXISTING)
    assert found.startswith(f"{TERM}.topologyKey: ")


def test_few_namespaces_say_nothing_about_a_list_that_names_them_all():
    few = {name: EXISTING[name] for name in ("default", "kube-system", "n0", "n1")}
    assert causes_of(term(named(0, 1)), namespaces=few) == []
    assert causes_of(term(named(0, 1, 2)), namespaces={**few, "n2": {}}) != []


def test_the_share_that_counts_as_all_can_be_configured():
    half = GuardSettings(all_namespaces_percent=50)
    assert causes_of(term(named(*range(10))), settings=half, namespaces=EXISTING) != []
    assert causes_of(term(named(*range(9))), settings=half, namespaces=EXISTING) == []


def test_preferred_terms_and_affinity_are_not_restricted():
    assert causes_of(term(EVERYWHERE, objects.PREFERRED)) == []
    assert causes_of(term(EVERYWHERE, affinity_kind="podAffinity")) == []


def test_an_empty_topology_key_counts_as_the_widest_configured_key():
    annotation = f"{ANTI}: {{{objects.DURING_EXECUTION}: [{{labelSelector: {{}}, namespaces: []}}]}}"
    pod = objects.pod(annotations={"bayplan.io/affinity": annotation})
    path = f"metadata.annotations[bayplan.io/affinity].{ANTI}.{objects.DURING_EXECUTION}[0].topologyKey"
    assert causes_of(pod, DESIGN) == [f"{path}: {BEYOND.replace('zone', '')}"]
    assert causes_of(pod, UPSTREAM) == []


def test_daemon_namespaces_are_not_restricted_because_their_anti_affinity_does_not_count():
    pod = objects.pod(objects.with_term(EVERYWHERE, ANTI), namespace="kube-system")
    assert causes_of(pod, DESIGN) == []
    assert causes_of(pod, UPSTREAM) == [f"{TERM}.topologyKey: {BEYOND}"]


@pytest.mark.parametrize("kind, api_version, path", [
    ("Deployment", "apps/v1", "spec.template."),
    ("StatefulSet", "apps/v1", "spec.template."),
    ("Job", "batch/v1", "spec.template."),
    ("CronJob", "batch/v1", "spec.jobTemplate.spec.template."),
    ("ReplicationController", "v1", "spec.template."),
])  # fmt: skip
def test_templates(kind, api_version, path):
    obj = objects.workload(kind, api_version, objects.with_term(EVERYWHERE, ANTI))
    assert causes_of(obj) == [f"{path}{TERM}.topologyKey: {BEYOND}"]


def test_other_kinds_and_undecodable_objects_are_not_read():
    assert pod_guard.read_pod_like({"apiVersion": "v1", "kind": "ConfigMap"}, "default") is None
    assert pod_guard.read_pod_like({"apiVersion": "example.com/v1", "kind": "Deployment"}, "default") is None
    assert pod_guard.read_pod_like(objects.pod({"affinity": []}), "default") is None


OWN = "{labelSelector: {matchLabels: {app: web}}, topologyKey: %s}"


@pytest.mark.parametrize("restrict, over_zones, over_nodes", [
    ("none", [], []),
    ("all-namespaces", [], []),
    ("wider-than-node", [f'{TERM}.topologyKey: Forbidden: "zone" reaches beyond a node, and hard anti-affinity may only use kubernetes.io/hostname'], []),
    ("all", *[[f"{TERM}: Forbidden: only users, groups and namespaces that are exempt may use hard anti-affinity"]] * 2),
])  # fmt: skip
def test_what_is_restricted(restrict, over_zones, over_nodes):
    settings = GuardSettings(restrict=restrict)
    assert causes_of(term(OWN % "zone"), settings=settings) == over_zones
    assert causes_of(term(OWN % "kubernetes.io/hostname"), settings=settings) == over_nodes


def test_none_restricts_nothing():
    assert causes_of(term(EVERYWHERE), settings=GuardSettings(restrict="none")) == []


def test_other_keys_can_be_configured_as_node_keys():
    settings = GuardSettings(node_topology_keys=("kubernetes.io/hostname", "zone"))
    assert causes_of(term(EVERYWHERE), settings=settings) == []


CONTROLLER = Requester("system:serviceaccount:kube-system:replicaset-controller", for_template=True)


@pytest.mark.parametrize("exempt, requester, passes", [
    (Exempt(), Requester("admin", ("system:masters",)), False),
    (Exempt(), CONTROLLER, False),
    (Exempt(users=("alice",)), Requester("alice"), True),
    (Exempt(users=("alice",)), Requester("bob"), False),
    (Exempt(users=("alice",)), CONTROLLER, True),  # bob's template was rejected before
    (Exempt(groups=("ops",)), Requester("bob", ("dev", "ops")), True),
    (Exempt(groups=("ops",)), Requester("bob", ("dev",)), False),
    (Exempt(groups=("ops",)), CONTROLLER, True),
    (Exempt(namespaces=("default",)), Requester("bob"), True),
    (Exempt(namespaces=("other",)), Requester("bob"), False),
    (Exempt(namespaces=("other",)), CONTROLLER, False),
])  # fmt: skip
def test_who_is_exempt(exempt, requester, passes):
    found = causes_of(term(EVERYWHERE), settings=GuardSettings(exempt=exempt), requester=requester)
    assert found == ([] if passes else [f"{TERM}.topologyKey: {BEYOND}"])


@pytest.mark.parametrize("preset", [UPSTREAM, DESIGN])
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_the_reference_implementation_rejects_as_many_terms(preset, seed):
    pod = strategies.seeded(seed)["pod"]
    found = pod_guard.guard_verdict(pod_guard.read_pod_like(pod, "default"), preset, DEFAULT)
    assert len(found.causes) == reference_implementation.rejected_terms(pod, preset)


# Pitfalls


def warnings(obj, semantics=UPSTREAM):
    return [
        f"{path}: {text.split()[0]}" for path, _, text in (w.partition(": ") for w in verdict(obj, semantics).warnings)
    ]


def both(*terms):
    return objects.pod({"affinity": {"podAffinity": {objects.REQUIRED: [objects.read(t) for t in terms]}}})


AFFINITY = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize("obj, upstream, design", [
    (both("{labelSelector: {}, topologyKey: zone}"), [], []),
    (both(*["{labelSelector: {}, topologyKey: zone}"] * 2), [f"{AFFINITY}[1]: kube-scheduler"], []),
    (both("{labelSelector: {}, namespaces: [], topologyKey: zone}"), [f"{AFFINITY}[0].namespaces: an"], []),
    (both("{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: x, operator: DoesNotExist}]}, topologyKey: zone}"), [f"{AFFINITY}[0].namespaceSelector: kube-scheduler"], []),
    (both("{labelSelector: {}, namespaceSelector: {}, topologyKey: zone}"), [], []),
    (term("{labelSelector: {}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname}"), [f"{TERM}: this"], []),
    (term("{labelSelector: {}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname, tolerateNamespaces: [kube-system]}"), [], []),
    (term("{labelSelector: {matchLabels: {app: web}}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname}"), [], []),
])  # fmt: skip
def test_pitfalls(obj, upstream, design):
    assert warnings(obj, UPSTREAM) == upstream
    assert warnings(obj, DESIGN) == design


SELF = "{labelSelector: {matchLabels: {app: web}}, topologyKey: zone%s}"


@pytest.mark.parametrize("more, replicas, strategy, stuck", [
    ("", 1, {}, True),
    ("", 3, {}, True),
    ("", 4, {}, False),  # a quarter of them may be missing
    ("", 4, {"rollingUpdate": {"maxUnavailable": 0}}, True),
    ("", 4, {"rollingUpdate": {"maxUnavailable": "0%"}}, True),
    ("", 3, {"rollingUpdate": {"maxUnavailable": 1}}, False),
    ("", 1, {"rollingUpdate": {"maxUnavailable": "100%"}}, False),
    ("", 1, {"rollingUpdate": {"maxUnavailable": "a lot"}}, False),  # an API server rejects it
    ("", 1, {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0}}, False),  # then one may be missing
    ("", 1, {"type": "Recreate"}, False),
    ("", 0, {}, False),
    (", matchLabelKeys: [pod-template-hash]", 1, {}, False),
    (", limit: 1", 1, {}, False),
    (", namespaces: [other]", 1, {}, False),
])  # fmt: skip
def test_a_rolling_update_that_cannot_progress_is_warned_about(more, replicas, strategy, stuck):
    obj = objects.workload("Deployment", "apps/v1", objects.with_term(SELF % more, ANTI))
    obj["spec"].update(replicas=replicas, strategy=strategy)
    assert warnings(obj) == ([f"spec.template.{TERM}: in"] if stuck else [])
    assert warnings({**obj, "kind": "StatefulSet"}) == []
