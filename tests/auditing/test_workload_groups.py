"""Groups of pods that can replace each other: by owner, by budget, and the pods that are not recreated."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenery import finding, judge, layout_of, nodes, owned, pod, replicas, verdicts

from bayplan.auditing import workload_groups
from bayplan.auditing.audit_input import AuditInput
from bayplan.auditing.workload_groups import ReplicaPreferences
from bayplan.model import labels as label_model
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.wire.meta import ObjectMeta
from bayplan.wire.observed import (
    ObservedController,
    ObservedControllerSpec,
    ObservedPodAffinity,
    ObservedPodSpec,
    ObservedPodTemplate,
)

CLUSTER = nodes("cp x/a", "cp y/b", "cp z/c", "worker x/d", "worker x/d", "worker y/e")
WEB = label_model.equals({"app": "web"})


def groups(pods, *, preferences=workload_groups.NO_PREFERENCES, **more):
    given = AuditInput(nodes=CLUSTER, pods=pods, **more)
    return workload_groups.workloads_of(given, layout_of(CLUSTER), preferences)


def named(found):
    return {one.group.name: [member.node for member in one.group.members] for one in found}


def test_replicas_are_grouped_by_their_deployment():
    pods = [*replicas("web", "worker-3", "worker-5"), owned("db-0", "worker-3", "db", kind="StatefulSet")]
    assert named(groups(pods).owners) == {
        "Deployment shop/web": ["worker-3", "worker-5"],
        "StatefulSet shop/db": ["worker-3"],
    }


def test_pods_that_are_not_replicas_are_in_no_group():
    pods = [
        owned("agent", "worker-3", "agent", kind="DaemonSet"),
        owned("job", "worker-3", "job", kind="Job"),
        pod("etcd", "cp-0", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("bare", "worker-3"),
    ]
    found = groups(pods)
    assert found.owners == ()
    assert found.lost_with_node == {"shop/agent", "kube-system/etcd-cp-0", "kube-system/bare-worker-3"}


@pytest.mark.parametrize("asked, n, need", [
    ({"min_available": 2}, 3, 2),
    ({"min_available": "50%"}, 3, 2),    # rounded up
    ({"max_unavailable": 1}, 3, 2),
    ({"max_unavailable": "30%"}, 10, 7),
    ({"max_unavailable": "1%"}, 3, 2),   # rounded up too, so one may always be unavailable
    ({"max_unavailable": 5}, 3, 0),
    ({"min_available": "50%", "expected": 8}, 3, 4),
    ({}, 3, 0),
    ({"min_available": "half"}, 3, 0),  # no API server admits it
    ({"min_available": "9" * 5000 + "%"}, 3, 0),
])  # fmt: skip
def test_the_need_of_a_budget(asked, n, need):
    assert workload_groups.need_of(DisruptionBudget(namespace="shop", name="b", selector=WEB, **asked), n) == need


def test_a_null_selector_counts_nothing_and_an_empty_one_everything():
    pods = [*replicas("web", "worker-3"), *replicas("db", "worker-5")]
    budgets = [
        DisruptionBudget(namespace="shop", name=name, selector=selector)
        for name, selector in (("null", None), ("all", label_model.EVERYTHING), ("web", WEB))
    ]
    found = groups(pods, budgets=[*budgets, DisruptionBudget(namespace="other", name="far", selector=WEB)])
    assert named(found.budgets) == {
        "PodDisruptionBudget shop/all": ["worker-5", "worker-3"],
        "PodDisruptionBudget shop/web": ["worker-3"],
    }


def test_a_majority_is_required_by_annotation_or_by_name():
    marked = [owned(f"zk-{i}", "worker-3", "zk", kind="StatefulSet", annotations={"bayplan.io/audit": "quorum"})
              for i in range(3)]  # fmt: skip
    plain = replicas("web", "worker-3", "worker-4", "worker-5")
    needs = {one.group.name: one.group.need for one in groups([*marked, *plain]).owners}
    assert needs == {"StatefulSet shop/zk": 2, "Deployment shop/web": 1}
    preferences = ReplicaPreferences(quorum=re.compile("shop/we.*"))
    assert {one.group.need for one in groups(plain, preferences=preferences).owners} == {2}


def test_workloads_can_be_left_out():
    pods = replicas("web", "worker-3", "worker-3")
    assert verdicts(judge(CLUSTER, pods))["fd-n1-workloads-host"] == "WARN"
    preferences = ReplicaPreferences(excluded=re.compile("shop/.*"))
    assert verdicts(judge(CLUSTER, pods, preferences=preferences))["fd-n1-workloads-host"] == "PASS"
    ignored = replicas("web", "worker-3", "worker-3", annotations={"bayplan.io/audit": "ignore"})
    assert verdicts(judge(CLUSTER, ignored))["fd-n1-workloads-host"] == "PASS"


@pytest.mark.parametrize("where, host, zone", [
    (["worker-3", "worker-3"], "WARN", "WARN"),
    (["worker-3", "worker-4"], "WARN", "WARN"),  # two nodes on one machine
    (["worker-3", "worker-5"], "PASS", "PASS"),
    (["worker-3"],             "PASS", "PASS"),  # one replica cannot be spread
])  # fmt: skip
def test_replicas_that_one_loss_takes(where, host, zone):
    found = verdicts(judge(CLUSTER, replicas("web", *where)))
    assert found["fd-n1-workloads-host"] == host
    assert found["fd-n1-workloads-zone"] == zone


def test_two_replicas_on_one_node_share_its_host_even_if_it_is_unlabelled():
    given = nodes("cp x/a", "worker z/-", "worker z/-")
    assert verdicts(judge(given, replicas("web", "worker-1", "worker-1")))["fd-n1-workloads-host"] == "WARN"
    assert verdicts(judge(given, replicas("web", "worker-1", "worker-2")))["fd-n1-workloads-host"] == "UNDECIDED"


def test_findings_are_grouped_by_namespace():
    pods = [
        one
        for namespace, names in {"shop": ("a", "b", "c", "d"), "bank": ("x",)}.items()
        for name in names
        for one in replicas(name, "worker-3", "worker-3", namespace=namespace)
    ]
    found = finding(judge(CLUSTER, pods), "fd-n1-workloads-host")
    assert found.message == "one host can take all replicas of 5 workloads: bank (x), shop (a, b, c, 1 more)"
    assert workload_groups.by_namespace(found.workloads) == {
        "bank": ["Deployment bank/x"],
        "shop": [f"Deployment shop/{name}" for name in "abcd"],
    }


@pytest.mark.parametrize("need, where, host", [
    (2, ("worker-3", "worker-4", "worker-5"), "WARN"),  # two of three on one machine
    (1, ("worker-3", "worker-4", "worker-5"), "PASS"),
    (2, ("worker-3", "worker-5", "cp-0"),     "PASS"),
    (3, ("worker-3", "worker-5", "cp-0"),     "WARN"),  # no loss at all is allowed
])  # fmt: skip
def test_budgets_through_a_loss(need, where, host):
    budget = DisruptionBudget(namespace="shop", name="web", selector=WEB, min_available=need)
    result = judge(CLUSTER, replicas("web", *where), budgets=[budget])
    assert verdicts(result)["fd-need-workloads-host"] == host
    assert finding(result, "fd-need-workloads-host").workloads == (
        ("PodDisruptionBudget shop/web",) if host == "WARN" else ()
    )


def test_without_budgets_and_majorities_the_check_is_not_applicable():
    assert verdicts(judge(CLUSTER, replicas("web", "worker-3")))["fd-need-workloads-host"] == "N/A"


def bsi(pods, **more):
    found = verdicts(judge(CLUSTER, pods, profile="bsi-app-4.4.a19", **more))
    return found["bsi-stanza-deployment"], found["bsi-stanza-statefulset"]


def test_deployments_without_spreading():
    anti_affinity = ObservedPodAffinity(pod_anti_affinity={"requiredDuringSchedulingIgnoredDuringExecution": [{}]})
    where = ("worker-3", "worker-5")
    assert bsi(replicas("web", *where)) == ("WARN", "PASS")
    assert bsi(replicas("web", *where, affinity=anti_affinity)) == ("PASS", "PASS")
    assert bsi(replicas("web", *where, topology_spread_constraints=[{"maxSkew": 1}])) == ("PASS", "PASS")
    assert bsi(replicas("web", "worker-3")) == ("PASS", "PASS")  # nothing to spread


def test_the_template_of_a_controller_decides_for_its_pods():
    def controller(**spec):
        template = ObservedPodTemplate(spec=ObservedPodSpec(**spec))
        return ObservedController(
            kind="StatefulSet",
            metadata=ObjectMeta(name="db", namespace="shop"),
            spec=ObservedControllerSpec(replicas=3, template=template),
        )

    pods = [owned("db-0", "worker-3", "db", kind="StatefulSet")]
    assert bsi(pods, controllers=[controller()]) == ("PASS", "WARN")
    assert bsi(pods, controllers=[controller(topology_spread_constraints=[{}])]) == ("PASS", "PASS")


@pytest.mark.parametrize("labels, twice, infra", [
    ({},                                              "PASS", "N/A"),
    ({"worker-3": "infra"},                           "FAIL", "FAIL"),
    ({"worker-3": "infra", "worker-4": "infra"},      "PASS", "FAIL"),  # both in one zone
    ({"worker-3": "infra", "worker-5": "infra"},      "PASS", "PASS"),
    ({"worker-3": "gpu"},                             "FAIL", "N/A"),
])  # fmt: skip
def test_roles_and_infrastructure_nodes(labels, twice, infra):
    given = nodes("cp x/a", "cp y/b", "cp z/c", "worker x/d", "worker x/d", "worker y/e")
    for one in given:
        role = labels.get(one.metadata.name)
        if role:
            one.metadata.labels[f"node-role.kubernetes.io/{role}"] = ""
    found = verdicts(judge(given, profile="bsi-app-4.4.a19"))
    assert found["bsi-every-role-twice"] == twice
    assert found["bsi-infra-two-zones"] == infra


LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)
REQUIREMENTS = st.builds(
    label_model.requirement,
    st.sampled_from("ab"),
    st.sampled_from([label_model.IN, label_model.NOT_IN, label_model.EXISTS, label_model.DOES_NOT_EXIST]),
    st.sets(st.sampled_from("12"), min_size=1),
)
SELECTORS = st.none() | st.builds(label_model.selector_of, st.lists(REQUIREMENTS, max_size=2))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("xy"), LABELS), max_size=6),
    st.lists(st.tuples(st.sampled_from("xy"), SELECTORS)),
)
def test_a_budget_counts_all_pods_that_its_selector_matches(pods, selectors):
    made = []
    for i, (namespace, labels) in enumerate(pods):
        one = owned(f"p{i}", "worker-3", "p", namespace=namespace)
        one.metadata.labels = labels
        made.append(one)
    budgets = [
        DisruptionBudget(namespace=ns, name=str(i), selector=selector) for i, (ns, selector) in enumerate(selectors)
    ]
    found = {one.group.name: set(one.keys) for one in workload_groups.budget_groups(made, budgets, {})}
    expected = {}
    for budget in budgets:
        keys = {
            workload_groups.key_of(one)
            for one in made
            if one.metadata.namespace == budget.namespace and label_model.matches(budget.selector, one.metadata.labels)
        }
        if keys:
            expected[f"PodDisruptionBudget {budget.namespace}/{budget.name}"] = keys
    assert found == expected
