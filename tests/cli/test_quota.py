import json

import pytest

NODES = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: "2", memory: 4Gi}}
---
apiVersion: v1
kind: Node
metadata: {name: n2, labels: {kubernetes.io/hostname: n2}}
status: {allocatable: {cpu: "6", memory: 8Gi}}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: research}
spec:
  containers: [{name: c, image: i}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {labelSelector: {}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname}
"""


def limits(text, name="bayplan-quota", namespace="bayplan-system"):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {text}\n"


@pytest.fixture
def asked(run, tmp_path, monkeypatch):
    """Runs `quota` on two nodes, a pod and, if given, limits."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes.yaml").write_text(NODES)
    (tmp_path / "pod.yaml").write_text(POD)

    def ask(*words, with_limits=None):
        if with_limits is not None:
            (tmp_path / "limits.yaml").write_text(with_limits)
        return run("quota", "-f", ".", *words)

    return ask


def report(result):
    return json.loads(result.stdout)


def test_the_tables_show_accounts_and_charges(asked):
    result = asked(with_limits=limits('{research: "{cpu: 4}"}'))
    assert result.stdout == (
        "NAMESPACE  RESOURCE  CHARGED  LIMIT   STATE\n"
        "research   cpu       6        4       exceeded\n"
        "research   memory    8Gi      <none>  -\n"
        "\n"
        "NAMESPACE  NAME  NODE    CPU  MEMORY  WHY\n"
        "research   p     <none>  6    8Gi     may block any of 2 domains of kubernetes.io/hostname: "
        "charged for the largest until it is placed\n"
    )
    assert result.exit_code == 1
    assert asked("--exit-zero").exit_code == 0


def test_wide_has_every_resource_and_the_term(asked):
    assert "cpu=6, memory=8Gi  spec.affinity.podAntiAffinity.required" in asked("-o", "wide").stdout


def test_a_pending_pod_can_be_charged_the_average(asked):
    result = asked("--charge", "average", "-o", "json", with_limits=limits('{research: "{cpu: 4, memory: 6Gi}"}'))
    (account,) = report(result)["accounts"]
    assert account["charged"] == account["limits"] == {"cpu": "4", "memory": "6Gi"}
    assert (report(result)["exceeded"], result.exit_code) == (False, 0)


def test_without_limits_nothing_is_exceeded(asked):
    result = asked("-o", "json")
    (account,) = report(result)["accounts"]
    assert (account["limits"], account["exceeded"], result.exit_code) == (None, [], 0)
    assert "there are no limits: the input has no ConfigMap bayplan-system/bayplan-quota" in result.stderr


def test_other_namespaces_have_the_default_limits(asked):
    result = asked("-o", "json", with_limits=limits('{_default: "{cpu: 0}", idle: "{cpu: 1}"}'))
    assert [(a["namespace"], a["limits"], a["exceeded"]) for a in report(result)["accounts"]] == [
        ("idle", {"cpu": "1"}, []),
        ("research", {"cpu": "0"}, ["cpu"]),
    ]
    assert [a["namespace"] for a in report(asked("-o", "json", "-n", "idle"))["accounts"]] == ["idle"]


def test_limits_may_exceed_the_allocatable_resources(asked):
    result = asked(with_limits=limits('{research: "{cpu: 6}", web: "{cpu: 6}"}'))
    assert result.exit_code == 0
    assert "the limits of cpu add up to 12, more than the 8 of all nodes" in result.stderr


def test_the_config_map_may_have_another_name(asked):
    written = limits('{research: "{cpu: 1}"}', "mine", "ops") + "---\n" + limits('{research: "{cpu: 100}"}')
    assert asked("--limits", "ops/mine", with_limits=written).exit_code == 1
    assert asked().exit_code == 0
    result = asked("--limits", "ops/none")
    assert result.exit_code == 2
    assert "the input has no ConfigMap ops/none" in result.stderr
    result = asked("--limits", "mine")
    assert result.exit_code == 2
    assert "expected NAMESPACE/NAME, got 'mine'" in result.stderr


def test_a_placed_pod_is_charged_for_its_own_node(asked, tmp_path):
    (tmp_path / "pod.yaml").write_text(POD.replace("spec:\n", "spec:\n  nodeName: n1\n"))
    (account,) = report(asked("-o", "json"))["accounts"]
    assert account["charged"] == {"cpu": "2", "memory": "4Gi"}
    assert account["charges"][0]["domains"] == ["kubernetes.io/hostname=n1"]


def test_no_namespace_is_charged_without_exclusive_pods(asked, tmp_path):
    (tmp_path / "pod.yaml").write_text(POD.replace("labelSelector: {}", "labelSelector: {matchLabels: {a: b}}"))
    assert asked().stdout == "no namespace is charged: no pod excludes all others\n"


def test_design_semantics_read_an_empty_list_as_all_namespaces(asked, tmp_path):
    (tmp_path / "pod.yaml").write_text(POD.replace("namespaceSelector: {}", "namespaces: []"))
    assert report(asked("-o", "json"))["accounts"] == []
    assert report(asked("-o", "json", "--semantics", "design"))["accounts"][0]["charged"]["cpu"] == "6"


@pytest.mark.parametrize("data, message", [
    ('{research: "{cpu: lots}"}', "limits.yaml:4, ConfigMap bayplan-system/bayplan-quota: data[research].cpu: expected a quantity such as"),
    ('{research: "{cpu: -1}"}', "data[research].cpu: expected a quantity of 0 or more, got -1"),
    ('{research: "{cpu: true}"}', "data[research].cpu: expected a quantity"),
    ('{research: "{cpu: [1]}"}', "data[research].cpu: expected a quantity of 0 or more, got [1]"),
    ('{research: "{a b: 1}"}', "data[research].a b: expected the name of a resource"),
    ('{research: "12"}', 'data[research]: expected quantities by resource, such as "{cpu: 64, memory: 256Gi}"'),
    ("{research: 12}", "data[research]: expected quantities by resource"),
    ('{research: "{"}', "data[research]: neither YAML nor JSON"),
    ('{Research: "{cpu: 1}"}', "data[Research]: expected the name of a namespace, or _default"),
])  # fmt: skip
def test_bad_limits_are_errors_with_their_location(data, message, asked):
    result = asked(with_limits=limits(data))
    assert result.exit_code == 2
    assert message in result.stderr


def test_other_config_maps_are_ignored(asked):
    assert asked(with_limits=limits('{research: "{cpu: lots}"}', "other")).exit_code == 0


def test_the_objects_of_a_fleet_are_ignored(asked, tmp_path):
    (tmp_path / "clusters.yaml").write_text(
        "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: c}\n"
    )
    result = asked()
    assert "note: clusters, policies and bindings are ignored: this answer is about nodes" in result.stderr
    assert "are ignored without clusters" not in result.stderr
