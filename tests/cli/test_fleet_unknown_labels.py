"""Fleets as `kubectl get` prints them: clusters, policies and bindings, without the templates of what runs."""

import json

import pytest
import yaml

FLINK = "flink.apache.org/v1beta1"
ONE_CLUSTER = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
OPTION_1 = {
    "workloadAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app.tier": "prod"}}, "matchLabelKeys": ["karmada.io/group"]}
        ]
    }
}
TOGETHER = {
    "workloadAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"training": "llm"}}}]
    }
}
PROD = {"app.tier": "prod", "karmada.io/group": "indexer-job"}
NOT_KNOWN = "labels of FlinkDeployment user-namespace/pipe-a are not known"


def cluster(name, **spec):
    served = [{"groupVersion": FLINK, "resources": [{"kind": "FlinkDeployment"}]}]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": {"syncMode": "Push", **spec},
        "status": {"apiEnablements": served},
    }


def policy(extra=None, placement=ONE_CLUSTER, name="ha-flink-deployment"):
    annotations = {"bayplan.io/placement": json.dumps(extra)} if extra else {}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "user-namespace", "annotations": annotations},
        "spec": {"resourceSelectors": [{"apiVersion": FLINK, "kind": "FlinkDeployment"}], "placement": placement},
    }


def binding(name, clusters, *, annotations=(), placement=ONE_CLUSTER, policy="ha-flink-deployment", **spec):
    """As Karmada leaves it: with neither the labels of the template nor the annotations of the policy."""
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"{name}-flinkdeployment",
            "namespace": "user-namespace",
            "uid": name,
            "resourceVersion": "1",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "p1"},
            "annotations": {
                "policy.karmada.io/applied-placement": json.dumps(placement),
                "propagationpolicy.karmada.io/namespace": "user-namespace",
                "propagationpolicy.karmada.io/name": policy,
                **dict(annotations),
            },
        },
        "spec": {
            "resource": {"apiVersion": FLINK, "kind": "FlinkDeployment", "namespace": "user-namespace", "name": name},
            "clusters": [{"name": one} for one in clusters],
            "placement": placement,
            **spec,
        },
    }


def pipeline(name, labels, **metadata):
    return {
        "apiVersion": FLINK,
        "kind": "FlinkDeployment",
        "metadata": {"name": name, "namespace": "user-namespace", "labels": labels, **metadata},
    }


@pytest.fixture
def placed(run, tmp_path):
    """Run `place` on a state and a change; the result, and the clusters of each workload."""

    def place(state, change, *options, command=("place",)):
        for name, objects in (("state.yaml", state), ("change.yaml", change)):
            (tmp_path / name).write_text(yaml.safe_dump_all(objects))
        files = ("--state", str(tmp_path / "state.yaml"), *(("-f", str(tmp_path / "change.yaml")) if change else ()))
        result = run(*command, *files, "-o", "json", *options)
        if not result.stdout:
            return result, {}
        found = json.loads(result.stdout)
        clusters = {one["name"]: [c["name"] for c in one["clusters"]] for one in found.get("items", ())}
        result.messages = {one["name"]: one["message"] for one in found.get("items", ())}
        return result, clusters

    return place


TWO = [cluster("member1"), cluster("member2")]


def test_a_pipeline_beside_one_whose_labels_are_not_known_is_not_placed(placed):
    state = [*TWO, policy(OPTION_1), binding("pipe-a", ["member1"])]
    result, clusters = placed(state, [pipeline("pipe-b", PROD)])
    assert clusters["pipe-b"] == []
    assert result.messages["pipe-b"] == NOT_KNOWN
    assert clusters["pipe-a"] == ["member1"]  # where it is, its labels do not matter
    assert "bayplan.io/workload-labels" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize("group, cluster", [("indexer-job", "member2"), ("aggregator-job", "member1")])
@pytest.mark.parametrize("form", ["template", "annotation"])
def test_with_its_labels_it_is(placed, form, group, cluster):
    labels = {**PROD, "karmada.io/group": group}
    if form == "template":
        supplied = [binding("pipe-a", ["member1"]), pipeline("pipe-a", labels, uid="t", resourceVersion="1")]
    else:
        supplied = [binding("pipe-a", ["member1"], annotations={"bayplan.io/workload-labels": json.dumps(labels)})]
    result, clusters = placed([*TWO, policy(OPTION_1), *supplied], [pipeline("pipe-b", PROD)])
    assert clusters["pipe-b"] == [cluster]
    assert "not known" not in result.stderr
    assert result.exit_code == 0


def test_groups_of_the_binding_are_never_unknown(placed):
    grouped = {
        **ONE_CLUSTER,
        "workloadAffinity": {"antiAffinity": {"groupByLabelKey": "karmada.io/group"}},
    }
    running = binding(
        "pipe-a", ["member1"], placement=grouped,
        workloadAffinityGroups={"antiAffinityGroup": "karmada.io/group=indexer-job"},
    )  # fmt: skip
    result, clusters = placed([*TWO, policy(placement=grouped), running], [pipeline("pipe-b", PROD)])
    assert clusters["pipe-b"] == ["member2"]
    assert result.exit_code == 0


def test_a_label_that_a_group_reveals_is_known(placed):
    """The term requires another value than the group of the running pipeline has, so it cannot select it."""
    running = binding(
        "pipe-a", ["member1"], workloadAffinityGroups={"antiAffinityGroup": "karmada.io/group=aggregator-job"},
        policy="another",
    )  # fmt: skip
    result, clusters = placed([*TWO, policy(OPTION_1), running], [pipeline("pipe-b", PROD)])
    assert clusters["pipe-b"] == ["member1"]
    assert result.exit_code == 0


def test_affinity_to_a_workload_whose_labels_are_not_known(placed):
    """The pair may have to be together, or there may be no peer at all."""
    state = [*TWO, policy(TOGETHER), binding("pipe-a", ["member1"])]
    result, clusters = placed(state, [pipeline("pipe-b", {"training": "llm"})])
    assert clusters["pipe-b"] == []
    assert result.messages["pipe-b"] == NOT_KNOWN


@pytest.mark.parametrize("placement", [OPTION_1, TOGETHER])
@pytest.mark.parametrize("clusters", [[], ["member2"]])
def test_a_copy_that_drains_is_named_as_the_whole(placed, clusters, placement):
    """Draining copies count in the preset `design`, and may be all that is left of a workload."""
    draining = [{"fromCluster": "member1", "reason": "TaintUntolerated", "producer": "TaintManager"}]
    running = binding(
        "pipe-a", clusters, policy="another", gracefulEvictionTasks=draining, suspension={"scheduling": True}
    )
    labels = PROD | {"training": "llm"}
    result, placed_on = placed([*TWO, policy(placement), running], [pipeline("pipe-b", labels)], "--semantics=design")
    assert placed_on["pipe-b"] == []
    assert result.messages["pipe-b"] == NOT_KNOWN
    assert result.exit_code == 1


def test_what_is_not_known_of_other_bindings_is_not_judged(placed):
    """The cluster of the first one is lost. Where it goes is not known, so --strict does not accept the answer."""
    state = [*TWO, policy(TOGETHER), binding("pipe-a", ["member9"])]
    result, _ = placed(state, [pipeline("pipe-b", {"training": "llm"})])
    assert "not judged: 1 object; with --strict that is a no" in result.stderr
    result, _ = placed(state, [pipeline("pipe-b", {"training": "llm"})], "--strict")
    assert result.exit_code == 1


def test_where_no_feasible_cluster_is_concerned_it_does_not_matter(placed):
    state = [*TWO, cluster("member3"), policy(OPTION_1, {**ONE_CLUSTER, "clusterAffinity": {"exclude": ["member3"]}})]
    running = binding("pipe-a", ["member3"], policy="another")
    result, clusters = placed([*state, running], [pipeline("pipe-b", PROD)])
    assert clusters["pipe-b"] == ["member1"]
    assert result.exit_code == 0


def test_other_namespaces_do_not_matter(placed):
    running = binding("pipe-a", ["member1"])
    running["metadata"]["namespace"] = running["spec"]["resource"]["namespace"] = "elsewhere"
    _, clusters = placed([*TWO, policy(OPTION_1), running], [pipeline("pipe-b", PROD)])
    assert clusters["pipe-b"] == ["member1"]


def test_the_terms_of_a_running_workload_come_from_its_policy(placed):
    """Its policy names it apart from the pipelines of its group; the newcomer has no terms of its own."""
    state = [*TWO, policy(OPTION_1, name="ha"), binding("pipe-a", ["member1"], policy="ha")]
    plain = policy(name="plain")
    plain["spec"]["resourceSelectors"][0]["name"] = "pipe-b"
    plain["spec"]["priority"] = 1
    result, clusters = placed([*state, plain], [pipeline("pipe-b", PROD)])
    assert clusters["pipe-b"] == []
    assert result.messages["pipe-b"] == NOT_KNOWN
    _, clusters = placed([*state, plain], [pipeline("pipe-b", {"app.tier": "test"})])
    assert clusters["pipe-b"] == ["member1"]  # no value of a label that it lacks makes the term select it


def owning(selector):
    return {"workloadAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": selector}]}}


@pytest.mark.parametrize(
    "selector, answer",
    [
        ({"matchLabels": {"app.tier": "prod"}}, []),
        ({"matchExpressions": [{"key": "app.tier", "operator": "NotIn", "values": ["test"]}]}, []),
        ({}, ["member2"]),  # it selects every workload, whatever its labels are
    ],
)
def test_a_pending_workload_whose_own_labels_are_not_known(placed, selector, answer):
    """A running pipeline with a term that may select it makes the answer depend on its labels."""
    state = [*TWO, policy(owning(selector), name="ha"), binding("pipe-a", ["member1"], policy="ha")]
    pending = binding("pipe-b", [], policy="none")
    result, clusters = placed([*state, pending, pipeline("pipe-a", PROD, uid="t")], ())
    assert clusters["pipe-b"] == answer
    if not answer:
        assert result.messages["pipe-b"] == "labels of FlinkDeployment user-namespace/pipe-b are not known"


def test_explain_names_the_clusters_in_doubt(run, tmp_path):
    objects = [*TWO, policy(OPTION_1), binding("pipe-a", ["member1"]), pipeline("pipe-b", PROD)]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    result = run("explain", "flinkdeployment/pipe-b", "-f", str(tmp_path))
    assert result.stdout.splitlines() == [
        NOT_KNOWN,
        "  member2  fits  tier 0  score 0  available 0",
        f"  member1  labels-unknown  {NOT_KNOWN}",
    ]
    assert result.exit_code == 1
    assert "workload-labels" in run("explain-rule", "labels-unknown").stdout
    assert "workload-labels" in run("explain-rule", NOT_KNOWN).stdout


def test_a_running_workload_stays_whatever_its_partners_labels_are(placed):
    """No rule about peers rejects the cluster that it is on, and no other one is better."""
    running = binding("pipe-a", ["member1"])
    result, clusters = placed([*TWO, policy(TOGETHER), running, binding("pipe-c", ["member2"])], ())
    assert clusters == {"pipe-a": ["member1"], "pipe-c": ["member2"]}
    assert (set(result.messages.values()), result.exit_code) == ({""}, 0)
    # With two clusters to take, it depends on its labels and its partner's whether it gets the other one too.
    both = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]}
    running = binding("pipe-a", ["member1"], placement=both)
    result, _ = placed([*TWO, policy(TOGETHER, both), running, binding("pipe-c", ["member2"], policy="none")], ())
    assert result.messages["pipe-a"].startswith("labels of FlinkDeployment user-namespace/pipe-")


def test_without_any_cluster_but_for_peers_the_labels_do_not_matter(placed):
    tainted = [cluster(name, taints=[{"key": "x", "effect": "NoSchedule"}]) for name in ("member1", "member2")]
    state = [*tainted, policy(TOGETHER), binding("pipe-a", ["member1"])]
    result, _ = placed(state, [pipeline("pipe-b", {"training": "llm"})])
    assert result.messages["pipe-b"].startswith("0/2 clusters are available: ")
    assert "untolerated taint {x:NoSchedule}" in result.messages["pipe-b"]


@pytest.mark.parametrize("newcomer, whose", [
    (pipeline("pipe-b", {"training": "llm"}), "FlinkDeployment user-namespace/pipe-a"),
    (binding("pipe-b", []), "FlinkDeployment user-namespace/pipe-a, FlinkDeployment user-namespace/pipe-b"),
])  # fmt: skip
def test_explain_says_of_every_cluster_that_a_partner_may_be_there(newcomer, whose, run, tmp_path):
    tainted = cluster("member3", taints=[{"key": "x", "effect": "NoSchedule"}])
    objects = [*TWO, tainted, policy(TOGETHER), binding("pipe-a", ["member1"]), newcomer]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    result = run("explain", "flinkdeployment/pipe-b", "-f", str(tmp_path))
    assert result.stdout.splitlines()[:4] == [
        f"labels of {whose} are not known",
        f"  member1  labels-unknown  labels of {whose} are not known",
        f"  member2  labels-unknown  labels of {whose} are not known",
        "  member3  cluster-taint   cluster(s) had untolerated taint {x:NoSchedule}",
    ]


def test_questions_keep_their_contract(run):
    question = {
        "name": "q",
        "clusters": TWO,
        "bindings": [binding("pipe-a", ["member1"])],
        "binding": binding("pipe-b", [], annotations={"bayplan.io/placement": json.dumps(OPTION_1)}),
    }
    result = run("decide", "fleet", given=json.dumps(question))
    assert json.loads(result.stdout)["clusters"] == [{"name": "member1", "replicas": 0}]


# A policy edit reaches its bindings


def edited(**placement):
    return policy(placement={**ONE_CLUSTER, **placement})


def test_an_edited_policy_moves_bindings_without_templates(placed):
    state = [*TWO, policy(), binding("pipe-a", ["member1"])]
    result, clusters = placed(state, [edited(clusterAffinity={"clusterNames": ["member2"]})])
    assert clusters["pipe-a"] == ["member2"]
    assert result.exit_code == 0


def test_a_binding_finds_its_policy_by_the_permanent_id(placed):
    running = binding("pipe-a", ["member1"])
    for key in ("namespace", "name"):
        del running["metadata"]["annotations"][f"propagationpolicy.karmada.io/{key}"]
    change = edited(clusterAffinity={"clusterNames": ["member2"]})
    change["metadata"]["labels"] = {"propagationpolicy.karmada.io/permanent-id": "p1"}
    _, clusters = placed([*TWO, running], [change])
    assert clusters["pipe-a"] == ["member2"]


@pytest.mark.parametrize("aspect", ["lazy", "another kind", "another policy", "being deleted"])
def test_edits_that_do_not_reach_a_binding(placed, aspect):
    change = edited(clusterAffinity={"clusterNames": ["member2"]})
    running = binding("pipe-a", ["member1"], policy="other" if aspect == "another policy" else "ha-flink-deployment")
    if aspect == "lazy":
        change["spec"]["activationPreference"] = "Lazy"
    elif aspect == "another kind":
        change["spec"]["resourceSelectors"][0]["kind"] = "Deployment"
    elif aspect == "being deleted":
        change["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "uid": "u", "resourceVersion": "1"}
    _, clusters = placed([*TWO, running, change], ())
    assert clusters["pipe-a"] == ["member1"]


def test_a_new_group_key_needs_the_labels_of_the_template(placed):
    change = edited(workloadAffinity={"antiAffinity": {"groupByLabelKey": "karmada.io/group"}})
    result, clusters = placed([*TWO, policy(), binding("pipe-a", ["member1"])], [change])
    assert clusters["pipe-a"] == ["member1"]
    assert result.messages["pipe-a"] == f"{NOT_KNOWN}, which karmada.io/group selects by"
    assert result.exit_code == 1
