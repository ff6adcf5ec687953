"""`place` steps through what a change updates, and a rollout that gets stuck is a no."""

import json
import pathlib

import pytest

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "18-stuck-rollout"
STATE, WEB, ONE_MISSING = (str(EXAMPLE / name) for name in ("state.yaml", "web.yaml", "web-without-surge.yaml"))


@pytest.mark.parametrize("words, exit_code, line", [
    ((WEB,), 1, "0 of 1 rollout complete"),
    ((WEB, "--rollout=final"), 0, "1 of 1 rollout complete"),
    ((ONE_MISSING,), 0, "1 of 1 rollout complete"),
    ((WEB, "--exit-zero"), 0, "0 of 1 rollout complete"),
    ((WEB, "--gate=all"), 1, "0 of 1 rollout complete"),
])  # fmt: skip
def test_the_exit_code_is_that_of_the_rollout(run, words, exit_code, line):
    result = run("place", "--state", STATE, "-f", *words)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (exit_code, f"note: {line}")


def test_a_template_that_asks_for_too_much_is_stuck_although_the_old_pods_run(run, tmp_path):
    big = tmp_path / "big.yaml"
    big.write_text(pathlib.Path(ONE_MISSING).read_text().replace('cpu: "1"', 'cpu: "64"'))
    result = run("place", "--state", STATE, "-f", str(big))
    assert result.exit_code == 1
    assert "stuck at step 1" in result.stdout
    assert "3 Insufficient cpu" in result.stdout


def test_the_same_manifest_again_is_no_rollout(run, tmp_path):
    same = tmp_path / "same.yaml"
    same.write_text(pathlib.Path(WEB).read_text().replace("web:2", "web:1"))
    result = run("place", "--state", STATE, "-f", str(same), "-o", "json")
    assert result.exit_code == 0
    assert [(one["result"], one["steps"]) for one in json.loads(result.stdout)["rollouts"]] == [("complete", [])]


def test_a_paused_deployment_is_said_not_to_roll_out(run, tmp_path):
    paused = tmp_path / "paused.yaml"
    paused.write_text(pathlib.Path(WEB).read_text().replace("  replicas: 3\n", "  replicas: 3\n  paused: true\n"))
    result = run("place", "--state", STATE, "-f", str(paused))
    assert result.exit_code == 0
    assert "held back  0      paused: its new template is not rolled out" in result.stdout
    assert run("place", "--state", STATE, "-f", str(paused), "--strict").exit_code == 1


def test_json_has_the_steps_and_the_moves(run):
    (found,) = json.loads(run("place", "--state", STATE, "-f", ONE_MISSING, "-o", "json").stdout)["rollouts"]
    assert found["workload"] == {"kind": "Deployment", "namespace": "shop", "name": "web"}
    assert [(move["from"]["node"], move["to"]["node"]) for move in found["moves"]] == [
        (f"node-{number}", f"node-{number}") for number in (1, 2, 3)
    ]
    assert [(step["step"], len(step["created"]), len(step["deleted"])) for step in found["steps"]] == [
        (1, 1, 1), (2, 1, 1), (3, 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("output", ["wide", "html", "yaml", "name"])
def test_every_format_has_them(run, output):
    result = run("place", "--state", STATE, "-f", ONE_MISSING, "-o", output)
    assert result.exit_code == 0
    assert "web-5d4f8-bm7qk" in result.stdout or output == "name"
