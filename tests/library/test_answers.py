"""The library answers as the command line does, again and again, and from several threads."""

import json
import pathlib
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
import yaml
from click.testing import CliRunner

import bayplan
from bayplan.cli import main

ROOT = pathlib.Path(__file__).parents[2]
FIRST, DUMP, STUCK = "examples/01-first-pod", "examples/08-dump-of-a-cluster", "examples/18-stuck-rollout"
FLEET, BROKEN, QUOTA = "examples/10-fleet-idc-first", "examples/16-broken-while-running", "examples/15-quota"


@pytest.fixture(autouse=True)
def in_root(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")


def command(*words):
    """The exit code of a command, and its document."""
    result = CliRunner().invoke(main.cli, [*words, "-o", "json"], prog_name="bayplan")
    return result.exit_code, json.loads(result.stdout)


def document(answer):
    return json.loads(msgspec.json.encode(answer.to_dict()))


def first():
    return bayplan.Cluster.from_manifests(FIRST)


def stuck():
    return bayplan.Cluster.from_files(f"{STUCK}/state.yaml").apply(f"{STUCK}/web.yaml")


def fleet():
    return bayplan.Fleet.from_manifests(f"{FLEET}/fleet", f"{FLEET}/shop-3.yaml")


STUCK_WORDS = ["--state", f"{STUCK}/state.yaml", "-f", f"{STUCK}/web.yaml"]
FLEET_WORDS = ["-f", f"{FLEET}/fleet", "-f", f"{FLEET}/shop-3.yaml"]
AS_COMMANDS = [
    ("place", ["-f", FIRST], lambda: first().place()),
    ("place", ["-f", FIRST, "--explain"], lambda: first().place(explain=True)),
    ("place", ["-f", FIRST, "--no-preemption"], lambda: first().place(preempt=False)),
    ("place", ["-f", FIRST, "-l", "app=web"], lambda: first().only(selector="app=web").place()),
    ("place", ["-f", FIRST, "--replicas", "max"], lambda: first().how_many_more()),
    ("place", ["-f", FIRST, "--replicas", "2"], lambda: first().how_many_more(2)),
    ("place", ["--state", FIRST, "--lose", "node/node-a1"], lambda: bayplan.Cluster.from_files(FIRST).lose("node/node-a1").place()),
    ("place", ["--state", FIRST, "--drain", "node/node-a1"], lambda: bayplan.Cluster.from_files(FIRST).drain("node/node-a1").place()),
    ("place", ["--state", FIRST, "--cordon", "node/node-b1"], lambda: bayplan.Cluster.from_files(FIRST).cordon("node/node-b1").place()),
    ("place", ["--state", FIRST, "--add-node", "like=node-a1"], lambda: bayplan.Cluster.from_files(FIRST).add_node(like="node-a1").place()),
    ("place", STUCK_WORDS, lambda: stuck().place()),
    ("place", [*STUCK_WORDS, "--rollout", "final"], lambda: stuck().place(rollouts="final")),
    ("place", FLEET_WORDS, lambda: fleet().place()),
    ("place", [*FLEET_WORDS, "--scale", "3,30,3"], lambda: fleet().scale(3, 30, 3)),
    ("place", [*FLEET_WORDS, "--replicas", "max"], lambda: fleet().scale_to_most()),
    ("place", [*FLEET_WORDS, "--lose", "cluster/idc-1"], lambda: fleet().lose("cluster/idc-1").place()),
    ("explain", ["pod/web-4", "-f", FIRST], lambda: first().explain("pod/web-4")),
    ("explain", ["sts/web", "-f", FIRST, "--alone"], lambda: first().explain("sts/web", alone=True)),
    ("explain", ["deploy/web", *STUCK_WORDS], lambda: stuck().explain("deploy/web")),
    ("explain", ["deployment/shop", *FLEET_WORDS], lambda: fleet().explain("deployment/shop")),
    ("violations", ["-f", f"{BROKEN}/cluster.yaml"], lambda: bayplan.Cluster.from_manifests(f"{BROKEN}/cluster.yaml").violations()),
    ("violations", ["-f", f"{BROKEN}/fleet.yaml"], lambda: bayplan.Fleet.from_manifests(f"{BROKEN}/fleet.yaml").violations()),
    ("rebalance", ["-f", "examples/17-after-a-node-came-back"], lambda: bayplan.Cluster.from_manifests("examples/17-after-a-node-came-back").rebalance()),
    ("quota", ["-f", QUOTA], lambda: bayplan.Cluster.from_manifests(QUOTA).quota()),
    ("quota", ["-f", QUOTA, "--charge", "average"], lambda: bayplan.Cluster.from_manifests(QUOTA).quota(charge="average")),
    ("audit", ["-f", "examples/12-audit/nodes.yaml"], lambda: bayplan.Cluster.from_manifests("examples/12-audit/nodes.yaml").audit()),
    ("audit", ["-f", "examples/13-losses/cluster.yaml", "--repair", "--ha"], lambda: bayplan.Cluster.from_manifests("examples/13-losses/cluster.yaml").audit(bayplan.AuditSettings(profile="ha"), repair=True)),
    ("audit", ["--state", "examples/13-losses/cluster.yaml", "--lose", "zone", "--no-reschedule"], lambda: bayplan.Cluster.from_files("examples/13-losses/cluster.yaml").audit(bayplan.AuditSettings(lose="zone", reschedule=False))),
    ("explain-rule", [], bayplan.explain_rule),
    ("explain-rule", ["PodTopologySpread"], lambda: bayplan.explain_rule("PodTopologySpread")),
    ("validate", ["-f", "examples/06-gate-in-ci", "-R"], lambda: bayplan.validate("examples/06-gate-in-ci", recursive=True)),
]  # fmt: skip


@pytest.mark.parametrize("name, words, ask", AS_COMMANDS, ids=lambda value: " ".join(value) if isinstance(value, list) else None)  # fmt: skip
def test_an_answer_is_that_of_the_command(name, words, ask):
    answer = ask()
    code, expected = command(name, *words)
    assert document(answer) == expected
    is_yes = answer.fits if isinstance(answer, bayplan.Explanation) else getattr(answer, "ok", True)
    assert code == (0 if is_yes else 1)


def test_a_snapshot_is_that_of_the_command():
    text = CliRunner().invoke(main.cli, ["snapshot", "-f", FIRST], prog_name="bayplan").stdout
    assert first().snapshot().text == text


@pytest.mark.parametrize("ask", [first, stuck, fleet])
def test_a_state_is_as_it_was_after_every_answer(ask):
    state = ask()
    before = document(state.place())
    workload = {first: "sts/web", stuck: "deploy/web", fleet: "deployment/shop"}[ask]
    explained = document(state.explain(workload))
    further = [state.snapshot, state.violations, state.rebalance, lambda: state.place(explain=True)]
    if ask is first:
        further += [
            state.how_many_more,
            state.quota,
            state.lose("node/node-a1").place,
            state.cordon("node/node-b1").place,
        ]
    for question in further:
        question()
        assert document(state.place()) == before
        assert document(state.explain(workload)) == explained


def test_an_explanation_is_about_the_end_of_its_plan_whatever_was_asked_since():
    cluster = first()
    plan, lost = cluster.place(), cluster.lose("node/node-a1").place()
    expected = {key: [document(pod.explain()) for pod in (one.pods[key],)] for one in (plan,) for key in plan.pods}
    lost.pods["shop/web-3"].explain()
    assert document(plan.pods["shop/web-4"].explain()) == expected["shop/web-4"][0]
    assert "0/4 nodes" in lost.pods["shop/web-4"].explain().message
    assert "0/5 nodes" in plan.pods["shop/web-4"].explain().message


def test_threads_share_a_state():
    cluster = first()
    losses = [f"node/node-{name}" for name in ("a1", "b1", "b2", "c1", "c2")] * 3
    expected = {loss: document(first().lose(loss).place()) for loss in set(losses)}

    def ask(loss):
        plan = cluster.lose(loss).place()
        return document(plan), [document(pod.explain()) for pod in plan.unschedulable]

    with ThreadPoolExecutor(5) as executor:
        answers = list(executor.map(ask, losses))
    assert [plan for plan, _ in answers] == [expected[loss] for loss in losses]
    for loss, (_, explained) in zip(losses, answers, strict=True):
        assert explained == answers[losses.index(loss)][1]


def test_objects_are_read_as_files_are():
    state = [one for one in yaml.safe_load_all(pathlib.Path(f"{STUCK}/state.yaml").read_text(encoding="utf-8")) if one]
    (web,) = yaml.safe_load_all(pathlib.Path(f"{STUCK}/web.yaml").read_text(encoding="utf-8"))
    for change in (web, [web], pathlib.Path(f"{STUCK}/web.yaml")):
        assert document(bayplan.Cluster.from_objects(state).apply(change).place()) == document(stuck().place())
    assert bayplan.validate(web).ok


def test_a_node_can_be_an_object():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "more"}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}}  # fmt: skip
    assert first().add_node(node).place().ok


def test_what_an_input_is_decides_what_is_loaded():
    assert isinstance(bayplan.load(FIRST), bayplan.Cluster)
    assert isinstance(bayplan.load(f"{FLEET}/fleet", change=[f"{FLEET}/shop-3.yaml"]), bayplan.Fleet)
    with pytest.raises(bayplan.InputError, match="use Fleet"):
        bayplan.Cluster.from_files(f"{FLEET}/fleet").place()
    with pytest.raises(bayplan.InputError, match="use Cluster"):
        bayplan.Fleet.from_files(FIRST).place()


@pytest.mark.parametrize("ask, message", [
    (bayplan.Cluster.from_files, "nothing to read"),
    (lambda: bayplan.Cluster.from_files(FIRST).apply(), "nothing to apply"),
    (lambda: bayplan.Cluster.from_files(7), "expected a path, an object as a dictionary, or several of them, got int"),
    (lambda: first().only(selector="app="  "=="), "selector: expected requirements"),
    (lambda: first().lose("node/x").place(), "lose node/x: there is no such node"),
    (lambda: first().add_node(), "add_node: give a file or an object, or `like`"),
    (lambda: first().add_node(like="x").place(), "add_node like=x: there is no node x"),
    (lambda: first().lose("node/node-a1").violations(), "violations is about what runs"),
    (lambda: first().place().to_text("xml"), "output: expected one of table, wide, json"),
    (lambda: first().explain("kind/x"), "workload: expected KIND/NAME with a kind of"),
    (lambda: bayplan.Cluster.from_manifests(FIRST, settings=bayplan.Settings(switches={"x": True})).place(), "switches: unknown switch 'x'"),
    (lambda: bayplan.Cluster.from_manifests(FIRST, settings=bayplan.Settings(kubernetes_version="1.2")).place(), "kubernetes_version: expected 1.36 or 1.37"),
    (lambda: fleet().taint("x").place(), "taint: expected cluster/NAME:KEY"),
    (lambda: fleet().lose("cluster/x").place(), "lose cluster/x: there is no such cluster"),
    (bayplan.validate, "nothing to validate"),
    (lambda: bayplan.validate(FIRST, ignore=["x"]), "ignore: 'x' is neither a file or directory nor the id of a finding"),
])  # fmt: skip
def test_an_argument_that_cannot_be_used_is_named(ask, message):
    with pytest.raises(bayplan.ArgumentError) as raised:
        ask()
    assert str(raised.value).startswith(message)
    assert isinstance(raised.value, bayplan.BayplanError)
    assert isinstance(raised.value, ValueError)


def test_bad_input_has_all_its_faults():
    with pytest.raises(bayplan.InputError) as raised:
        bayplan.Cluster.from_manifests("examples/06-gate-in-ci/invalid").place()
    (fault,) = raised.value.faults
    assert (fault.line, fault.subject) == (22, "Deployment shop/web")
    with pytest.raises(bayplan.InputError, match="no such file"):
        bayplan.Cluster.from_files("missing.json").place()


def test_values_do_not_change():
    plan = first().place()
    with pytest.raises(AttributeError):
        plan.notes = ()
    with pytest.raises(TypeError):
        plan.pods["shop/web-1"] = None
    with pytest.raises(AttributeError):
        plan.pods["shop/web-1"].node = "x"


def test_representations_are_short():
    cluster = first()
    plan = cluster.place()
    assert repr(cluster) == "<Cluster: examples/01-first-pod>"
    assert repr(stuck()) == f"<Cluster: {STUCK}/state.yaml with {STUCK}/web.yaml applied>"
    assert repr(cluster.lose("node/node-a1").add_node(like="node-b1")) == "<Cluster: examples/01-first-pod; lose node/node-a1; add node like=node-b1>"  # fmt: skip
    assert repr(plan) == "<Plan: 3 of 4 placed; not ok>"
    assert repr(plan.pods["shop/web-1"]) == "<PlannedPod: shop/web-1 on node-a1>"
    assert repr(cluster.explain("shop/web-1")) == "<Explanation: shop/web-1 is placed on node-a1>"
    assert str(plan) == plan.to_text("table").rstrip()


def test_a_frame_has_a_row_for_each_item(monkeypatch):
    class Frames:
        class DataFrame:
            @staticmethod
            def from_records(rows):
                return rows

    monkeypatch.setitem(__import__("sys").modules, "pandas", Frames)
    plan = first().place()
    assert [row["name"] for row in plan.to_frame()] == ["web-1", "web-2", "web-3", "web-4"]
    assert {row["rejectedBy"] for row in plan.pods["shop/web-4"].explain().to_frame()} == {"pod-affinity", "resources", "taint"}  # fmt: skip
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        plan.to_frame()


def test_frames_of_pandas():
    import pandas as pd

    plan = first().place()
    frame = plan.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.set_index("name")["target"].to_dict() == {one.name: one.node for one in plan}
    answers = (
        plan.pods["shop/web-4"].explain(),
        first().how_many_more(),
        fleet().place(),
        fleet().scale(3, 30),
        bayplan.validate("examples/06-gate-in-ci/invalid"),
        bayplan.Cluster.from_manifests(f"{BROKEN}/cluster.yaml").violations(),
        bayplan.Cluster.from_manifests(QUOTA).quota(),
        bayplan.Cluster.from_manifests("examples/12-audit/nodes.yaml").audit(),
    )
    for answer in answers:
        assert not answer.to_frame().empty, answer


def test_progress_is_reported():
    lines = []
    first().reporting(lines.append).place()
    assert "placing: 4 of 4" in lines


def test_nodes_and_pods_of_a_cluster():
    cluster = bayplan.Cluster.from_files(FIRST)
    assert cluster.nodes["node-a1"]["topology.kubernetes.io/zone"] == "zone-a"
    assert cluster.pods["shop/web-1"] == ""
    assert cluster.pods["shop/cache-1"] == "node-a1"
    assert set(cluster.only(selector="app=web").pods) == {f"shop/web-{n}" for n in range(1, 5)}
