"""Recorded decisions are repeated with the same outcome and explained, by the real command."""

import errno
import io
import json
import os
import random

import pytest
from click.testing import CliRunner

from bayplan.cli import main
from bayplan.writing.recordings import Recorder
from live_loop.simulated import START, Simulation, apart, near


def begin_recording(cluster):
    """Start to record; the returned function stops and returns the recorded bytes."""
    file = io.BytesIO()
    written = []
    file.close = lambda: written.append(file.getvalue())
    cluster.parts.recorder = Recorder(file, cluster.state.index, cluster.parts.recording_header(), lambda: START)

    def stop():
        cluster.parts.recorder.close()
        return written[0]

    return stop


def change_cluster(cluster, chance, number):
    """Add a random pod; sometimes delete a pod or add a node."""
    name = f"pod-{number}"
    rule = chance.choice([{}, {"affinity": apart(set=str(number % 5))}, {"affinity": near(set="0")}])
    cluster.add_pod(
        name, labels={"set": str(number % 5)}, cpu=chance.choice(["100m", "1", "3"]), priority=number % 3, **rule
    )
    if chance.random() < 0.3 and cluster.pods:
        cluster.remove_pod(chance.choice(sorted(cluster.pods)).partition("/")[2])
    if chance.random() < 0.1:
        cluster.add_node(f"late-{number}", zone=chance.choice("abc"))


@pytest.fixture
async def recorded(tmp_path):
    """A file with the recorded decisions of a busy scheduler."""
    cluster, chance = Simulation(), random.Random(6)
    for i in range(6):
        cluster.add_node(f"node-{i}", zone="abc"[i % 3])
    for number in range(20):
        change_cluster(cluster, chance, number)
    await cluster.settle(5)
    stop = begin_recording(cluster)
    for number in range(20, 150):
        change_cluster(cluster, chance, number)
        if number % 7 == 0:
            await cluster.settle(2)
    await cluster.settle(20)
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(stop())
    return path


def replay(*arguments):
    return CliRunner().invoke(main.cli, ["replay", *map(str, arguments)])


async def test_every_decision_is_repeated_with_the_same_outcome(recorded):
    done = replay(recorded, "-o", "json")
    assert done.exit_code == 0, done.output
    decisions = json.loads(done.stdout)["decisions"]
    assert len(decisions) > 100
    assert all(row["again"] == row["node"] for row in decisions)
    assert any(not row["node"] for row in decisions)
    assert f"{len(decisions)} decisions, 0 of them differ when repeated" in done.stderr


async def test_a_decision_that_differs_today_is_reported(recorded):
    lines = recorded.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if '"decision"' in line and json.loads(line)["node"])
    changed = json.loads(lines[at]) | {"node": "elsewhere"}
    recorded.write_text("\n".join([*lines[:at], json.dumps(changed), *lines[at + 1 :], ""]))
    done = replay(recorded, "--pod", f"web/{changed['workload']['name']}")
    assert done.exit_code == 1
    assert "elsewhere (now " in done.stdout


async def test_every_decision_can_be_explained(recorded):
    rows = json.loads(replay(recorded, "-o", "json").stdout)["decisions"]
    refused = next(row for row in rows if not row["node"])
    done = replay(recorded, "--explain", refused["decision"])
    assert done.exit_code == 0
    assert refused["message"].partition(" preemption:")[0] in done.stdout
    placed = next(row for row in rows if row["node"])
    assert placed["node"] in replay(recorded, "--explain", placed["decision"]).stdout


async def test_a_truncated_recording_is_read_to_its_last_complete_line(recorded):
    whole = json.loads(replay(recorded, "-o", "json").stdout)["decisions"]
    recorded.write_bytes(recorded.read_bytes()[:-20])
    done = replay(recorded, "-o", "json")
    assert done.exit_code == 0
    assert len(whole) - 1 <= len(json.loads(done.stdout)["decisions"]) <= len(whole)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty"),
        ('{"kind": "Pod"}\n', "expected a recording"),
        ("no json\n", "other.jsonl:1: invalid JSON"),
    ],
    ids=["nothing", "something else", "no JSON"],
)
def test_a_file_that_is_not_a_recording_is_rejected(tmp_path, content, says):
    path = tmp_path / "other.jsonl"
    path.write_text(content)
    done = replay(path)
    assert done.exit_code == 2
    assert says in done.stderr


async def test_an_unknown_decision_number_is_rejected(recorded):
    done = replay(recorded, "--explain", 100_000)
    assert done.exit_code == 2
    assert "the recording has no decision 100000" in done.stderr


HEADER = '{"recording": "bayplan.io/recording/v1"}'
NODE = '{"target": {"name": "n1", "labels": {}}}'


@pytest.mark.parametrize(
    ("damaged", "says"),
    [
        (
            '{"recording": "bayplan.io/recording/v1", "seed": 5}',
            "f:1: seed: expected a string, got the number 5 (put it in quotes)",
        ),
        (f"{HEADER}\n[1]", "f:2: expected a mapping, got a list"),
        (f"{HEADER}\n{{}}", "f:2: expected a change or a decision, got "),
        (
            f'{HEADER}\n{{"add": {{"name": 1}}}}',
            "f:2: add.name: expected a string, got the number 1 (put it in quotes)\nf:2: add.namespace: expected a string, got nothing\n",
        ),
        (f'{HEADER}\n{{"target": {{"name": "n1"}}}}', "f:2: target.labels: expected a mapping, got nothing"),
        (
            f'{HEADER}\n{{"target": {{"name": "n1", "labels": {{}}, "allocatable": [["cpu", 1, 2]]}}}}',
            "f:2: target.allocatable[0]: expected a list of 2, got a list of 3",
        ),
        (f'{HEADER}\n{NODE}\n{{"remove": "shop/web"}}', "f:3: remove: expected an added workload, got 'shop/web'"),
        (f'{HEADER}\n{NODE}\n{{"removeTarget": "n2"}}', "f:3: removeTarget: expected an added target, got 'n2'"),
        (f'{HEADER}\n{{"namespace": "shop"}}', "f:2: labels: expected a mapping, got nothing"),
        (
            f'{HEADER}\n{{"namespace": "shop", "labels": {{"a": 1}}}}',
            "f:2: labels[a]: expected a string, got the number 1",
        ),
        (
            f'{HEADER}\n{{"stored": "claims"}}',
            "f:2: name: expected a string, got nothing\nf:2: value: expected a value, got nothing",
        ),
        (
            f'{HEADER}\n{{"stored": "clams", "name": "a", "value": null}}',
            "f:2: stored: expected one of claims, volumes, classes, space, attach_limits, attachments, metering_drivers, required_drivers, got 'clams'",
        ),
        (
            f'{HEADER}\n{{"stored": "attach_limits", "name": "n1", "value": {{"d": "3"}}}}',
            'f:2: value[d]: expected a whole number, got the string "3"',
        ),
        (
            f'{HEADER}\n{{"decision": 1, "at": 5, "workload": [], "node": "", "message": ""}}',
            "f:2: at: expected a string, got the number 5 (put it in quotes)\nf:2: workload: expected a mapping, got a list",
        ),
    ],
)
def test_a_damaged_line_is_reported_with_its_faults(tmp_path, monkeypatch, damaged, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_text(f"{damaged}\n")
    done = replay("f")
    assert done.exit_code == 2
    assert says in done.stderr.replace("error: ", "")


def test_a_workload_that_is_added_twice_is_reported_with_its_line(tmp_path):
    workload = {"namespace": "shop", "name": "web", "labels": {}, "needs": {}}
    add = json.dumps({"add": workload, "shares": []})
    path = tmp_path / "twice.jsonl"
    path.write_text(f"{HEADER}\n{add}\n{add}\n")
    done = replay(path)
    assert done.exit_code == 2
    assert f"{path}:3: workload shop/web is placed already" in done.stderr


class FullDisk(io.BytesIO):
    """Accepts only the first line."""

    def write(self, data):
        if self.getvalue():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


def test_on_a_full_disk_only_the_recording_ends(monkeypatch):
    said = []
    monkeypatch.setattr("bayplan.writing.recordings.log.error", lambda text, *facts: said.append(text % facts))
    cluster, file = Simulation(), FullDisk()
    recorder = cluster.parts.recorder = Recorder(
        file, cluster.state.index, cluster.parts.recording_header(), lambda: START
    )
    for number in range(3):
        cluster.add_node(f"node-{number}")
        recorder.changed()
    recorder.close()
    assert said == ["the recording ends here: No space left on device"]
    assert recorder._lines.empty()
    assert file.closed


async def test_a_pod_that_takes_the_node_reserved_for_it_does_so_again(tmp_path):
    """Another node, which has more room by then, would be chosen without the nomination."""
    cluster = Simulation(reserve_after=30.0)
    for name, cpu in (("one", "4"), ("two", "8")):
        cluster.add_node(name, cpu=cpu)
        cluster.add_pod(f"on-{name}", cpu=cpu, node=name)
    stop = begin_recording(cluster)
    cluster.add_pod("large", cpu="3")
    await cluster.settle(30)
    cluster.add_pod("part", cpu="1", node="one")
    for name in ("on-one", "on-two"):
        cluster.remove_pod(name)
    await cluster.settle(5)
    assert cluster.where()["large"] == "one"
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(stop())
    done = replay(path, "-o", "json")
    assert done.exit_code == 0, done.output
    assert [row["again"] for row in json.loads(done.stdout)["decisions"]] == ["", "one"]
    assert "one  fits" in replay(path, "--explain", 2).stdout, "it need not fit beside itself"


async def test_decisions_after_a_state_that_was_written_again_are_repeated_over_it(tmp_path):
    """The journal had more changes than it keeps: the recorder writes the whole state once more."""
    cluster = Simulation()
    cluster.add_node("node-0", zone="a")
    stop = begin_recording(cluster)
    cluster.add_pod("first", cpu="1")
    await cluster.settle(5)
    lines = stop().splitlines(keepends=True)
    (target,) = (line for line in lines if line.startswith(b'{"target"'))
    (decision,) = (line for line in lines if line.startswith(b'{"decision"'))
    cordoned = target.replace(b'"unschedulable":false', b'"unschedulable":true')
    again = [b'{"again":true}\n', cordoned, decision.replace(b'"node":"node-0"', b'"node":""')]
    path = tmp_path / "decisions.jsonl"
    path.write_bytes(b"".join([*lines, *again]))
    done = replay(path)
    assert done.exit_code == 0, done.output
    assert "2 decisions, 0 of them differ when repeated" in done.stderr
