"""The response to one admission review."""

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
HANDLER = AdmissionHandler(AdmissionSettings())
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
OWNED = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1", "controller": True}]


async def review(obj, handler=HANDLER, **how):
    return await handler.validate(request(obj, **how))


# The guard


async def test_cluster_wide_required_anti_affinity_is_forbidden_with_its_field():
    response = await review(pod(affinity=anti(ZONE)))
    assert (response.allowed, response.code) == (False, 403)
    (cause,) = response.causes
    assert cause.field.endswith("[0].topologyKey")
    assert response.message == str(cause)


async def test_anti_affinity_to_all_pods_of_a_node_is_admitted_with_a_warning():
    response = await review(pod(affinity=anti(HOSTNAME)))
    assert response.allowed
    assert "this means daemons too" in response.warnings[0]


@pytest.mark.parametrize("when", ["requiredDuringSchedulingIgnoredDuringExecution", RUNNING])
async def test_rules_in_the_annotation_are_reviewed_too(when):
    response = await review(pod(annotation=json.dumps(anti(ZONE, when))))
    assert [cause.field.partition("]")[0] for cause in response.causes] == ["metadata.annotations[bayplan.io/affinity"]


async def test_a_template_is_reviewed_like_its_pods():
    response = await review(deployment(anti(ZONE)))
    assert [cause.field.partition(".affinity")[0] for cause in response.causes] == ["spec.template.spec"]
    assert (await review(deployment())).allowed


async def test_empty_namespaces_mean_all_under_design_semantics():
    term = {"labelSelector": {}, "namespaces": [], "topologyKey": ZONE}
    obj = pod(annotation=json.dumps({"podAntiAffinity": {RUNNING: [term]}}))
    assert (await review(obj)).allowed
    assert not (await review(obj, AdmissionHandler(AdmissionSettings(semantics=DESIGN)))).allowed


@pytest.mark.parametrize("exempt, how, allowed", [
    (Exempt(users=("alice",)), {}, True),
    (Exempt(users=("bob",)), {}, False),
    (Exempt(groups=("dev",)), {}, True),
    (Exempt(namespaces=("shop",)), {}, True),
    (Exempt(users=("bob",)), {"user": CONTROLLER}, False),  # not created from a template
    (Exempt(users=("bob",)), {"user": CONTROLLER, "owned": True}, True),
    (Exempt(), {"user": CONTROLLER, "owned": True}, False),
    (Exempt(users=("bob",)), {"user": "system:serviceaccount:shop:replicaset-controller", "owned": True}, False),
])  # fmt: skip
async def test_which_requesters_are_exempt_from_the_guard(exempt, how, allowed):
    owned = {"ownerReferences": OWNED} if how.pop("owned", False) else {}
    handler = AdmissionHandler(AdmissionSettings(guard=GuardSettings(exempt=exempt)))
    assert (await review(pod(affinity=anti(ZONE), **owned), handler, **how)).allowed is allowed


@pytest.mark.parametrize("namespace", ["kube-system", "bayplan-system"])
async def test_in_exempt_namespaces_a_rejection_becomes_a_warning(namespace):
    response = await review(pod(affinity=anti(ZONE), namespace=namespace))
    assert response.allowed
    assert "reaches beyond a node" in response.warnings[0]


# Annotations


async def test_a_malformed_annotation_is_invalid():
    response = await review(pod(annotation="{"))
    assert (response.code, response.causes[0].field) == (422, "metadata.annotations[bayplan.io/affinity]")
    assert (await review(pod(annotation=json.dumps(anti("/", RUNNING, app="db"))))).code == 422


async def test_a_malformed_placement_on_a_template_is_invalid():
    response = await review(deployment(annotations={"bayplan.io/placement": "{workloadAntiAfinity: {}}"}))
    assert response.code == 422
    assert "bayplan.io/placement" in response.message


# Changes


async def test_causes_that_existed_before_do_not_reject_an_update():
    cluster_wide = pod(affinity=anti(ZONE))
    relabelled = pod(affinity=anti(ZONE), labels={"a": "b"})
    assert (await review(relabelled, old=cluster_wide)).allowed
    assert not (await review(cluster_wide, old=pod())).allowed
    assert (await review(pod(annotation="{"), old=pod(annotation="{"))).allowed
    assert not (await review(pod(annotation="{"), old=pod())).allowed


ALL_PODS = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": ZONE}
DATABASES = {"labelSelector": {"matchLabels": {"app": "db"}}, "namespaceSelector": {}, "topologyKey": ZONE}
ON_A_NODE = {**ALL_PODS, "topologyKey": HOSTNAME}


@pytest.mark.parametrize("before, after, restrict, allowed", [
    ([DATABASES], [DATABASES, ON_A_NODE], "all-namespaces", True),
    ([DATABASES, ON_A_NODE], [ON_A_NODE, DATABASES], "all-namespaces", True),
    ([ALL_PODS, DATABASES], [DATABASES], "all-namespaces", True),
    ([DATABASES], [ALL_PODS], "all-namespaces", False),  # at the same index, but another cluster-wide term
    ([DATABASES], [DATABASES, ALL_PODS], "all-namespaces", False),
    ([ON_A_NODE], [ALL_PODS], "all", False),
    ([ON_A_NODE], [ON_A_NODE], "all", True),
])  # fmt: skip
async def test_an_existing_term_may_stay_but_not_become_another(before, after, restrict, allowed):
    handler = AdmissionHandler(AdmissionSettings(guard=GuardSettings(restrict=restrict)))
    for when in (SCHEDULING, RUNNING):
        old, new = ({"podAntiAffinity": {when: terms}} for terms in (before, after))
        by_annotation = pod(annotation=json.dumps(new)), pod(annotation=json.dumps(old))
        assert (await review(by_annotation[0], handler, old=by_annotation[1])).allowed is allowed
        assert (await review(deployment(new), handler, old=deployment(old))).allowed is allowed


async def test_an_existing_term_may_stay_when_labels_change():
    rule = json.dumps({"podAntiAffinity": {RUNNING: [{**DATABASES, "matchLabelKeys": ["version"]}]}})
    before, after = (pod(annotation=rule, labels={"version": version}) for version in ("1", "2"))
    assert not (await review(after)).allowed
    assert (await review(after, old=before)).allowed


async def test_a_term_changed_by_the_mutating_webhook_is_the_same_term():
    before, after = (
        pod(annotation=json.dumps({"podAntiAffinity": {RUNNING: [{**DATABASES, **more}]}}))
        for more in ({}, {"tolerateNamespaces": ["kube-system"]})
    )
    assert (await review(after, old=before)).allowed


async def test_a_terminating_pod_may_always_change():
    terminating = pod(affinity=anti(ZONE), deletionTimestamp="2026-01-01T00:00:00Z")
    assert (await review(terminating, old=pod())).allowed


@pytest.mark.parametrize("how", [
    {"operation": "DELETE"}, {"operation": "CONNECT"}, {"subResource": "status"}, {"subResource": "ephemeralcontainers"},
])  # fmt: skip
async def test_other_requests_are_allowed(how):
    assert await review(pod(affinity=anti(ZONE)), **how) == reviews.ALLOWED


async def test_other_kinds_are_allowed():
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}
    assert await review(config_map) == reviews.ALLOWED


async def test_null_fields_are_absent_and_unreadable_objects_are_rejected():
    obj = pod(affinity=anti(ZONE))
    obj["spec"]["nodeName"] = None
    assert (await review(obj)).code == 403
    obj["spec"]["nodeName"] = 7
    response = await review(obj)
    assert (response.code, "cannot be read" in response.message) == (422, True)


# Policies


async def test_a_policy_is_reviewed_by_all_placement_rules():
    both = {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}
    response = await review(policy(both))
    assert response.code == 422
    assert "spec.placement" in response.causes[0].field
    assert (await review(policy({"clusterAffinity": {"clusterNames": ["m1"]}}))).allowed
    assert not (await review(policy({}, annotations={"bayplan.io/placement": "["}))).allowed
    assert (await review(policy(both, labels={"a": "b"}), old=policy(both))).allowed


async def test_a_policy_with_an_ineffective_field_gets_a_warning():
    response = await review(
        policy({"spreadConstraints": [{"spreadByField": by, "maxGroups": 2} for by in ("cluster", "zone")]})
    )
    assert response.allowed
    assert any("Karmada does not spread by zone" in warning for warning in response.warnings)


async def test_terms_are_judged_by_the_namespaces_that_exist():
    view = View()
    for name in ("a", "b", "c"):
        view.index.set_namespace(name, {})
    obj = pod("alone")
    term = {"labelSelector": {}, "namespaces": ["a", "b", "c"], "topologyKey": "zone"}
    obj["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    response = await review(obj, AdmissionHandler(AdmissionSettings(), view))
    assert response.code == 403
    assert response.message.endswith("; these terms reach 3 of 3 other namespaces")
    view.index.set_namespace("d", {})
    assert (await review(obj, AdmissionHandler(AdmissionSettings(), view))).allowed


# Binds


NO_DB = json.dumps(anti(HOSTNAME, RUNNING, app="db"))


async def test_a_bind_that_violates_a_rule_of_the_pod_is_rejected():
    view = View()
    view.put(pod("db", labels={"app": "db"}, node="n1"))
    view.put(pod("web", annotation=NO_DB))
    handler = AdmissionHandler(AdmissionSettings(), view)
    response = await review(binding("web", "n1"), handler, subResource="binding")
    assert (response.code, "rejects app=db on its node" in response.message) == (409, True)
    assert (await review(binding("web", "n2"), handler, subResource="binding")).allowed


async def test_a_bind_that_violates_a_rule_of_an_existing_pod_is_rejected():
    view = View()
    view.put(pod("web", annotation=NO_DB, node="n1"))
    view.put(pod("db", labels={"app": "db"}))
    handler = AdmissionHandler(AdmissionSettings(), view)
    assert "of shop/web rejects app=db" in (await review(binding("db", "n1"), handler, subResource="binding")).message


async def test_a_pod_created_with_a_node_name_is_reviewed_as_a_bind():
    view = View()
    view.put(pod("web", annotation=NO_DB, node="n1"))
    handler = AdmissionHandler(AdmissionSettings(), view)
    named = pod("db", labels={"app": "db"}, node="n1")
    assert (await review(named, handler)).code == 409
    assert (await review(pod("db", labels={"app": "db"}, node="n2"), handler)).allowed
    assert (await review(named, handler, old=named)).allowed  # it was bound before
    mirror = pod("db", labels={"app": "db"}, node="n1")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert (await review(mirror, handler)).allowed


async def test_an_admitted_bind_counts_before_it_is_seen_in_the_cluster():
    view, now = View(), [0.0]
    view.put(pod("web", annotation=NO_DB))
    view.put(pod("db", labels={"app": "db"}))
    for first, second in (("web", "db"), ("db", "web")):
        handler = AdmissionHandler(AdmissionSettings(), view)
        handler._binds._clock = lambda: now[0]
        for dry in (True, False):
            assert (await review(binding(first, "n1"), handler, subResource="binding", dryRun=dry)).allowed
        assert (await review(binding(second, "n2"), handler, subResource="binding", dryRun=True)).allowed
        assert (await review(binding(first, "n1"), handler, subResource="binding")).allowed, (
            "a repeated review has the same response"
        )
        message = (await review(binding(second, "n1"), handler, subResource="binding")).message
        assert message.endswith("of shop/web rejects app=db on its node, and n1 has shop/db")
        now[0] += reviewers.BIND_RESERVED_SECONDS
        assert (await review(binding(second, "n1"), handler, subResource="binding")).allowed, (
            "the first bind never came"
        )


async def test_only_one_pod_of_a_self_affine_set_is_the_first():
    near = json.dumps(
        {"podAffinity": {RUNNING: [{"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOSTNAME}]}}
    )
    view = View()
    for name in ("a", "b"):
        view.put(pod(name, annotation=near, labels={"app": "x"}))
    handler = AdmissionHandler(AdmissionSettings(), view)
    assert (await review(binding("a", "n1"), handler, subResource="binding")).allowed
    assert (await review(binding("b", "n2"), handler, subResource="binding")).code == 409
    assert (await review(binding("b", "n1"), handler, subResource="binding")).allowed


async def test_without_a_view_of_the_cluster_no_bind_is_rejected():
    assert (await review(binding("db", "n1"), subResource="binding")).allowed
    assert (await review(pod(annotation=NO_DB, node="n1"))).allowed
    assert (
        await review(binding("unheard-of", "n1"), AdmissionHandler(AdmissionSettings(), View()), subResource="binding")
    ).allowed


async def test_reviews_that_need_the_cluster_fail_until_it_is_synced():
    view = View(synced=False)
    view.put(pod("web"))
    handler = AdmissionHandler(AdmissionSettings(), view)
    for obj, how in ((binding("web", "n1"), {"subResource": "binding"}), (pod(node="n1"), {}), (exclusive(), {})):
        with pytest.raises(ClusterError, match="not known yet"):
            await review(obj, handler, **how)
        for namespace in ("kube-system", "bayplan-system"):
            assert (
                await review({**obj, "metadata": {**obj["metadata"], "namespace": namespace}}, handler, **how)
            ).allowed
    assert (await review(pod(affinity=anti(ZONE)), handler)).code == 403, "the guard needs only the pod"
    assert (await review(pod(affinity=anti(HOSTNAME, app="db")), handler)).allowed
    assert (await review(deployment(anti(HOSTNAME)), handler)).allowed


# The quota


def limited(cpu, **more):
    return View(limits=QuotaLimits({"shop": (("cpu", cpu * 1000),)}), **more)


def exclusive(name="p", **more):
    return pod(name, affinity=anti(HOSTNAME), **more)


async def test_a_pod_that_exceeds_the_quota_is_rejected():
    response = await review(exclusive(), AdmissionHandler(AdmissionSettings(), limited(3)))
    assert response.code == 403
    assert response.message == "exceeded quota: bayplan-quota, requested: cpu=4, used: cpu=0, limited: cpu=3"
    assert (await review(exclusive(), AdmissionHandler(AdmissionSettings(), limited(4)))).allowed
    assert (await review(exclusive(namespace="web"), AdmissionHandler(AdmissionSettings(), limited(3)))).allowed
    assert (await review(pod(), AdmissionHandler(AdmissionSettings(), limited(3)))).allowed


@pytest.mark.parametrize("namespace", ["kube-system", "bayplan-system"])
async def test_no_review_rejects_an_object_in_an_exempt_namespace(namespace):
    view = View(limits=QuotaLimits({namespace: (("cpu", 1),)}))
    view.put(pod("db", labels={"app": "db"}, node="n1", namespace=namespace))
    view.put(pod("web", annotation=NO_DB, namespace=namespace))
    handler = AdmissionHandler(AdmissionSettings(), view)
    for obj, how, message in (
        (binding("web", "n1", namespace), {"subResource": "binding"}, "rejects app=db on its node"),
        (exclusive(namespace=namespace), {}, "exceeded quota"),
        (pod(annotation="{", namespace=namespace), {}, "neither YAML nor JSON"),
        ({**pod(namespace=namespace), "spec": 7}, {}, "cannot be read"),
    ):
        response = await review(obj, handler, **how)
        assert response.allowed
        assert message in response.warnings[0]


async def test_bound_and_pending_pods_are_charged():
    for node in ("n1", ""):
        view = limited(7)
        view.put(exclusive("first", node=node))
        assert "used: cpu=4" in (await review(exclusive(), AdmissionHandler(AdmissionSettings(), view))).message


async def test_an_admitted_pod_is_charged_before_it_is_seen_in_the_cluster():
    view, now = limited(4), [0.0]
    handler = AdmissionHandler(AdmissionSettings(), view)
    handler._quota._clock = lambda: now[0]
    assert (await review(exclusive("a"), handler, dryRun=True)).allowed
    assert (await review(exclusive("a"), handler)).allowed
    assert (await review(exclusive("a"), handler)).allowed  # a repeated review
    assert not (await review(exclusive("b"), handler)).allowed
    now[0] += reviewers.POD_RESERVED_SECONDS  # a never came
    assert (await review(exclusive("b"), handler)).allowed
    view.put(exclusive("b"))
    assert not (await review(exclusive("c"), handler)).allowed
    view.pending_pods.clear()
    assert (await review(exclusive("c"), handler)).allowed


async def test_a_pod_that_becomes_exclusive_is_charged():
    handler = AdmissionHandler(AdmissionSettings(), limited(3))
    rule = json.dumps(anti(HOSTNAME))
    assert not (await review(pod(annotation=rule, node="n1"), handler, old=pod(node="n1"))).allowed
    labelled = pod(annotation=rule, node="n1", labels={"a": "b"})
    assert (await review(labelled, handler, old=pod(annotation=rule, node="n1"))).allowed


# Mutation


async def mutated(obj, tolerated=("kube-system", "monitoring"), **how):
    handler = AdmissionHandler(AdmissionSettings(guard=GuardSettings(tolerate_namespaces=tolerated)))
    return list((await handler.mutate(request(obj, **how))).patch)


async def test_required_anti_affinity_terms_are_made_to_tolerate_daemon_namespaces():
    rule = anti(HOSTNAME, RUNNING, tolerateNamespaces=["logging", "kube-system"])
    rule["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = []
    (change,) = await mutated(pod(annotation=json.dumps(rule)))
    assert (change["op"], change["path"]) == ("replace", "/metadata/annotations/bayplan.io~1affinity")
    (term,) = json.loads(change["value"])["podAntiAffinity"][RUNNING]
    assert term == {
        **rule["podAntiAffinity"][RUNNING][0],
        "tolerateNamespaces": ["logging", "kube-system", "monitoring"],
    }
    assert await mutated(pod(annotation=change["value"])) == []  # a second mutation changes nothing


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


async def test_new_and_changed_terms_are_mutated_too():
    rule, bare = json.dumps(anti(HOSTNAME, RUNNING)), pod()
    (change,) = await mutated(pod(annotation=rule), old=bare)
    tolerating = pod(annotation=change["value"])
    assert await mutated(pod(annotation=rule), old=tolerating) == [change], "removed namespaces are added again"
    assert await mutated(pod(annotation=rule), old=pod(annotation=rule)) == [], "an unchanged annotation stays"
    terminating = pod(annotation=rule, deletionTimestamp="2026-01-01T00:00:00Z")
    assert await mutated(terminating, old=bare) == []


async def test_only_pods_are_mutated():
    assert await mutated(deployment()) == []
    assert await mutated({**pod(), "spec": 1}) == []


# Wire format


async def test_the_encoded_response():
    admission_request = request(pod(annotation=json.dumps(anti(HOSTNAME, RUNNING))))
    written = json.loads(reviews.write_response(admission_request.uid, await HANDLER.mutate(admission_request)))
    assert (written["apiVersion"], written["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = written["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u-1", True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"]))[0]["op"] == "replace"
    rejected = json.loads(reviews.write_response("u-2", await review(pod(affinity=anti(ZONE)))))["response"]
    assert (rejected["allowed"], rejected["status"]["code"], rejected["status"]["reason"]) == (False, 403, "Forbidden")
    assert rejected["status"]["details"]["causes"][0]["reason"] == "FieldValueForbidden"
    assert msgspec.json.decode(reviews.write_response("u-3", reviews.ALLOWED))["response"] == {
        "uid": "u-3",
        "allowed": True,
    }
