"""The answer: the same for the same seed, in every format, and two side by side."""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

import bayplan
import document_schemas

from .clusters import ZONE, autoscaler, deployment, node, simulate, three_zones, workload

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "23-lose-a-zone"
CLUSTER, TIMELINE = EXAMPLE / "cluster.yaml", EXAMPLE / "timeline.yaml"
FAILS = EXAMPLE / "without-a-spare-zone.yaml"


def bayplan_run(*words, cwd=ROOT, **environment):
    command = [sys.executable, "-m", "bayplan", *map(str, words)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BAYPLAN_")}
    environment = kept | {"PYTHONPATH": str(ROOT / "src")} | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


@pytest.mark.parametrize("output", ["json", "table", "html", "junit"])
def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed_is(output, tmp_path):
    timeline = tmp_path / "t.yaml"
    failures = "failures:\n- {rate: 60/d, lasts: [5m, 1h]}\nseed: x\n"
    timeline.write_text(TIMELINE.read_text() + failures)
    words = ("simulate", "-f", CLUSTER, timeline, "-o", output, "--events", "all", "--at", "3h", "--exit-zero")
    first, second = (bayplan_run(*words, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    assert len(first.stdout) > 1000


def test_another_seed_gives_another_course():
    objects = [*three_zones(3), deployment(replicas=9)]
    failures = [{"rate": "20/d", "lasts": "1h"}]
    runs = [simulate(objects, [], lasts="2d", failures=failures, seed=seed) for seed in ("1", "1", "2")]
    assert runs[0].to_text("json") == runs[1].to_text("json") != runs[2].to_text("json")


@pytest.mark.parametrize("timeline, code", [(TIMELINE, 0), (FAILS, 1)])
def test_the_exit_code_is_the_answer(timeline, code):
    assert bayplan_run("simulate", "-f", CLUSTER, timeline).returncode == code
    assert bayplan_run("simulate", "-f", CLUSTER, timeline, "--exit-zero").returncode == 0


def test_bad_input_and_fleets_are_usage_errors(tmp_path):
    done = bayplan_run("simulate", "-f", CLUSTER, tmp_path / "none.yaml")
    assert (done.returncode, "none.yaml: cannot be read" in done.stderr) == (2, True)
    done = bayplan_run("simulate", "-f", "examples/10-fleet-idc-first/fleet", TIMELINE)
    assert done.returncode == 2
    assert "only clusters of nodes and pods can be simulated" in done.stderr
    assert bayplan_run("simulate", TIMELINE).returncode == 2
    done = bayplan_run("simulate", "-f", CLUSTER, TIMELINE, "--at", "soon")
    assert (done.returncode, "expected a time such as 90s" in done.stderr) == (2, True)
    done = bayplan_run("simulate", "-f", CLUSTER, TIMELINE, "--at", "7h")
    assert (done.returncode, "the timeline lasts 6h" in done.stderr) == (2, True)


def test_documents_are_valid_by_their_schemas():
    done = bayplan_run("simulate", "-f", CLUSTER, FAILS, "-o", "json", "--at", "150m", "--at", "1h")
    document = json.loads(done.stdout)
    document_schemas.check(document)
    assert [one["at"] for one in document["states"]] == [3600, 9000]
    assert document["ok"] is False
    done = bayplan_run("simulate", "-f", CLUSTER, TIMELINE, "--compare", FAILS, "-o", "json")
    document_schemas.check(json.loads(done.stdout))


def test_junit_has_a_testcase_for_each_expectation_and_a_failure_for_each_that_is_not_met():
    done = bayplan_run("simulate", "-f", CLUSTER, FAILS, "-o", "junit")
    root = ET.fromstring(done.stdout)
    cases = root.findall("./testsuite/testcase")
    assert [case.find("failure") is None for case in cases] == [False, False, True]
    assert root.attrib["failures"] == "2"
    assert "at least 4 pods ready of web" in cases[0].find("failure").attrib["message"]


def test_html_escapes_what_objects_are_called():
    run = simulate([node("a1"), deployment()], [], lasts="1m", about="<script>x</script>")
    page = run.to_text("html")
    assert "<script>" not in page
    assert "&lt;script&gt;x" in page


def test_the_answer_is_a_value():
    run = bayplan.Cluster.from_manifests(CLUSTER).simulate(FAILS, at=["150m", 3600])
    assert not run.ok
    assert [one.met for one in run] == [False, False, True]
    assert [state.at for state in run.states] == [3600, 9000]
    assert run.states[1].not_ready == ("node-a1", "node-a2")
    assert run.states[1].pending == ("shop/db-1",)
    assert run.seconds == 4 * 3600
    assert run.evictions == {"drain": 3, "taint": 4}
    assert repr(run) == "<SimulationRun: 4h simulated; 3 expectations, 2 not met>"
    with pytest.raises(TypeError):
        bool(run)


def test_a_state_can_be_asked_again_and_is_as_it_was():
    cluster = bayplan.Cluster.from_manifests(CLUSTER)
    placed = str(cluster.place())
    first = cluster.simulate(TIMELINE).to_text("json")
    assert str(cluster.place()) == placed
    assert cluster.simulate(TIMELINE).to_text("json") == first


def test_what_if_and_scopes_are_refused():
    cluster = bayplan.Cluster.from_manifests(CLUSTER)
    with pytest.raises(bayplan.ArgumentError, match="what-ifs"):
        cluster.lose("node/node-a1").simulate(TIMELINE)
    with pytest.raises(bayplan.ArgumentError, match="about all of what runs"):
        cluster.only(namespace="shop").simulate(TIMELINE)


def test_a_change_is_applied_at_the_beginning():
    state = [*three_zones(), deployment(replicas=2)]
    cluster = bayplan.Cluster.from_objects(state).apply(deployment("api", replicas=1))
    run = cluster.simulate({"steps": [{"at": "1m", "expect": {"ready": {"of": "api", "exactly": 1}}}]})
    assert run.ok
    assert ("Deployment shop/api", "Applied") in {(one.object, one.reason) for one in run.events}


def test_weights_are_compared_side_by_side(tmp_path):
    config = tmp_path / "weights.yaml"
    most = "pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles:\n- {{schedulerName: default-scheduler, {most}, plugins: {{score: {{enabled: [{{name: NodeResourcesFit, weight: 100}}]}}}}}}\n"
    )
    objects = [node("a1", cpu="8"), node("b1", "b", cpu="8"), deployment(replicas=4)]
    cluster = bayplan.Cluster.from_objects(objects)
    timeline = {"steps": [{"at": "5m", "expect": {"pods": {"of": "web", "atLeast": 1, "inEvery": "zone"}}}]}
    found = cluster.compare_simulations(timeline, config)
    assert (found.first.ok, found.second.ok, found.ok) == (True, False, False)
    assert "a: 0" in str(found) or "b: 0" in str(found)


def test_policies_are_compared_side_by_side(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(json.dumps(deployment(replicas=1)))
    cluster = bayplan.Cluster.from_objects([*three_zones(), deployment(replicas=3)])
    timeline = {"steps": [{"at": "5m", "expect": {"ready": {"of": "web", "exactly": 3}}}]}
    found = cluster.compare_simulations(timeline, policy)
    assert (found.first.ok, found.second.ok) == (True, False)


def test_routine_events_are_counted_and_shown_only_on_demand():
    run = simulate([*three_zones(), deployment()], [], lasts="1m")
    assert not run.events
    assert run.to_dict()["eventCounts"] == {"Created": 3, "Scheduled": 3, "Started": 3}
    everything = simulate([*three_zones(), deployment()], [], lasts="1m", all_events=True)
    assert len(everything.events) == 9


def test_repeated_steps_are_repeated_until_their_end():
    steps = [
        {"at": "10m", "every": "10m", "until": "30m", "restart": "web"},
        {"at": "10m", "every": "1h", "expect": {"pending": 0}},
    ]
    run = simulate([*three_zones(), deployment(replicas=2)], steps, lasts="3h")
    assert [one.at for one in run.events if one.reason == "RolloutStarted"] == [600, 1200, 1800]
    assert [one.at for one in run] == [600, 4200, 7800]


def test_an_expectation_with_an_end_fails_at_the_first_moment_at_which_it_is_not_met():
    steps = [
        {"at": "5m", "until": "1h", "expect": {"ready": {"of": "web", "atLeast": 3}}},
        {"at": "20m", "scale": {"web": 2}},
        {"at": "30m", "scale": {"web": 3}},
    ]
    (verdict,) = simulate([*three_zones(), deployment(replicas=3)], steps)
    assert (verdict.at, verdict.met, verdict.found) == (1200, False, "2")


def test_notes_say_what_is_not_simulated():
    cron = {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly", "namespace": "shop"},
        "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}},
    }  # fmt: skip
    foreign = deployment("foreign", 1, pod={"schedulerName": "other"})
    run = simulate([*three_zones(), cron, foreign], [], lasts="5m")
    assert any("CronJob shop/nightly is not run" in note for note in run.notes)
    assert any("it is for the scheduler other" in note for note in run.notes)
    assert run.pending_pod_minutes == 5.0


def test_an_autoscaler_without_a_load_keeps_to_its_bounds_only():
    run = simulate([*three_zones(), deployment(replicas=1), autoscaler(least=2)], [], lasts="5m", at=["5m"])
    assert sum(map(len, run.states[0].pods.values())) == 2


def test_volumes_are_provisioned_for_claims_and_keep_their_pods_in_their_zone():
    storage = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "disk.example", "volumeBindingMode": "WaitForFirstConsumer",
    }  # fmt: skip
    claim = {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    database = workload("StatefulSet", "db", 3, volumeClaimTemplates=[claim])
    steps = [
        {"at": "5m", "expect": {"pods": {"of": "db", "exactly": 3}}},
        {"at": "10m", "drain": f"{ZONE}=a"},
        {"at": "20m", "expect": {"pending": {"of": "db", "exactly": 1}}},
        {"at": "21m", "uncordon": f"{ZONE}=a"},
        {"at": "25m", "expect": {"pending": 0}},
    ]
    apart = [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "db"}},
        }
    ]
    database["spec"]["template"]["spec"]["topologySpreadConstraints"] = apart
    run = simulate([*three_zones(2), storage, database], steps)
    assert run.ok, str(run)
    assert any("taken to be usable in the whole zone" in note for note in run.notes)


def test_an_internal_error_of_the_scheduler_is_said_and_not_printed(monkeypatch, capfd):
    from bayplan.queueing import deciding

    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(deciding, "choose", broken)
    run = simulate([*three_zones(), deployment()], [], lasts="1m")
    assert "internal error while deciding: RuntimeError('a bug')" in run.notes
    assert capfd.readouterr().err == ""


def test_an_interrupt_ends_a_simulation_and_leaves_nothing_behind(capfd):
    def interrupt(line):
        if line.startswith("simulating"):
            raise KeyboardInterrupt

    cluster = bayplan.Cluster.from_objects([*three_zones(), deployment()])
    with pytest.raises(KeyboardInterrupt):
        cluster.reporting(interrupt).simulate({"lasts": "1h", "steps": []})
    assert capfd.readouterr().err == ""
    assert cluster.simulate({"lasts": "1h", "steps": []}).seconds == 3600
