"""The ValidatingAdmissionPolicy gives the verdicts of `bayplan validate`, on a real API server."""

import asyncio
import contextlib
import copy
import functools
import gzip
import itertools
import json
import pathlib
from random import Random

import msgspec
import pytest
import yaml

from bayplan.enforcing import pod_guard
from bayplan.model.semantics import UPSTREAM
from bayplan.validating import admission, policies
from bayplan.validating.guard import Exempt, GuardSettings
from bayplan.webhook import reviews
from bayplan.webhook.admission_handler import AdmissionHandler, AdmissionSettings
from bayplan.wire import kinds
from live.admin import Admin, ApiError, path_to, wait_for
from reference import strategies

ROOT = pathlib.Path(__file__).parents[2]
MANIFEST = ROOT / "deploy" / "guard" / "admission-policy.yaml"
RECORDED = ROOT / "tests" / "upstream" / "admission.jsonl.gz"
POLICIES = "admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NAMES = (f"w{n}" for n in itertools.count())
BEYOND = (
    '"zone" reaches beyond a node, and hard anti-affinity across all namespaces may only use kubernetes.io/hostname'
)


def term(text):
    return yaml.safe_load(text)


CLUSTER_WIDE = term("{labelSelector: {}, namespaceSelector: {}, topologyKey: zone}")


def pod(*terms, namespace="default", **metadata):
    spec = {"containers": [{"name": "c", "image": "i"}], "affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}
    meta = {"name": next(NAMES), "namespace": namespace, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def template(kind, api_version, *terms):
    made = pod(*terms)
    labels = {"app": "web"}
    inner = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": made["spec"]}}
    if kind in ("Job", "CronJob"):
        inner = {"template": {"spec": {**made["spec"], "restartPolicy": "Never"}}}
    if kind == "CronJob":
        inner = {"schedule": "* * * * *", "jobTemplate": {"spec": inner}}
    if kind == "ReplicationController":
        inner["selector"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": made["metadata"], "spec": inner}


async def rejection(admin, obj):
    """Return why the API server rejects the object; empty if it does not. Nothing is stored."""
    try:
        await admin.create(obj, dryRun="All")
    except ApiError as error:
        return error.body["message"]
    return ""


@pytest.fixture
async def guarded(admin):
    """The policies, in force."""
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    for document in documents:
        await admin.create(document)
    await wait_for(lambda: rejection(admin, pod(CLUSTER_WIDE)))
    yield admin
    for document in documents:
        resource = BINDINGS if document["kind"].endswith("Binding") else POLICIES
        await admin.delete(resource, document["metadata"]["name"])
    await wait_for(lambda: _forgotten(admin))


async def _forgotten(admin):
    return not await rejection(admin, pod(CLUSTER_WIDE))


TERMS = [
    "{labelSelector: {}, namespaceSelector: {}, topologyKey: zone}",
    "{labelSelector: {matchLabels: {app: web}}, namespaceSelector: {}, topologyKey: zone}",
    "{namespaceSelector: {}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname}",
    "{labelSelector: {}, topologyKey: zone}",
    "{labelSelector: {}, namespaces: [], topologyKey: zone}",
    "{labelSelector: {}, namespaces: [a], namespaceSelector: {}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchLabels: {team: a}}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: []}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [a]}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchLabels: {a: b}, matchExpressions: [{key: team, operator: DoesNotExist}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}, {key: x, operator: DoesNotExist}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}, {key: x, operator: NotIn, values: [a]}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [a]}, {key: x, operator: NotIn, values: [a]}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: DoesNotExist}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a, b]}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: Exists}, {key: x, operator: Exists}]}, topologyKey: zone}",
    "{labelSelector: {}, namespaces: [a], namespaceSelector: {matchExpressions: [{key: x, operator: DoesNotExist}, {key: y, operator: Exists}]}, topologyKey: zone}",
]  # fmt: skip


async def review_all_terms(guarded, semantics):
    for text in TERMS:
        obj = pod(term(text))
        ours = pod_guard.guard_verdict(pod_guard.read_pod_like(obj, "default"), semantics, GuardSettings()).causes
        message = await rejection(guarded, obj)
        assert BEYOND in message if ours else not message, text


async def test_terms_are_reviewed_as_by_validate(guarded):
    await review_all_terms(guarded, UPSTREAM)


async def test_terms_are_reviewed_as_by_validate_where_negative_selectors_mean_what_they_say(guarded):
    negative = pod(term("{labelSelector: {}, namespaceSelector: {matchExpressions: "
                        "[{key: kubernetes.io/metadata.name, operator: DoesNotExist}]}, topologyKey: zone}"))  # fmt: skip
    assert BEYOND in await rejection(guarded, negative)
    await edit(guarded, negativeSelectorsMeanAll="false")

    async def admitted():
        return not await rejection(guarded, negative)

    await wait_for(admitted)
    as_written = msgspec.structs.replace(UPSTREAM, negative_namespace_selector_matches_all=False)
    await review_all_terms(guarded, as_written)


async def test_templates_too(guarded):
    for row in (row for row in kinds.KINDS.values() if row.pod_path):
        kind, version = row.kind, row.api_version
        assert BEYOND in await rejection(guarded, template(kind, version, CLUSTER_WIDE)), kind
        assert not await rejection(guarded, template(kind, version, {**CLUSTER_WIDE, "topologyKey": HOSTNAME})), kind


async def test_random_pods_are_reviewed_as_by_validate(guarded):
    rejected = 0
    for seed in range(150):
        obj = strategies.seeded(seed, presets=("upstream",))["pod"]
        anti = (obj["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        obj = pod(*[t for t in anti.get(REQUIRED) or [] if t["topologyKey"]], labels=obj["metadata"].get("labels"))
        ours = pod_guard.guard_verdict(pod_guard.read_pod_like(obj, "default"), UPSTREAM, GuardSettings()).causes
        message = await rejection(guarded, obj)
        assert bool(message) == bool(ours), (message, obj)
        rejected += bool(ours)
    assert 0 < rejected < 150


async def test_system_pods_are_never_rejected(guarded):
    assert not await rejection(guarded, pod(CLUSTER_WIDE, namespace="kube-system"))


async def made_before(admin, *objects):
    """Create the objects as if they had existed before the guard."""
    await admin.delete(BINDINGS, "bayplan-guard")
    await wait_for(lambda: _forgotten(admin))
    made = [await admin.create(one) for one in objects]
    bindings = [d for d in yaml.safe_load_all(MANIFEST.read_text()) if d["metadata"]["name"] == "bayplan-guard"]
    await admin.create(bindings[1])
    await wait_for(lambda: rejection(admin, pod(CLUSTER_WIDE)))
    return made


async def test_existing_terms_may_stay(guarded):
    made = template("Deployment", "apps/v1", CLUSTER_WIDE)
    await made_before(guarded, made)
    name = made["metadata"]["name"]
    changed = await guarded.patch("apps/v1/deployments", name, {"spec": {"replicas": 5}}, "default")
    assert changed["spec"]["replicas"] == 5
    wider = {
        "spec": {
            "template": {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{**CLUSTER_WIDE, "topologyKey": "r"}]}}}}
        }
    }
    with pytest.raises(ApiError, match="reaches beyond a node"):
        await guarded.patch("apps/v1/deployments", name, wider, "default")
    await guarded.delete("apps/v1/deployments", name, "default")


async def test_changes_are_reviewed_as_by_the_webhook(guarded):
    """Terms that stay, move, are removed, added or changed, in every combination."""
    others = [term(text) for text in (TERMS[1], TERMS[3], TERMS[4])]
    (old,) = await made_before(guarded, template("Deployment", "apps/v1", CLUSTER_WIDE, *others))
    handler, verdicts, random = AdmissionHandler(AdmissionSettings()), [], Random(7)
    group = {"group": "apps", "version": "v1"}
    about = {"uid": "u", "kind": {**group, "kind": "Deployment"}, "resource": {**group, "resource": "deployments"}}
    there = old["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    for _ in range(60):
        terms = [*random.sample(there, random.randint(0, 4)), *map(term, random.sample(TERMS, random.randint(0, 2)))]
        random.shuffle(terms)
        new = copy.deepcopy(old)
        new["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"][REQUIRED] = terms
        message = ""
        try:
            new = await guarded.replace("apps/v1/deployments", new, dryRun="All")
        except ApiError as error:
            message = str(error)
        request = {**about, "operation": "UPDATE", "namespace": "default", "object": new, "oldObject": old}
        review = {"apiVersion": reviews.API_VERSION, "kind": reviews.KIND, "request": request}
        ours = await handler.validate(reviews.read_request(json.dumps(review).encode()))
        assert not message if ours.allowed else BEYOND in message, terms
        verdicts.append(ours.allowed)
    assert 10 < sum(verdicts) < 50
    await guarded.delete("apps/v1/deployments", old["metadata"]["name"], "default")


async def edit(admin, **variables):
    """Set variables of the policy, as a user of its manifest would."""
    policy = await admin.get(POLICIES, "bayplan-guard")
    for variable in policy["spec"]["variables"]:
        if variable["name"] in variables:
            variable["expression"] = variables[variable["name"]]
    await admin.replace(POLICIES, policy)


@pytest.mark.parametrize("variables, over_zones, over_nodes", [
    ({"restrict": "'wider-than-node'"}, '"zone" reaches beyond a node, and hard anti-affinity may only use', ""),
    ({"restrict": "'all'"}, "only users, groups and namespaces that are exempt", "only users, groups and namespaces that are exempt"),
])  # fmt: skip
async def test_what_the_restrict_setting_forbids(variables, over_zones, over_nodes, guarded):
    own = [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key} for key in ("zone", HOSTNAME)]
    assert [await rejection(guarded, pod(one)) for one in own] == ["", ""]
    await edit(guarded, **variables)
    await wait_for(lambda: rejection(guarded, pod(own[0])))
    zones, nodes = [await rejection(guarded, pod(one)) for one in own]
    assert over_zones in zones
    assert over_nodes in nodes if over_nodes else not nodes


@pytest.mark.parametrize("variables", [
    {"exemptGroups": "['system:masters']"},
    {"exemptNamespaces": "['default']"},
    {"restrict": "'none'"},
    {"nodeTopologyKeys": "['kubernetes.io/hostname', 'zone']"},
])  # fmt: skip
async def test_who_is_exempt(variables, guarded):
    await edit(guarded, **variables)
    await wait_for(lambda: _forgotten(guarded))


CONTROLLERS = "system:serviceaccount:kube-system:"
REQUESTERS = [
    ("alice", None),
    ("bob", None),
    ("bob", "ops"),
    ("system:kube-controller-manager", None),
    (CONTROLLERS + "replicaset-controller", None),
    (CONTROLLERS + "daemon-set-controller", None),
    (CONTROLLERS + "replicaset-controller-2", None),
    ("system:serviceaccount:default:replicaset-controller", None),
]
OWNERS = [
    {},
    {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1"}]},
    {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}]},
]


@pytest.fixture
async def all_rights(admin):
    """Every user has all rights, so that only the guard can reject."""
    group = "rbac.authorization.k8s.io"
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "all-rights"}}
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"apiGroup": group, "kind": "Group", "name": "system:authenticated"}]
    await admin.create({**binding, "roleRef": role, "subjects": subjects})
    yield
    await admin.delete(f"{group}/v1/clusterrolebindings", "all-rights")


@contextlib.asynccontextmanager
async def acting_as(server, user, group):
    someone = Admin.of(server)
    someone._headers |= {"Impersonate-User": user, **({"Impersonate-Group": group} if group else {})}
    async with someone:
        yield someone


@pytest.mark.parametrize("exempt", [
    Exempt(users=("alice",)), Exempt(groups=("ops",)), Exempt(namespaces=("team",)), Exempt(),
])  # fmt: skip
async def test_the_policy_exempts_the_same_requesters_as_the_webhook(exempt, guarded, kube_server, all_rights):
    await guarded.create_namespace("team")
    names = {name: list(getattr(exempt, name)) for name in ("users", "groups", "namespaces")}
    await edit(guarded, **{f"exempt{name.title()}": str(found) for name, found in names.items()})
    handler, verdicts = AdmissionHandler(AdmissionSettings(guard=GuardSettings(exempt=exempt))), []

    async def compared(requester, owner, namespace):
        """Record the verdict when both agree."""
        (user, group), obj = requester, pod(CLUSTER_WIDE, namespace=namespace, **owner)
        async with acting_as(kube_server, user, group) as someone:
            message = await rejection(someone, obj)
        kind = {"group": "", "version": "v1", "kind": "Pod"}
        request = {"uid": "u", "kind": kind, "resource": {"group": "", "version": "v1", "resource": "pods"}}
        request |= {"operation": "CREATE", "namespace": namespace, "object": obj}
        request["userInfo"] = {"username": user, "groups": [group] if group else []}
        review = {"apiVersion": reviews.API_VERSION, "kind": reviews.KIND, "request": request}
        ours = await handler.validate(reviews.read_request(json.dumps(review).encode()))
        return [ours.allowed] if (not message if ours.allowed else BEYOND in message) else []

    for case in itertools.product(REQUESTERS, OWNERS, ("default", "team")):
        # The API server applies other variables with a delay.
        verdicts += await wait_for(functools.partial(compared, *case))
    assert 0 < sum(verdicts) < len(verdicts) or exempt == Exempt()


async def test_ineffective_fields_are_warnings(guarded, kube_server):
    near = pod()
    near["spec"]["affinity"] = {"podAffinity": {REQUIRED: [{"labelSelector": {}, "topologyKey": "zone"}] * 2}}
    exclusive = pod({**CLUSTER_WIDE, "topologyKey": HOSTNAME})
    for obj, message in ((near, "one pod that meets all required"), (exclusive, "means daemons too")):
        url, body = guarded.url + path_to("pods", namespace="default"), json.dumps(obj)
        headers = {"Content-Type": "application/json"}
        async with guarded._session.post(url, data=body, headers=headers, params={"dryRun": "All"}) as answer:
            assert answer.status == 201
            assert message in " ".join(answer.headers.getall("Warning", []))


# Karmada's policies


def recorded_policies():
    with gzip.open(RECORDED, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [case for case in cases if case["object"]["kind"] != "Pod"]


def ours(obj):
    """Return the causes of validate, except for a grace period that Karmada's mutating webhook would set."""
    found = [*admission.validate(obj), *admission.validate_schema(obj)]
    return [cause for cause in found if policies.NO_GRACE not in cause.message]


async def test_recorded_policies_are_reviewed_as_by_validate(karmada_server, guarded):
    both = {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    bad = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "bad", "namespace": "default"},
        "spec": {"resourceSelectors": selectors, "placement": both},
    }
    await wait_for(lambda: rejection(guarded, bad))
    gate, cases, odd = asyncio.Semaphore(20), recorded_policies(), []

    async def compare(case):
        obj = case["object"]
        obj["metadata"]["namespace"] = "default"
        async with gate:
            message = await rejection(guarded, obj)
        if bool(message) != bool(ours(obj)):
            odd.append((case["name"], message, [str(cause) for cause in ours(obj)]))

    await asyncio.gather(*(compare(case) for case in cases))
    assert odd == []
    assert len(cases) == 600
