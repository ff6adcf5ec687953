import json

import pytest

from bayplan.library import decisions

NODE = {"metadata": {"name": "a1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}


def lines(*questions):
    return "".join(f"{q if isinstance(q, str) else json.dumps(q)}\n" for q in questions)


def answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_answers_come_in_order(run):
    asked = lines(*({"name": f"q{i}", "nodes": [NODE], "pod": POD} for i in range(3)))
    result = run("decide", "pods", given=asked)
    assert [a["name"] for a in answers(result)] == ["q0", "q1", "q2"]
    assert answers(result)[0]["best"] == ["a1"]
    assert result.exit_code == 0


def test_unschedulable_is_a_valid_answer(run):
    result = run("decide", "pods", given=lines({"nodes": [], "pod": POD}))
    assert answers(result)[0]["message"] == "no nodes available to schedule pods"
    assert result.exit_code == 0


def test_terms_of_other_pods_that_exclude_the_pod_give_it_no_score(run):
    term = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}
    near_others = [{"weight": 1, "podAffinityTerm": {**term, "topologyKey": "kubernetes.io/hostname"}}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": near_others}}
    node = {**NODE, "metadata": {"name": "a1", "labels": {"kubernetes.io/hostname": "a1"}}}
    running = {"metadata": {"name": "w"}, "spec": {**POD["spec"], "nodeName": "a1", "affinity": affinity}}
    asked = [
        {"nodes": [node], "pods": [running], "pod": {**POD, "metadata": {"name": "p", "labels": {"app": app}}}}
        for app in ("web", "api")
    ]
    excluded, included = answers(run("decide", "pods", given=lines(*asked)))
    assert "InterPodAffinity" not in excluded["nodes"]["a1"]["scores"]
    assert "InterPodAffinity" in included["nodes"]["a1"]["scores"]


@pytest.mark.parametrize("bad, message", [
    ("no json", "invalid JSON"),
    ("[]", "expected a mapping, got a list"),
    ({"nodes": [NODE]}, "pod: expected a mapping, got nothing"),
    ({"nodes": [NODE], "pod": None}, "pod: expected a mapping, got nothing"),
    ({"nodes": [NODE], "pod": POD, "pods": [None]}, "pods[0]: expected a mapping, got null"),
    ({"nodes": [NODE, NODE], "pod": POD}, "a1 exists already"),
    ({"nodes": [], "pod": POD, "options": {"semantics": "other"}}, "expected upstream or design"),
    ({"nodes": [], "pod": POD, "options": {"switches": {"none": 1}}}, "options.switches.none: unknown field"),
    ({"nodes": [], "pod": POD, "options": {"switches": {"failBackAfter": "1h"}}}, 'options.switches.failBackAfter: expected a whole number, got the string "1h"'),
    ({"nodes": [], "pod": POD, "options": {"config": {"profiles": [{"pluginConfig": 5}]}}}, "KubeSchedulerConfiguration: profiles[0].pluginConfig: expected a list, got the number 5"),
    ({"nodes": [], "pod": POD, "options": {"config": {"parallelism": 0}}}, "parallelism"),
])  # fmt: skip
def test_a_bad_line_is_answered_in_order(bad, message, run):
    good = {"name": "good", "nodes": [NODE], "pod": POD}
    result = run("decide", "pods", given=lines(good, bad, good))
    first, second, third = answers(result)
    assert (first["name"], third["name"]) == ("good", "good")
    assert second["line"] == 2
    assert message in second["error"]
    assert result.exit_code == 2


def error_of(run, kind, question):
    result = run("decide", kind, given=lines(question))
    assert result.exit_code == 2
    return answers(result)[0]["error"].split("; ")


def test_all_values_of_wrong_types_in_a_question_about_a_pod_are_reported(run):
    node = {"metadata": {"name": "a1", "labels": {"zone": 5}}, "spec": {"taints": {}}}
    pod = {"metadata": {"name": "p"}, "spec": {"priority": "7", "containers": [3]}}
    question = {"nodes": [node], "pod": pod, "options": {"semantic": "design"}}
    assert error_of(run, "pods", question) == [
        "nodes[0].metadata.labels[zone]: expected a string, got the number 5 (put it in quotes)",
        "nodes[0].spec.taints: expected a list, got a mapping",
        'pod.spec.priority: expected a whole number, got the string "7"',
        "pod.spec.containers[0]: expected a mapping, got the number 3",
        "options.semantic: unknown field, did you mean semantics?",
    ]
    objects = [
        {"kind": "Service", "spec": {"selector": ["app"]}},
        {"kind": "Deployment", "spec": "not read"},
        {"kind": ["Service"], "spec": "not read"},
        {"kind": "PersistentVolumeClaim", "metadata": {"name": 5}},
    ]
    assert error_of(run, "pods", {"nodes": [NODE], "pod": POD, "objects": objects}) == [
        "objects[0].spec.selector: expected a mapping, got a list",
        "objects[3].metadata.name: expected a string, got the number 5 (put it in quotes)",
    ]


def test_a_bad_switch_is_the_only_one_that_is_reported(run):
    question = {"nodes": [], "pod": POD, "options": {"switches": {"nope": True, "firstPodPerTerm": 1}}}
    assert error_of(run, "pods", question) == [
        "options.switches.firstPodPerTerm: expected true or false, got the number 1",
        "options.switches.nope: unknown field",
    ]


def test_the_weight_of_a_plugin_has_32_bits(run):
    plugins = {"score": {"enabled": [{"name": "ImageLocality", "weight": 2**31}]}}
    question = {"nodes": [], "pod": POD, "options": {"config": {"profiles": [{"plugins": plugins}]}}}
    (message,) = error_of(run, "pods", question)
    assert message.startswith("KubeSchedulerConfiguration: profiles[0].plugins.score.enabled[0].weight: ")
    assert message.endswith("expected a whole number from -2147483648 to 2147483647, got the number 2147483648")


def binding(placement, name="web"):
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"replicas": 1, "placement": placement}}


def test_all_values_of_wrong_types_in_a_question_about_a_fleet_are_reported(run):
    placement = {
        "clusterAffinities": [{"clusterNames": "eu-1"}, None],
        "clusterTolerations": 5,
        "spreadConstraints": [{"minGroups": "2"}],
        "replicaScheduling": {"weightPreference": {"staticWeightList": [{"targetCluster": []}]}},
        "workloadAffinity": None,
    }
    question = {
        "clusters": [{"metadata": {"name": "eu-1"}}],
        "binding": binding(placement),
        "bindings": [binding({"clusterAffinity": "eu"}, "db")],
        "resources": [{"apiVersion": "v1", "kind": 5, "metadata": {"labels": ["a"], "annotations": None}}],
    }
    where = "binding.spec.placement"
    assert error_of(run, "fleet", question) == [
        f'{where}.clusterAffinities[0].clusterNames: expected a list, got the string "eu-1"',
        f"{where}.clusterAffinities[1]: expected a mapping, got null",
        f"{where}.clusterTolerations: expected a list, got the number 5",
        f'{where}.spreadConstraints[0].minGroups: expected a whole number, got the string "2"',
        f"{where}.replicaScheduling.weightPreference.staticWeightList[0].targetCluster: expected a mapping, got a list",
        'bindings[0].spec.placement.clusterAffinity: expected a mapping, got the string "eu"',
        "resources[0].kind: expected a string, got the number 5 (put it in quotes)",
        "resources[0].metadata.labels: expected a mapping, got a list",
    ]
    assert error_of(run, "fleet", {"clusters": [{"metadata": 1}], "binding": binding(None)}) == [
        "clusters[0].metadata: expected a mapping, got the number 1"
    ]


def test_empty_lines_are_skipped(run):
    result = run("decide", "pods", given="\n  \n" + lines("x"))
    assert answers(result)[0]["line"] == 3


ZONE_A, ZONE_B, NO_ZONE = {"zone": "a"}, {"zone": "b"}, {}
AWAY_FROM_BATCH = {
    "podAntiAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "batch"}}, "topologyKey": "zone"}]}
}
NEAR_ITSELF = {"podAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "new"}}, "topologyKey": "zone"}]}}
AWAY_FROM_NEW = {
    "podAntiAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "new"}}, "topologyKey": "zone"}]}
}


def fitting(run, pod, pods, switches, nodes=(ZONE_A, ZONE_B, NO_ZONE), semantics="upstream"):
    """The nodes where the pod fits; they are named by their position."""
    made = [{**NODE, "metadata": {"name": f"n{i}", "labels": labels}} for i, labels in enumerate(nodes)]
    options = {"semantics": semantics, "switches": switches}
    (answer,) = answers(
        run("decide", "pods", given=lines({"nodes": made, "pods": pods, "pod": pod, "options": options}))
    )
    return [name for name, verdict in answer["nodes"].items() if verdict["code"] == "Success"]


def a_pod(name, app, node=None, affinity=None, annotations=None):
    spec = {**POD["spec"], "affinity": affinity or {}, **({"nodeName": node} if node else {})}
    return {"metadata": {"name": name, "labels": {"app": app}, "annotations": annotations or {}}, "spec": spec}


@pytest.mark.parametrize("switch, value, fits", [
    ("antiAffinityNeedsTopologyKey", False, ["n1", "n2"]),
    ("antiAffinityNeedsTopologyKey", True,  ["n1"]),
])  # fmt: skip
@pytest.mark.parametrize("semantics", ["upstream", "design"])
def test_required_anti_affinity_needs_the_topology_key_by_switch(run, semantics, switch, value, fits):
    pod, batch = a_pod("p", "new", affinity=AWAY_FROM_BATCH), a_pod("batch", "batch", "n0")
    assert fitting(run, pod, [batch], {switch: value}, semantics=semantics) == fits


@pytest.mark.parametrize("switch, value, fits", [
    ("firstPodNeedsTopologyKey", True,  ["n0", "n1"]),
    ("firstPodNeedsTopologyKey", False, ["n0", "n1", "n2"]),
])  # fmt: skip
@pytest.mark.parametrize("semantics", ["upstream", "design"])
def test_the_first_pod_needs_the_topology_key_by_switch(run, semantics, switch, value, fits):
    assert fitting(run, a_pod("p", "new", affinity=NEAR_ITSELF), [], {switch: value}, semantics=semantics) == fits


@pytest.mark.parametrize("switch, value, fits", [
    ("neighboursRejectWhenSatisfied", False, ["n2"]),
    ("neighboursRejectWhenSatisfied", True,  ["n0", "n2"]),
])  # fmt: skip
@pytest.mark.parametrize("semantics", ["upstream", "design"])
def test_a_violated_term_of_an_existing_pod_rejects_by_switch(run, semantics, switch, value, fits):
    violated = [a_pod("o", "owner", "n0", AWAY_FROM_NEW), a_pod("new-1", "new", "n0")]
    satisfied = [a_pod("other", "owner", "n1", AWAY_FROM_NEW)]
    assert fitting(run, a_pod("p", "new"), violated + satisfied, {switch: value}, semantics=semantics) == fits


@pytest.mark.parametrize("keys, fits", [
    ([],               ["n2"]),        # every key of the nodes: a zone and a rack
    (["zone"],         ["n1", "n2"]),
    (["rack"],         ["n2"]),
    (["zone", "rack"], ["n2"]),
])  # fmt: skip
def test_an_empty_topology_key_means_the_keys_of_the_switch_or_of_the_nodes(run, keys, fits):
    written = {"podAntiAffinity": {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "batch"}}}]}}
    pod = a_pod("p", "new", annotations={"bayplan.io/affinity": json.dumps(written)})
    nodes = ({"zone": "a", "rack": "r"}, {"zone": "b", "rack": "r"}, {"zone": "c", "rack": "s"})
    batch = a_pod("batch", "batch", "n0")
    switches = {"defaultTopologyKeys": keys}
    assert fitting(run, pod, [batch], switches, nodes, semantics="design") == fits


def test_admission_admits_an_empty_topology_key_under_the_switch(run):
    term = {"labelSelector": {"matchLabels": {"app": "batch"}}, "topologyKey": ""}
    pod = {"apiVersion": "v1", "kind": "Pod", **a_pod("p", "new", affinity={"podAntiAffinity": {REQUIRED: [term]}})}
    asked = [{"object": pod}, {"object": pod, "options": {"semantics": "design"}}]
    upstream, design = answers(run("decide", "admission", given=lines(*asked)))
    fields = [
        {cause["field"] for cause in answer["causes"] if "topologyKey" in cause["field"]}
        for answer in (upstream, design)
    ]
    assert fields == [{f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey"}, set()]


def test_admission_questions_are_answered_with_causes(run):
    good = {"name": "good", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": []}}
    first, second = answers(run("decide", "admission", given=lines(good, {"name": "bad", "object": pod})))
    assert first == {"name": "good", "causes": []}
    assert {"reason", "field", "message"} == set(second["causes"][0])


def test_a_bug_costs_the_answer_to_its_own_line_only(run, monkeypatch):
    def broken(line):
        if b"worse" in line:
            raise KeyError("\x1b[31m")
        return {"name": "fine"}

    monkeypatch.setitem(decisions.ANSWERERS, "pods", lambda: broken)
    result = run("decide", "pods", given=lines({}, {"name": "worse"}, {}))
    first, second, third = answers(result)
    assert first == third == {"name": "fine"}
    assert second == {"line": 2, "error": "a bug in bayplan: KeyError; standard error has the details"}
    assert result.exit_code == 70
    assert "Traceback" in result.stderr
    assert "This is a bug in bayplan" in result.stderr
    assert "\x1b" not in result.stderr
