"""What the door says of one review."""

import base64
import json

import msgspec
import pytest

from bayplan.enforcing.quota import QuotaLimits
from bayplan.errors import ClusterError
from bayplan.model.semantics import DESIGN
from bayplan.validating.guard import Exempt, GuardSettings
from bayplan.webhook import reviewers, reviews
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from webhook.admission_reviews import (
    HOSTNAME,
    RUNNING,
    SCHEDULING,
    View,
    anti,
    binding,
    deployment,
    pod,
    policy,
    request,
)

ZONE = "topology.kubernetes.io/zone"
DOOR = AdmissionHandler(AdmissionSettings())
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
OWNED = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1", "controller": True}]


async def judged(obj, door=DOOR, **how):
    return await door.validate(request(obj, **how))


# The guard


async def test_a_weapon_is_forbidden_with_its_field():
    answer = await judged(pod(affinity=anti(ZONE)))
    assert (answer.allowed, answer.code) == (False, 403)
    (cause,) = answer.causes
    assert cause.field.endswith("[0].topologyKey")
    assert answer.message == str(cause)


async def test_an_exclusive_node_is_let_in_with_a_warning():
    answer = await judged(pod(affinity=anti(HOSTNAME)))
    assert answer.allowed
    assert "this means daemons too" in answer.warnings[0]


@pytest.mark.parametrize("when", ["requiredDuringSchedulingIgnoredDuringExecution", RUNNING])
async def test_rules_by_annotation_are_judged_too(when):
    answer = await judged(pod(annotation=json.dumps(anti(ZONE, when))))
    assert [cause.field.partition("]")[0] for cause in answer.causes] == ["metadata.annotations[bayplan.io/affinity"]


async def test_a_template_is_judged_as_its_pods_will_be():
    answer = await judged(deployment(anti(ZONE)))
    assert [cause.field.partition(".affinity")[0] for cause in answer.causes] == ["spec.template.spec"]
    assert (await judged(deployment())).allowed


async def test_empty_namespaces_are_all_in_the_seed():
    term = {"labelSelector": {}, "namespaces": [], "topologyKey": ZONE}
    obj = pod(annotation=json.dumps({"podAntiAffinity": {RUNNING: [term]}}))
    assert (await judged(obj)).allowed
    assert not (await judged(obj, AdmissionHandler(AdmissionSettings(semantics=DESIGN)))).allowed


@pytest.mark.parametrize("exempt, how, allowed", [
    (Exempt(users=("alice",)), {}, True),
    (Exempt(users=("bob",)), {}, False),
    (Exempt(groups=("dev",)), {}, True),
    (Exempt(namespaces=("shop",)), {}, True),
    (Exempt(users=("bob",)), {"user": CONTROLLER}, False),  # not made from a template
    (Exempt(users=("bob",)), {"user": CONTROLLER, "owned": True}, True),
    (Exempt(), {"user": CONTROLLER, "owned": True}, False),
    (Exempt(users=("bob",)), {"user": "system:serviceaccount:shop:replicaset-controller", "owned": True}, False),
])  # fmt: skip
async def test_who_has_the_capability(exempt, how, allowed):
    owned = {"ownerReferences": OWNED} if how.pop("owned", False) else {}
    door = AdmissionHandler(AdmissionSettings(guard=GuardSettings(exempt=exempt)))
    assert (await judged(pod(affinity=anti(ZONE), **owned), door, **how)).allowed is allowed


@pytest.mark.parametrize("namespace", ["kube-system", "bayplan-system"])
async def test_some_namespaces_are_never_blocked_only_warned(namespace):
    answer = await judged(pod(affinity=anti(ZONE), namespace=namespace))
    assert answer.allowed
    assert "reaches beyond a node" in answer.warnings[0]


# Annotations


async def test_a_malformed_annotation_is_invalid():
    answer = await judged(pod(annotation="{"))
    assert (answer.code, answer.causes[0].field) == (422, "metadata.annotations[bayplan.io/affinity]")
    assert (await judged(pod(annotation=json.dumps(anti("/", RUNNING, app="db"))))).code == 422


async def test_a_malformed_placement_on_a_template_is_invalid():
    answer = await judged(deployment(annotations={"bayplan.io/placement": "{workloadAntiAfinity: {}}"}))
    assert answer.code == 422
    assert "bayplan.io/placement" in answer.message


# Changes


async def test_what_was_wrong_before_may_stay():
    weapon = pod(affinity=anti(ZONE))
    relabelled = pod(affinity=anti(ZONE), labels={"a": "b"})
    assert (await judged(relabelled, old=weapon)).allowed
    assert not (await judged(weapon, old=pod())).allowed
    assert (await judged(pod(annotation="{"), old=pod(annotation="{"))).allowed
    assert not (await judged(pod(annotation="{"), old=pod())).allowed


EVERYBODY = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": ZONE}
DATABASES = {"labelSelector": {"matchLabels": {"app": "db"}}, "namespaceSelector": {}, "topologyKey": ZONE}
ON_A_NODE = {**EVERYBODY, "topologyKey": HOSTNAME}


@pytest.mark.parametrize("before, after, restrict, allowed", [
    ([DATABASES], [DATABASES, ON_A_NODE], "all-namespaces", True),
    ([DATABASES, ON_A_NODE], [ON_A_NODE, DATABASES], "all-namespaces", True),
    ([EVERYBODY, DATABASES], [DATABASES], "all-namespaces", True),
    ([DATABASES], [EVERYBODY], "all-namespaces", False),  # in the same place, and another weapon
    ([DATABASES], [DATABASES, EVERYBODY], "all-namespaces", False),
    ([ON_A_NODE], [EVERYBODY], "all", False),
    ([ON_A_NODE], [ON_A_NODE], "all", True),
])  # fmt: skip
async def test_a_term_that_was_there_before_may_stay_but_not_become_another(before, after, restrict, allowed):
    door = AdmissionHandler(AdmissionSettings(guard=GuardSettings(restrict=restrict)))
    for when in (SCHEDULING, RUNNING):
        old, new = ({"podAntiAffinity": {when: terms}} for terms in (before, after))
        by_annotation = pod(annotation=json.dumps(new)), pod(annotation=json.dumps(old))
        assert (await judged(by_annotation[0], door, old=by_annotation[1])).allowed is allowed
        assert (await judged(deployment(new), door, old=deployment(old))).allowed is allowed


async def test_a_term_that_was_there_before_may_stay_when_labels_change():
    rule = json.dumps({"podAntiAffinity": {RUNNING: [{**DATABASES, "matchLabelKeys": ["version"]}]}})
    before, after = (pod(annotation=rule, labels={"version": version}) for version in ("1", "2"))
    assert not (await judged(after)).allowed
    assert (await judged(after, old=before)).allowed


async def test_a_term_that_the_mutating_webhook_let_tolerate_daemons_is_the_same_term():
    before, after = (
        pod(annotation=json.dumps({"podAntiAffinity": {RUNNING: [{**DATABASES, **more}]}}))
        for more in ({}, {"tolerateNamespaces": ["kube-system"]})
    )
    assert (await judged(after, old=before)).allowed


async def test_what_is_being_deleted_may_always_change():
    going = pod(affinity=anti(ZONE), deletionTimestamp="2026-01-01T00:00:00Z")
    assert (await judged(going, old=pod())).allowed


@pytest.mark.parametrize("how", [
    {"operation": "DELETE"}, {"operation": "CONNECT"}, {"subResource": "status"}, {"subResource": "ephemeralcontainers"},
])  # fmt: skip
async def test_other_requests_are_let_through(how):
    assert await judged(pod(affinity=anti(ZONE)), **how) == reviews.ALLOWED


async def test_other_kinds_are_let_through():
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}
    assert await judged(config_map) == reviews.ALLOWED


async def test_nulls_are_nothing_and_what_cannot_be_read_is_refused():
    obj = pod(affinity=anti(ZONE))
    obj["spec"]["nodeName"] = None
    assert (await judged(obj)).code == 403
    obj["spec"]["nodeName"] = 7
    answer = await judged(obj)
    assert (answer.code, "cannot be read" in answer.message) == (422, True)


# Policies


async def test_a_policy_is_judged_by_all_placement_rules():
    both = {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}
    answer = await judged(policy(both))
    assert answer.code == 422
    assert "spec.placement" in answer.causes[0].field
    assert (await judged(policy({"clusterAffinity": {"clusterNames": ["m1"]}}))).allowed
    assert not (await judged(policy({}, annotations={"bayplan.io/placement": "["}))).allowed
    assert (await judged(policy(both, labels={"a": "b"}), old=policy(both))).allowed


async def test_a_policy_is_warned_of_traps():
    answer = await judged(
        policy({"spreadConstraints": [{"spreadByField": by, "maxGroups": 2} for by in ("cluster", "zone")]})
    )
    assert answer.allowed
    assert any("Karmada does not spread by zone" in warning for warning in answer.warnings)


# Binds


NO_DB = json.dumps(anti(HOSTNAME, RUNNING, app="db"))


async def test_a_bind_that_breaks_a_rule_of_the_pod_is_refused():
    view = View()
    view.put(pod("db", labels={"app": "db"}, node="n1"))
    view.put(pod("web", annotation=NO_DB))
    door = AdmissionHandler(AdmissionSettings(), view)
    answer = await judged(binding("web", "n1"), door, subResource="binding")
    assert (answer.code, "refuses app=db on its node" in answer.message) == (409, True)
    assert (await judged(binding("web", "n2"), door, subResource="binding")).allowed


async def test_a_bind_that_breaks_a_rule_of_a_pod_there_is_refused():
    view = View()
    view.put(pod("web", annotation=NO_DB, node="n1"))
    view.put(pod("db", labels={"app": "db"}))
    door = AdmissionHandler(AdmissionSettings(), view)
    assert "of shop/web refuses app=db" in (await judged(binding("db", "n1"), door, subResource="binding")).message


async def test_a_pod_that_names_its_node_is_a_bind_too():
    view = View()
    view.put(pod("web", annotation=NO_DB, node="n1"))
    door = AdmissionHandler(AdmissionSettings(), view)
    named = pod("db", labels={"app": "db"}, node="n1")
    assert (await judged(named, door)).code == 409
    assert (await judged(pod("db", labels={"app": "db"}, node="n2"), door)).allowed
    assert (await judged(named, door, old=named)).allowed  # it has been there
    mirror = pod("db", labels={"app": "db"}, node="n1")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert (await judged(mirror, door)).allowed


async def test_whom_it_let_in_stands_there_before_anybody_sees_him():
    view, now = View(), [0.0]
    view.put(pod("web", annotation=NO_DB))
    view.put(pod("db", labels={"app": "db"}))
    for first, second in (("web", "db"), ("db", "web")):
        door = AdmissionHandler(AdmissionSettings(), view)
        door._binds._clock = lambda: now[0]
        for dry in (True, False):
            assert (await judged(binding(first, "n1"), door, subResource="binding", dryRun=dry)).allowed
        assert (await judged(binding(second, "n2"), door, subResource="binding", dryRun=True)).allowed
        assert (await judged(binding(first, "n1"), door, subResource="binding")).allowed, "asked again, it is the same"
        said = (await judged(binding(second, "n1"), door, subResource="binding")).message
        assert said.endswith("of shop/web refuses app=db on its node, and on n1 that is shop/db")
        now[0] += reviewers.BIND_EXPECTED_SECONDS
        assert (await judged(binding(second, "n1"), door, subResource="binding")).allowed, "somebody else refused it"


async def test_of_a_set_that_wants_to_be_together_only_one_is_the_first():
    near = json.dumps(
        {"podAffinity": {RUNNING: [{"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOSTNAME}]}}
    )
    view = View()
    for name in ("a", "b"):
        view.put(pod(name, annotation=near, labels={"app": "x"}))
    door = AdmissionHandler(AdmissionSettings(), view)
    assert (await judged(binding("a", "n1"), door, subResource="binding")).allowed
    assert (await judged(binding("b", "n2"), door, subResource="binding")).code == 409
    assert (await judged(binding("b", "n1"), door, subResource="binding")).allowed


async def test_without_a_view_of_the_cluster_no_bind_is_refused():
    assert (await judged(binding("db", "n1"), subResource="binding")).allowed
    assert (await judged(pod(annotation=NO_DB, node="n1"))).allowed
    assert (
        await judged(binding("unheard-of", "n1"), AdmissionHandler(AdmissionSettings(), View()), subResource="binding")
    ).allowed


async def test_while_the_cluster_is_not_known_yet_there_is_no_answer_to_what_needs_it():
    view = View(synced=False)
    view.put(pod("web"))
    door = AdmissionHandler(AdmissionSettings(), view)
    for obj, how in ((binding("web", "n1"), {"subResource": "binding"}), (pod(node="n1"), {}), (exclusive(), {})):
        with pytest.raises(ClusterError, match="not known yet"):
            await judged(obj, door, **how)
        for namespace in ("kube-system", "bayplan-system"):
            assert (await judged({**obj, "metadata": {**obj["metadata"], "namespace": namespace}}, door, **how)).allowed
    assert (await judged(pod(affinity=anti(ZONE)), door)).code == 403, "the guard needs nothing but the pod"
    assert (await judged(pod(affinity=anti(HOSTNAME, app="db")), door)).allowed
    assert (await judged(deployment(anti(HOSTNAME)), door)).allowed


# The quota


def limited(cpu, **more):
    return View(limits=QuotaLimits({"shop": (("cpu", cpu * 1000),)}), **more)


def exclusive(name="p", **more):
    return pod(name, affinity=anti(HOSTNAME), **more)


async def test_what_exceeds_the_quota_is_refused():
    answer = await judged(exclusive(), AdmissionHandler(AdmissionSettings(), limited(3)))
    assert answer.code == 403
    assert answer.message == "exceeded quota: bayplan-quota, requested: cpu=4, used: cpu=0, limited: cpu=3"
    assert (await judged(exclusive(), AdmissionHandler(AdmissionSettings(), limited(4)))).allowed
    assert (await judged(exclusive(namespace="web"), AdmissionHandler(AdmissionSettings(), limited(3)))).allowed
    assert (await judged(pod(), AdmissionHandler(AdmissionSettings(), limited(3)))).allowed


@pytest.mark.parametrize("namespace", ["kube-system", "bayplan-system"])
async def test_neither_binds_nor_quota_nor_nonsense_block_some_namespaces(namespace):
    view = View(limits=QuotaLimits({namespace: (("cpu", 1),)}))
    view.put(pod("db", labels={"app": "db"}, node="n1", namespace=namespace))
    view.put(pod("web", annotation=NO_DB, namespace=namespace))
    door = AdmissionHandler(AdmissionSettings(), view)
    for asked, how, said in (
        (binding("web", "n1", namespace), {"subResource": "binding"}, "refuses app=db on its node"),
        (exclusive(namespace=namespace), {}, "exceeded quota"),
        (pod(annotation="{", namespace=namespace), {}, "neither YAML nor JSON"),
        ({**pod(namespace=namespace), "spec": 7}, {}, "cannot be read"),
    ):
        answer = await judged(asked, door, **how)
        assert answer.allowed
        assert said in answer.warnings[0]


async def test_what_runs_and_what_waits_is_used():
    for node in ("n1", ""):
        view = limited(7)
        view.put(exclusive("first", node=node))
        assert "used: cpu=4" in (await judged(exclusive(), AdmissionHandler(AdmissionSettings(), view))).message


async def test_whom_it_let_in_counts_before_anybody_sees_him():
    view, now = limited(4), [0.0]
    door = AdmissionHandler(AdmissionSettings(), view)
    door._quota._clock = lambda: now[0]
    assert (await judged(exclusive("a"), door, dryRun=True)).allowed
    assert (await judged(exclusive("a"), door)).allowed
    assert (await judged(exclusive("a"), door)).allowed  # tried again
    assert not (await judged(exclusive("b"), door)).allowed
    now[0] += reviewers.POD_EXPECTED_SECONDS  # a never came
    assert (await judged(exclusive("b"), door)).allowed
    view.put(exclusive("b"))
    assert not (await judged(exclusive("c"), door)).allowed
    view.pending_pods.clear()
    assert (await judged(exclusive("c"), door)).allowed


async def test_a_pod_that_becomes_exclusive_is_charged():
    door = AdmissionHandler(AdmissionSettings(), limited(3))
    rule = json.dumps(anti(HOSTNAME))
    assert not (await judged(pod(annotation=rule, node="n1"), door, old=pod(node="n1"))).allowed
    labelled = pod(annotation=rule, node="n1", labels={"a": "b"})
    assert (await judged(labelled, door, old=pod(annotation=rule, node="n1"))).allowed


# Defaults


async def mutated(obj, tolerated=("kube-system", "monitoring"), **how):
    door = AdmissionHandler(AdmissionSettings(guard=GuardSettings(tolerate_namespaces=tolerated)))
    return list((await door.mutate(request(obj, **how))).patch)


async def test_hard_anti_affinity_terms_come_to_tolerate_daemons():
    rule = anti(HOSTNAME, RUNNING, tolerateNamespaces=["logging", "kube-system"])
    rule["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = []
    (change,) = await mutated(pod(annotation=json.dumps(rule)))
    assert (change["op"], change["path"]) == ("replace", "/metadata/annotations/bayplan.io~1affinity")
    (term,) = json.loads(change["value"])["podAntiAffinity"][RUNNING]
    assert term == {
        **rule["podAntiAffinity"][RUNNING][0],
        "tolerateNamespaces": ["logging", "kube-system", "monitoring"],
    }
    assert await mutated(pod(annotation=change["value"])) == []  # the second time there is nothing to do


@pytest.mark.parametrize("annotation", [
    None,
    "{",
    "[]",
    "",
    "podAntiAffinity: 1",
    f"podAntiAffinity: {{{RUNNING}: 1}}",
    f"podAntiAffinity: {{{RUNNING}: [1]}}",
    f"podAntiAffinity: {{{RUNNING}: [{{tolerateNamespaces: 1}}]}}",
    f"podAffinity: {{{RUNNING}: [{{topologyKey: zone}}]}}",
])  # fmt: skip
async def test_nothing_else_is_changed(annotation):
    assert await mutated(pod(annotation=annotation)) == []


async def test_terms_that_come_or_change_later_come_to_tolerate_too():
    rule, bare = json.dumps(anti(HOSTNAME, RUNNING)), pod()
    (change,) = await mutated(pod(annotation=rule), old=bare)
    tolerating = pod(annotation=change["value"])
    assert await mutated(pod(annotation=rule), old=tolerating) == [change], "taken out, they are put back"
    assert await mutated(pod(annotation=rule), old=pod(annotation=rule)) == [], (
        "older than the webhook, and not touched"
    )
    going = pod(annotation=rule, deletionTimestamp="2026-01-01T00:00:00Z")
    assert await mutated(going, old=bare) == []


async def test_only_pods_are_changed():
    assert await mutated(deployment()) == []
    assert await mutated({**pod(), "spec": 1}) == []


# The wire


async def test_an_answer_on_the_wire():
    asked = request(pod(annotation=json.dumps(anti(HOSTNAME, RUNNING))))
    written = json.loads(reviews.write_response(asked.uid, await DOOR.mutate(asked)))
    assert (written["apiVersion"], written["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = written["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u-1", True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"]))[0]["op"] == "replace"
    refused = json.loads(reviews.write_response("u-2", await judged(pod(affinity=anti(ZONE)))))["response"]
    assert (refused["allowed"], refused["status"]["code"], refused["status"]["reason"]) == (False, 403, "Forbidden")
    assert refused["status"]["details"]["causes"][0]["reason"] == "FieldValueForbidden"
    assert msgspec.json.decode(reviews.write_response("u-3", reviews.ALLOWED))["response"] == {
        "uid": "u-3",
        "allowed": True,
    }
