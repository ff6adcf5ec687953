"""What if nodes are lost, drained, cordoned or added: `place` and `explain` answer for the cluster as it is then."""

import json

import pytest
import yaml

ZONE = "topology.kubernetes.io/zone"
NAMES = ("n1", "n2", "n3")


def node(name, zone, cpu="4"):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone, "kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def pod(name, on, owner=("ReplicaSet", "web"), cpu="1", **spec):
    kind, app = owner or ("", name)
    owners = [{"apiVersion": "apps/v1", "kind": kind, "name": app, "controller": True, "uid": "u"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "labels": {"app": app},
            **({"ownerReferences": owners} if owner else {}),
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
        "status": {"phase": "Running"},
    }


def budget(name, app, **spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


@pytest.fixture
def asked(run, tmp_path):
    """Runs a command on a state; returns the result with its document under `items`, by name."""

    def ask(*words, objects, command="place", output="json"):
        state = tmp_path / "state.json"
        state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        return run(command, *words, "--state", state, "-o", output)

    return ask


def items(result):
    return {item["name"]: item for item in json.loads(result.stdout)["items"]}


NODES = [node("n1", "a"), node("n2", "b"), node("n3", "b")]


def test_a_lost_node_gives_its_pods_to_the_others_and_loses_bare_pods_and_daemons(asked):
    objects = [
        *NODES,
        pod("web-1", "n1"),
        pod("alone", "n1", owner=None),
        pod("agent-1", "n1", owner=("DaemonSet", "agent")),
        budget("web", "web", minAvailable=1),
    ]
    result = asked("--lose", "node/n1", objects=objects)
    found = items(result)
    assert found["web-1"]["displacedFrom"] == "n1"
    assert found["web-1"]["target"] in ("n2", "n3")
    assert (found["alone"]["lost"], found["alone"]["target"]) == (True, "")
    assert "agent-1" not in found
    assert result.exit_code == 1  # the bare pod does not come back


def test_nodes_are_lost_by_label_and_what_does_not_fit_is_pending(asked):
    objects = [*NODES, pod("web-1", "n2", cpu="3"), pod("web-2", "n3", cpu="3")]
    result = asked("--lose", f"{ZONE}=b", objects=objects)
    placed = [item for item in items(result).values() if item["target"] == "n1"]
    assert (len(placed), result.exit_code) == (1, 1)
    assert asked("--lose", f"{ZONE}=a", objects=objects).exit_code == 0


def test_a_pod_with_a_local_volume_stays_pending(asked):
    name = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/x"},
            "claimRef": {"namespace": "shop", "name": "data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [name]}]}},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Bound"},
    }
    mounted = pod("web-1", "n1", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    result = asked("--lose", "node/n1", objects=[*NODES, volume, claim, mounted])
    assert items(result)["web-1"]["target"] == ""
    assert result.exit_code == 1


def test_pods_of_a_stateful_set_come_back_one_after_another(asked):
    owner = ("StatefulSet", "db")
    objects = [*NODES, pod("db-0", "n1", owner, cpu="4"), pod("db-1", "n1", owner, cpu="0")]
    objects += [pod("x-2", "n2"), pod("x-3", "n3")]
    found = items(asked("--lose", "node/n1", objects=objects))
    assert found["db-0"]["target"] == found["db-1"]["target"] == ""
    assert "waits for shop/db-0" in found["db-1"]["message"]
    parallel = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop", "uid": "u"},
        "spec": {
            "replicas": 2,
            "serviceName": "db",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    found = items(asked("--lose", "node/n1", objects=[*objects, parallel]))
    assert found["db-1"]["target"]


def test_a_drain_waits_for_budgets_and_goes_on_when_evicted_pods_run_elsewhere(asked):
    objects = [*NODES, pod("web-1", "n1"), pod("web-2", "n1"), budget("web", "web", maxUnavailable=1)]
    result = asked("--drain", "node/n1", objects=objects)
    assert {item["target"] != "n1" and bool(item["target"]) for item in items(result).values()} == {True}
    assert len(items(result)) == 2
    assert result.exit_code == 0


def test_a_drain_names_what_blocks_it(asked):
    objects = [*NODES, pod("web-1", "n1"), budget("web", "web", maxUnavailable=0)]
    result = asked("--drain", "node/n1", objects=objects)
    blocked = json.loads(result.stdout)["blockedEvictions"]
    assert blocked == [{"node": "n1", "pod": "shop/web-1", "message": "PodDisruptionBudget web allows no disruption"}]
    assert result.exit_code == 1
    text = asked("--drain", "node/n1", objects=objects, output="table").stdout
    assert "n1 cannot be drained: shop/web-1 stays, PodDisruptionBudget web allows no disruption" in text
    explained = asked("pod/web-1", "--drain", "node/n1", objects=objects, command="explain", output="text")
    assert "cannot be drained: PodDisruptionBudget web allows no disruption" in explained.stdout
    assert explained.exit_code == 1


def test_a_bare_pod_blocks_a_drain_and_daemons_do_not(asked):
    objects = [*NODES, pod("alone", "n1", owner=None), pod("web-1", "n1")]
    result = asked("--drain", "node/n1", objects=objects)
    assert [one["pod"] for one in json.loads(result.stdout)["blockedEvictions"]] == ["shop/alone"]
    assert items(result) == {}  # kubectl evicts nothing then
    daemon = pod("agent-1", "n1", owner=("DaemonSet", "agent"))
    assert asked("--drain", "node/n1", objects=[*NODES, daemon]).exit_code == 0


def test_a_cordoned_node_takes_nothing_and_keeps_what_runs(asked):
    objects = [node("n1", "a"), node("n2", "b", cpu="1"), pod("web-1", "n1"), pod("web-2", "", cpu="2")]
    assert asked(objects=objects).exit_code == 0
    result = asked("--cordon", "node/n1", objects=objects)
    assert set(items(result)) == {"web-2"}
    assert result.exit_code == 1


def test_a_node_is_added_with_the_daemons_of_its_model(asked):
    objects = [node("n1", "a"), pod("agent-1", "n1", owner=("DaemonSet", "agent")), pod("web-1", "n1", cpu="3")]
    fits, too_large = pod("web-2", "", cpu="3"), pod("web-2", "", cpu="4")
    assert asked(objects=[*objects, fits]).exit_code == 1
    assert items(asked("--add-node", "like=n1", objects=[*objects, fits]))["web-2"]["target"] == "n1-more"
    assert asked("--add-node", "like=n1", objects=[*objects, too_large]).exit_code == 1


def test_nodes_are_added_from_a_file(asked, tmp_path):
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(node("big", "c", cpu="16")))
    result = asked("--add-node", tmp_path / "more.yaml", objects=[node("n1", "a"), pod("web-1", "", cpu="8")])
    assert items(result)["web-1"]["target"] == "big"
    (tmp_path / "none.yaml").write_text(yaml.safe_dump(pod("web-9", "")))
    refused = asked("--add-node", tmp_path / "none.yaml", objects=NODES)
    assert (refused.exit_code, "kind Node" in refused.stderr) == (2, True)


def test_a_lost_node_may_be_replaced_by_one_like_it(asked):
    objects = [node("n1", "a"), pod("web-1", "n1")]
    result = asked("--lose", "node/n1", "--add-node", "like=n1", objects=objects)
    assert items(result)["web-1"]["target"] == "n1-more"


def test_explain_answers_for_the_cluster_as_it_is_then(asked):
    objects = [*NODES, pod("web-1", "n1")]
    result = asked("pod/web-1", "--lose", "node/n1", "--cordon", "node/n2", objects=objects, command="explain")
    verdicts = json.loads(result.stdout)["verdicts"]
    assert {name: one["fits"] for name, one in verdicts.items()} == {"n2": False, "n3": True}
    gone = asked("pod/web-9", "--lose", "node/n1", objects=[*NODES, pod("web-9", "n1", owner=None)], command="explain")
    assert "no controller creates it again" in json.loads(gone.stdout)["message"]
    assert gone.exit_code == 1


@pytest.mark.parametrize(
    "words, message",
    [
        (("--lose", "node/n11"), "there is no such node, did you mean n1?"),
        (("--lose", "cluster"), "expected node/NAME or KEY=VALUE of a node label, got 'cluster'"),
        (("--drain", f"{ZONE}=bb"), f"no node has this label, did you mean {ZONE}=b?"),
        (("--cordon", "topology.kubernetes.io/zonee=a"), f"no node has this label, did you mean {ZONE}?"),
        (("--add-node", "like=n9"), "there is no node n9"),
        (("--lose", "node/n1", "--drain", "node/n1"), "lose and drain contradict each other: both name n1"),
        (("--lose", "node/n1", "--cordon", f"{ZONE}=a"), "lose and cordon contradict each other: both name n1"),
        (("--drain", "node/n1", "--replicas", "3"), "use --cordon or --lose"),
    ],
)
def test_bad_names_and_contradictions_are_refused(words, message, asked):
    result = asked(*words, objects=NODES)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


class TestGate:
    """With -f, the consequences of what is supposed decide the exit code too, and what was pending before does not."""

    NEW = pod("new", "", owner=None, cpu="0")
    NARROW = (node("n1", "a"), node("n2", "b", cpu="1"))

    @pytest.fixture
    def gated(self, asked, tmp_path):
        def ask(*words, objects, **options):
            (tmp_path / "new.json").write_text(json.dumps(self.NEW))
            return asked(*words, "-f", tmp_path / "new.json", objects=objects, **options)

        return ask

    @pytest.mark.parametrize("event", ["--drain", "--lose"])
    def test_a_pod_that_lost_its_node_and_fits_nowhere_counts(self, event, gated):
        objects = [*self.NARROW, pod("web-1", "n1", cpu="3")]
        result = gated(event, "node/n1", objects=objects)
        assert items(result)["web-1"]["target"] == ""
        assert items(result)["web-1"]["ofChange"] is True
        assert result.exit_code == 1
        assert gated(event, "node/n1", objects=[*NODES, pod("web-1", "n1", cpu="3")]).exit_code == 0

    @pytest.mark.parametrize("event", ["--drain", "--lose", "--cordon"])
    def test_a_pod_that_would_get_the_node_otherwise_counts(self, event, gated):
        objects = [*self.NARROW, pod("web-1", "", cpu="3")]
        assert gated(objects=objects).exit_code == 0
        result = gated(event, "node/n1", objects=objects)
        assert (items(result)["web-1"]["target"], items(result)["web-1"]["ofChange"]) == ("", True)
        assert result.exit_code == 1

    @pytest.mark.parametrize("event", ["--drain", "--lose", "--cordon"])
    def test_a_pod_that_fits_nowhere_anyway_does_not_count(self, event, gated):
        result = gated(event, "node/n1", objects=[*self.NARROW, pod("web-1", "", cpu="30")])
        assert (items(result)["web-1"]["ofChange"], result.exit_code) == (False, 0)

    def test_a_pod_that_a_displaced_pod_preempts_counts(self, gated):
        objects = [*self.NARROW, pod("high", "n1", priority=9), pod("low", "n2", ("ReplicaSet", "low"))]
        result = gated("--drain", "node/n1", objects=objects)
        assert (items(result)["high"]["target"], items(result)["low"]["target"]) == ("n2", "")
        assert (items(result)["low"]["ofChange"], result.exit_code) == (True, 1)

    def test_a_pod_that_blocks_a_drain_counts(self, gated):
        objects = [*NODES, pod("web-1", "n1"), budget("web", "web", maxUnavailable=0)]
        assert gated("--drain", "node/n1", objects=objects).exit_code == 1

    def test_displaced_pods_outside_the_namespace_are_placed_and_count(self, gated):
        other = pod("web-1", "n1", cpu="3")
        other["metadata"]["namespace"] = "other"
        for event in ("--drain", "--lose"):
            result = gated(event, "node/n1", "-n", "shop", objects=[*self.NARROW, other])
            assert (items(result)["web-1"]["target"], result.exit_code) == ("", 1)


def test_explain_says_that_a_pod_stays_because_another_one_blocks_the_drain(asked):
    objects = [*NODES, pod("web-1", "n1"), pod("alone", "n1", owner=None)]
    result = asked("pod/web-1", "--drain", "node/n1", objects=objects, command="explain", output="text")
    assert "shop/web-1 stays on n1, which cannot be drained: shop/alone: no controller" in result.stdout
    assert result.exit_code == 1


def test_explain_of_a_controller_prefers_the_pod_that_stays_to_one_that_moves(asked):
    objects = [*NODES, pod("web-abcde", "n1"), pod("web-fghij", "n2"), pod("alone", "n1", owner=None)]
    words = ("rs/web", "--drain", "node/n1", "--drain", "node/n2")
    result = asked(*words, objects=objects, command="explain", output="text")
    assert "shop/web-abcde stays on n1, which cannot be drained" in result.stdout
    assert result.exit_code == 1
