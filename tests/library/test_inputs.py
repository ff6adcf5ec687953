"""What users hand to the library: odd arguments, objects that change later, files that are gone later."""

import collections
import datetime as dt
import io
import json
import pathlib
import shutil
import types

import msgspec
import pytest
import yaml

import bayplan

ROOT = pathlib.Path(__file__).parents[2]
FIRST, STUCK, FLEET = (ROOT / "examples" / name for name in ("01-first-pod", "18-stuck-rollout", "10-fleet-idc-first"))
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
}


def pod(name="web", namespace="shop", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {}), **metadata},
        "spec": {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }


def documents(path):
    return [one for one in yaml.safe_load_all(path.read_text(encoding="utf-8")) if one]


def document(answer):
    return json.loads(msgspec.json.encode(answer.to_dict()))


def small():
    return bayplan.Cluster.from_objects([NODE])


@pytest.mark.parametrize("change", [
    pod(),
    [pod()],
    (pod() for _ in range(1)),
    yaml.safe_load_all(yaml.safe_dump_all([None, pod(), None])),  # empty documents, as between two ---
    types.MappingProxyType(pod()),
    collections.OrderedDict(pod()),
    {**pod(), "metadata": types.MappingProxyType(pod()["metadata"])},
    pod(creationTimestamp=dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),  # PyYAML makes one of a time
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_objects_come_in_many_forms(change):
    plan = small().apply(change).place()
    assert [(one.name, one.node) for one in plan] == [("web", "n1")]
    assert plan.ok


def test_paths_come_in_many_forms(tmp_path):
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod()))
    for change in (file, str(file), [file], [str(file)], (path for path in [file]), [[file]][0]):
        assert small().apply(change).place().pods["shop/web"].node == "n1"
    assert set(small().apply([file, pod("other")]).place().pods) == {"shop/web", "shop/other"}
    assert bayplan.load(FIRST, change=file).pods.keys() >= {"shop/web"}


@pytest.mark.parametrize("ask, message", [
    (lambda: small().apply([]), "nothing to apply"),
    (lambda: small().apply(x for x in ()), "nothing to apply"),
    (lambda: bayplan.Cluster.from_objects([]), "nothing to read"),
    (lambda: bayplan.Cluster.from_objects([None]), "nothing to read"),
    (bayplan.load, "nothing to read"),
    (lambda: small().apply(b"x"), "expected a path, an object as a dictionary, or several of them, got bytes"),
    (lambda: small().apply([b"x"]), "expected a path, an object as a dictionary, or several of them, got bytes"),
    (lambda: small().apply(7), "expected a path, an object as a dictionary, or several of them, got int"),
    (lambda: small().apply(""), "expected a path, an object as a dictionary, or several of them, got an empty path"),
    (lambda: small().apply("apiVersion: v1\nkind: Pod\n"), "expected a path, an object as a dictionary, or several of them, got text of several lines: parse it"),
    (lambda: small().apply(io.BytesIO(b"{}")), "expected a path, an object as a dictionary, or several of them, got BytesIO: give its path"),
    (lambda: small().apply({**pod(), "spec": object()}), "Pod web cannot be written as JSON: it has a value of the type object"),
    (lambda: small().lose(), "lose: give at least one"),
    (lambda: small().drain(*[]), "drain: give at least one"),
    (lambda: small().cordon(), "cordon: give at least one"),
    (lambda: small().lose(7), "lose: expected text, got 7"),
    (lambda: small().add_node("like=n1"), "add_node like=n1: give the name of the node with `like`"),
    (lambda: small().only(selector=7), "selector: expected text, got 7"),
    (lambda: small().only(namespace="a").only(namespace="b"), "namespace: it is only about a already"),
    (lambda: small().explain(7), "workload: expected KIND/NAME, got 7"),
    (lambda: small().place(rollouts="fnal"), "rollouts: expected steps or final, got 'fnal'"),
    (lambda: small().place().passes(gate="al"), "gate: expected change or all, got 'al'"),
    (lambda: small().how_many_more(0), "limit: expected a whole number of at least 1, got 0"),
    (lambda: small().how_many_more(True), "limit: expected a whole number of at least 1, got True"),
    (lambda: small().rebalance(max_moves=-1), "max_moves: expected a whole number of at least 1, got -1"),
    (lambda: small().violations(affinity_grace="5m"), "affinity_grace: expected a time in seconds, got '5m'"),
    (lambda: small().snapshot(hash_key="key"), "hash_key: expected some bytes, got str"),
    (lambda: small().only(namespace="a").snapshot(), "snapshot is about all of what runs"),
    (lambda: small().only(namespace="a").audit(), "audit is about all of what runs"),
    (lambda: small().lose("node/n1").audit(), "audit is about what runs"),
    (lambda: small().quota(charge="x"), "charge: expected largest or average, got 'x'"),
    (lambda: bayplan.Fleet.from_manifests(FLEET / "fleet").scale(), "scale: give at least one"),
    (lambda: bayplan.Fleet.from_manifests(FLEET / "fleet").scale(-1), "scale: expected a whole number of at least 0, got -1"),
    (lambda: bayplan.Cluster.from_objects([NODE], settings=bayplan.Settings(hpa="most")).place(), "hpa: expected min, current or max, got 'most'"),
    (lambda: bayplan.Cluster.from_objects([NODE], settings=bayplan.Settings(custom_kinds=[{"kind": 7}])).place(), "custom_kinds[0]"),
    (lambda: bayplan.validate(NODE).passes(fail_on="errors"), "fail_on: expected error or warning, got 'errors'"),
    (lambda: bayplan.validate(NODE, guard={"restrict": "x"}), "guard.restrict"),
    (lambda: bayplan.AuditSettings(fail_on="x"), "fail_on: expected fail or warning"),
    (lambda: bayplan.AuditSettings(reveal_inventory=True), "reveal_inventory: it is about the names of an inventory"),
    (lambda: bayplan.AuditSettings(hosting_namespaces="x"), "hosting_namespaces: they are namespaces of the hosting"),
    (lambda: small().audit(bayplan.AuditSettings(profile="x")), "profile: expected scs-0214-v2, "),
    (lambda: small().audit(bayplan.AuditSettings(require=["x"])), "require: there is no check x"),
    (lambda: small().audit(bayplan.AuditSettings(label_keys={"zoen": "x"})), "label_keys: expected LEVEL=KEY"),
    (lambda: small().audit(bayplan.AuditSettings(quorum_workloads="(")), "quorum_workloads: not a regular expression"),
    (lambda: bayplan.AuditReport([]), "audits: give at least one"),
    (lambda: bayplan.AuditReport([small().audit(), small().audit()]), "audits: each of several clusters needs a name"),
    (lambda: bayplan.decide("pod", {}), "kind: expected pods, preemption, fleet or admission, got 'pod'"),
    (lambda: bayplan.decide("pods", []), "question: expected a dictionary, got list"),
    (lambda: bayplan.explain_decision("x", 0), "number: expected a whole number of at least 1, got 0"),
])  # fmt: skip
def test_what_cannot_be_meant_is_an_error_of_the_argument(ask, message):
    with pytest.raises(bayplan.ArgumentError) as raised:
        ask()
    assert str(raised.value).startswith(message)


def test_an_object_that_contains_itself_is_an_error():
    endless = pod()
    endless["spec"]["again"] = endless
    with pytest.raises(bayplan.ArgumentError, match="Pod web cannot be written as JSON"):
        small().apply(endless)


@pytest.mark.parametrize("given, fault", [
    ({"metadata": {"name": "x"}}, "kind"),
    ([["x"]], "expected a path, an object"),
    ({**pod(), "spec": {"containers": "c"}}, "spec.containers"),
    ([pod(), pod()], "Pod shop/web"),
])  # fmt: skip
def test_an_object_that_cannot_be_used_is_an_error_of_the_input(given, fault):
    with pytest.raises(bayplan.BayplanError, match=fault.replace(".", r"\.")):
        small().apply(given).place()


def test_a_single_name_is_not_a_sequence_of_letters(tmp_path):
    valid = pod()
    (tmp_path / "pod.json").write_text(json.dumps(valid))
    assert bayplan.validate(tmp_path, ignore=str(tmp_path / "x*")).ok
    cluster = bayplan.Cluster.from_manifests(ROOT / "examples/16-broken-while-running/cluster.yaml")
    assert document(cluster.violations(grant="shop")) == document(cluster.violations(grant=["shop"]))
    assert bayplan.AuditSettings(require="fd-room-zone").require == ("fd-room-zone",)


def test_what_was_handed_over_may_change_afterwards():
    web, keys, switches = pod(), ["app"], {"daemonNamespaces": ["a"]}
    settings = bayplan.Settings(affinity_label_keys=keys, switches=switches)
    cluster = bayplan.Cluster.from_objects([NODE], settings=settings).apply(web)
    web["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    keys.append("other")
    switches["daemonNamespaces"].append("b")
    switches["x"] = True
    assert cluster.place().ok
    assert settings.affinity_label_keys == ("app",)
    assert settings.switches == {"daemonNamespaces": ["a"]}


def test_what_is_handed_out_may_be_changed():
    plan = bayplan.Cluster.from_manifests(FIRST).place(explain=True)
    before = document(plan)
    wrecked = plan.to_dict()
    for item in wrecked["items"]:
        item.clear()
    wrecked.clear()
    explanation = plan.pods["shop/web-4"].explain()
    explained = document(explanation)
    for value in explanation.to_dict().values():
        if isinstance(value, list):
            value.clear()
    assert document(plan) == before
    assert document(explanation) == explained
    cluster = bayplan.Cluster.from_manifests(FIRST)
    cluster.nodes["node-a1"].clear()
    assert cluster.nodes["node-a1"]["topology.kubernetes.io/zone"] == "zone-a"


@pytest.mark.parametrize("example, change, workload, opened", [
    (STUCK, "web.yaml", "deploy/web", lambda folder: bayplan.Cluster.from_files(folder / "state.yaml").apply(folder / "web.yaml")),
    (FIRST, "cluster.yaml", "sts/web", bayplan.Cluster.from_manifests),
    (FLEET, "shop-3.yaml", "deployment/shop", lambda folder: bayplan.Fleet.from_manifests(folder / "fleet", folder / "shop-3.yaml")),
], ids=["rollout", "pods", "fleet"])  # fmt: skip
def test_a_state_is_read_once_whatever_becomes_of_its_files(example, change, workload, opened, tmp_path):
    folder = tmp_path / "example"
    shutil.copytree(example, folder)
    state = opened(folder)
    before = document(state.place())
    explanation = state.explain(workload)
    (folder / change).write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n", encoding="utf-8")
    assert document(state.place()) == before
    shutil.rmtree(folder)
    assert document(state.place()) == before
    assert document(state.explain(workload)) == document(explanation)
    if isinstance(state, bayplan.Fleet):
        name = next(iter(state.clusters))
        assert document(state.recover(f"cluster/{name}").place()) is not None  # read again with what is supposed


def test_a_file_that_was_missing_can_be_read_later(tmp_path):
    cluster = small().apply(tmp_path / "pod.json")
    with pytest.raises(bayplan.InputError, match="no such file"):
        cluster.place()
    (tmp_path / "pod.json").write_text(json.dumps(pod()))
    assert cluster.place().ok


def test_only_what_is_applied_recursively_is_read_recursively(tmp_path):
    for name in ("state", "change"):
        (tmp_path / name / "below").mkdir(parents=True)
    (tmp_path / "state" / "node.json").write_text(json.dumps(NODE))
    more = {**NODE, "metadata": {"name": "n2"}}
    (tmp_path / "state" / "below" / "node.json").write_text(json.dumps(more))
    (tmp_path / "change" / "below" / "pod.json").write_text(json.dumps(pod()))
    flat = bayplan.Cluster.from_files(tmp_path / "state").apply(tmp_path / "change", recursive=True)
    assert set(flat.nodes) == {"n1"}
    assert flat.place().ok
    assert set(bayplan.Cluster.from_files(tmp_path / "state", recursive=True).nodes) == {"n1", "n2"}


def test_each_part_has_its_own_namespace_for_objects_that_name_none():
    running = {**pod("running", None), "spec": {**pod()["spec"], "nodeName": "n1"}}
    state = bayplan.Cluster.from_objects([NODE, running], namespace="ops")
    assert set(state.pods) == {"ops/running"}
    both = state.apply(pod("new", None), namespace="shop")
    assert both.pods == {"ops/running": "n1", "shop/new": ""}
    assert state.apply(pod("new", None)).pods.keys() == {"ops/running", "ops/new"}
    with pytest.raises(bayplan.ArgumentError, match="namespace: the change that is applied already is in shop"):
        both.apply(pod("third", None), namespace="other")


def test_scopes_narrow_down():
    cluster = bayplan.Cluster.from_objects([NODE]).apply(
        [
            pod("a", labels={"x": "1", "y": "1"}),
            pod("b", labels={"x": "1"}),
            pod("c", "ops", labels={"x": "1", "y": "1"}),
        ]
    )
    assert cluster.only(selector="x=1").only(selector="y=1").only(namespace="shop").pods.keys() == {"shop/a"}
    assert cluster.only(namespace="shop").only(selector="").pods.keys() == {"shop/a", "shop/b"}
    assert cluster.pods.keys() == {"shop/a", "shop/b", "ops/c"}


def test_a_large_dump_is_read_as_a_small_one_is(tmp_path):
    nodes = [{**NODE, "metadata": {"name": f"n{n}"}} for n in range(20)]
    running = [{**pod(f"p{n}"), "spec": {**pod()["spec"], "nodeName": f"n{n % 20}"}} for n in range(40)]
    padded = [{**one, "metadata": {**one["metadata"], "annotations": {"note": "x" * 40_000}}} for one in running]
    text = json.dumps(
        {"apiVersion": "v1", "items": [*nodes, *padded], "kind": "List", "metadata": {"resourceVersion": ""}}, indent=4
    )
    (tmp_path / "dump.json").write_text(text)
    assert len(text) > 1 << 20
    large = bayplan.Cluster.from_files(tmp_path / "dump.json").apply(pod())
    expected = document(bayplan.Cluster.from_objects([*nodes, *running]).apply(pod()).place())
    assert document(large.place()) == expected
    assert document(large.lose("node/n1").place()) == document(large.lose("node/n1").place())
    assert document(large.place()) == expected


def test_manifests_of_a_raw_list_say_what_they_are(tmp_path):
    """As kubectl get --raw writes it: the items have neither apiVersion nor kind."""
    bare = {key: value for key, value in pod().items() if key not in ("apiVersion", "kind")}
    bare["spec"] = {**bare["spec"], "nodeSelector": {"no": "such"}}
    pods = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": [bare]}
    (tmp_path / "pods.json").write_text(json.dumps(pods))
    (tmp_path / "node.json").write_text(json.dumps(NODE))
    explanation = bayplan.Cluster.from_files(tmp_path).explain("shop/web")
    (fixed,) = explanation.apply_fix(1).manifests
    assert (fixed["apiVersion"], fixed["kind"]) == ("v1", "Pod")
    assert explanation.to_dict()["fixes"][0]["patches"][0]["object"]["kind"] == "Pod"


def test_a_server_that_cannot_be_reached_is_an_error_of_the_cluster():
    live = bayplan.Cluster.from_context(
        server="https://127.0.0.1:9", request_timeout=1.0, insecure_skip_tls_verify=True
    )
    with pytest.raises(bayplan.ClusterError, match=r"127\.0\.0\.1:9"):
        live.place()
