"""ResourceQuotas refuse pods and claims in the server's words; what is used is counted as pods come and go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitting import Loader, container, deployment, messages, pod, stored, written
from bayplan.controllers.resource_quotas import QuotaLedger
from bayplan.wire.admission import ResourceQuota, ResourceQuotaSpec
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.pods import Container, PodSpec, ResourceRequirements

ONE_CPU = [container("{requests: {cpu: 1}, limits: {cpu: 2}}")]


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def quota(hard, more="", name="team", **status):
    found = written("ResourceQuota", name, f"spec: {{hard: {{{hard}}}{more}}}")
    return stored(found, **status) if status else found


@pytest.mark.parametrize("hard, message", [
    ("pods: 2", "exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2"),
    ("count/pods: 2", "exceeded quota: team, requested: count/pods=1, used: count/pods=2, limited: count/pods=2"),
    ("cpu: 2500m", "exceeded quota: team, requested: cpu=1, used: cpu=2, limited: cpu=2500m"),
    ("requests.cpu: 2", "exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=2, limited: requests.cpu=2"),
    ("limits.cpu: 4", "exceeded quota: team, requested: limits.cpu=2, used: limits.cpu=4, limited: limits.cpu=4"),
    ("pods: 2, limits.cpu: 5", ("exceeded quota: team, requested: limits.cpu=2,pods=1, used: limits.cpu=4,pods=2, "
     "limited: limits.cpu=5,pods=2")),
])  # fmt: skip
def test_the_pod_that_is_too_much_is_refused(load, hard, message):
    found = load(quota(hard), deployment(replicas=3, containers=ONE_CPU))
    assert len(found.pending) == 2
    (refused,) = found.refused
    assert refused.message == f'pods "{refused.pod.metadata.name}" is forbidden: {message}'


@pytest.mark.parametrize("hard, message", [
    ("requests.memory: 1Gi", "must specify requests.memory for: c"),
    ("limits.memory: 1Gi, memory: 1Gi, cpu: 9", "must specify limits.memory for: c; memory for: c"),
])  # fmt: skip
def test_what_is_counted_must_be_set(load, hard, message):
    assert messages(load(quota(hard), pod(containers=ONE_CPU))) == [
        f'pods "web" is forbidden: failed quota: team: {message}'
    ]


def test_a_request_of_the_pod_as_a_whole_is_enough(load):
    assert messages(load(quota("cpu: 2"), pod(resources={"requests": {"cpu": 1}}))) == []
    assert len(messages(load(quota("cpu: 2"), pod(resources={"requests": {"cpu": 3}})))) == 1


@pytest.mark.parametrize("existing, status, n_created", [
    ([], {}, 3),
    ([pod("old", node="a1", containers=ONE_CPU)], {}, 2),  # counted from the pods of the input
    ([stored(pod("old", containers=ONE_CPU))], {}, 2),
    ([stored(pod("old", node="a1", containers=ONE_CPU), phase="Succeeded")], {}, 3),
    ([stored(pod("old", node="a1", namespace="other"))], {}, 3),
    ([pod("old", node="a1", containers=ONE_CPU)], {"used": {"pods": "0"}}, 3),  # what the status reports counts
    ([], {"used": {"pods": "3"}}, 0),
])  # fmt: skip
def test_what_is_used_is_known_from_the_status_or_the_pods(load, existing, status, n_created):
    found = load(quota("pods: 3", **status), *existing, deployment(replicas=9, containers=ONE_CPU))
    assert len([one for one in found.pending if one.name != "old"]) == n_created
    assert len(found.refused) == 9 - n_created


@pytest.mark.parametrize("hard, used", [
    ("limits.cpu: 3", "limits.cpu=2"),
    ("requests.cpu: 1500m", "requests.cpu=1"),
    ("requests.example.com/gpu: 2", "requests.example.com/gpu=1"),
    ("pods: 1, scopes", "pods=1"),
])  # fmt: skip
@pytest.mark.parametrize("made", [lambda one: one, stored])
def test_limits_and_scopes_of_running_pods_are_known(load, made, hard, used):
    hard, comma, _ = hard.partition(", scopes")
    asked = [container("{requests: {cpu: 1, example.com/gpu: 1}, limits: {cpu: 2, example.com/gpu: 1}}")]
    more = ", scopes: [Terminating]" if comma else ""
    old = made(pod("old", node="a1", containers=asked, activeDeadlineSeconds=60))
    new = pod("new", containers=[container("{limits: {cpu: 2, example.com/gpu: 2}}")], activeDeadlineSeconds=60)
    (message,) = messages(load(quota(hard, more), old, new))
    assert f"used: {used}," in message


def test_pods_that_are_written_by_hand_come_first(load):
    found = load(quota("pods: 1"), deployment(), pod("mine"))
    assert [one.name for one in found.pending] == ["mine"]


@pytest.mark.parametrize("scope, spec, counts", [
    ("scopes: [BestEffort]", {}, True),
    ("scopes: [BestEffort]", {"containers": ONE_CPU}, False),
    ("scopes: [NotBestEffort]", {"containers": ONE_CPU}, True),
    ("scopes: [NotBestEffort]", {}, False),
    ("scopes: [Terminating]", {"activeDeadlineSeconds": 5}, True),
    ("scopes: [Terminating]", {}, False),
    ("scopes: [NotTerminating]", {}, True),
    ("scopes: [Terminating, BestEffort]", {}, False),  # all scopes must match
    ("scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [gold]}]}",
     {"priorityClassName": "gold"}, True),
    ("scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [gold]}]}", {}, False),
    ("scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [gold]}]}", {}, True),
    ("scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}", {}, False),
    ("scopes: [CrossNamespacePodAffinity]", {}, False),
    ("scopes: [CrossNamespacePodAffinity]", {"affinity": {"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaces": ["other"]}]}}}, True),
])  # fmt: skip
def test_scopes(load, scope, spec, counts):
    gold = written("PriorityClass", "gold", "{value: 5}", "scheduling.k8s.io/v1", namespace="")
    assert bool(load(quota("pods: 0", f", {scope}"), gold, pod(**spec)).refused) == counts


def test_other_namespaces_are_not_charged(load):
    assert messages(load(quota("pods: 0"), pod(namespace="other"))) == []


def test_extended_resources_and_huge_pages_are_counted(load):
    gpu = [container("{limits: {example.com/gpu: 2, hugepages-2Mi: 2Mi, cpu: 1}}")]
    assert len(messages(load(quota("requests.example.com/gpu: 1"), pod(containers=gpu)))) == 1
    assert len(messages(load(quota("requests.example.com/gpu: 2"), pod(containers=gpu)))) == 0
    assert len(messages(load(quota("hugepages-2Mi: 1Mi"), pod(containers=gpu)))) == 1


CLAIMS = """
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 5Gi}}}
"""
EXISTING = "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}"


@pytest.mark.parametrize("hard, asked", [
    ("persistentvolumeclaims: 2", "persistentvolumeclaims=1, used: persistentvolumeclaims=2, limited: persistentvolumeclaims=2"),
    ("requests.storage: 10Gi", "requests.storage=5Gi, used: requests.storage=10Gi, limited: requests.storage=10Gi"),
    ("fast.storageclass.storage.k8s.io/requests.storage: 5Gi",
     ("fast.storageclass.storage.k8s.io/requests.storage=5Gi, used: fast.storageclass.storage.k8s.io/requests.storage=5Gi, "
     "limited: fast.storageclass.storage.k8s.io/requests.storage=5Gi")),
])  # fmt: skip
def test_claims_are_charged(load, hard, asked):
    found = load(
        quota(hard),
        written("PersistentVolumeClaim", "old", EXISTING),
        written("StatefulSet", "db", CLAIMS, "apps/v1"),
    )
    assert (
        messages(found)[0]
        == f'persistentvolumeclaims "data-db-1" is forbidden: exceeded quota: team, requested: {asked}'
    )


# Charges and what is given back, against a count made anew


def spec(milli):
    resources = ResourceRequirements(requests={"cpu": f"{milli}m"})
    return PodSpec(containers=[Container(name="c", resources=resources)])


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 900), st.booleans()), max_size=40))
def test_given_back_is_as_if_never_charged(steps):
    limit = 1500
    hard = ResourceQuotaSpec(hard={"requests.cpu": f"{limit}m", "pods": 3})
    ledger = QuotaLedger([ResourceQuota(metadata=ObjectMeta(name="team", namespace="shop"), spec=hard)])
    here: dict[str, int] = {}
    for name, milli, deletes in steps:
        if deletes:
            here.pop(name, None)
            ledger.give_back("shop", name)
        elif name not in here:
            fits = sum(here.values()) + milli <= limit and len(here) < 3
            assert (ledger.charge("shop", name, spec(milli)) == "") == fits
            if fits:
                here[name] = milli
