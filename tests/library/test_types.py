"""mypy --strict on the script of a user, against the built wheel in an environment without stubs."""

import pathlib
import subprocess
import sys

SCRIPT = """
import pathlib
from collections.abc import Mapping

import bayplan
from bayplan import Cluster, Fleet, InputError, Plan, PlannedPod, Settings
from bayplan.testing import assert_survives


def unplaced(plan: Plan) -> list[str]:
    return [f"{pod.namespace}/{pod.name}" for pod in plan if not pod.placed]


def main() -> int:
    settings = Settings(semantics="design", switches={"firstPodPerTerm": True})
    cluster = Cluster.from_files("cluster.json", pathlib.Path("more.json"), settings=settings)
    try:
        plan = cluster.apply({"kind": "Pod"}, "app.yaml", [{"kind": "Pod"}]).lose("zone=a").place(rollouts="final")
    except InputError as error:
        return len([fault.line for fault in error.faults])
    pod: PlannedPod = plan.pods["shop/web"]
    reveal_type(pod.explain().verdicts["a1"].failures[0].peers)
    reveal_type(plan.to_dict())
    reveal_type(cluster.only(namespace="x").add_node(like="a1"))
    reveal_type(cluster.audit(bayplan.AuditSettings(profile="ha")).checks[0].verdict)
    reveal_type(bayplan.load("x"))
    reveal_type(bayplan.validate("x").passes(fail_on="warning"))
    reveal_type([one.target for one in bayplan.replay("x")])
    fleet: Fleet = Fleet.from_context("prod").drain("cluster/a")
    shares: Mapping[str, int] = fleet.place().bindings["shop/web"].clusters
    assert_survives(cluster, "web.yaml", loss_of="zone")
    return len(unplaced(plan)) + len(shares)


wrong: int = Cluster.from_files("x").place().summary
Cluster.from_files("x").place(rollouts="never")
Cluster.from_files("x").plaec()
"""
REVEALED = [
    "tuple[str, ...]", "dict[str, Any]", "bayplan.library.cluster.Cluster", "str",
    "bayplan.library.cluster.Cluster | bayplan.library.fleet.Fleet", "bool", "list[str]",
]  # fmt: skip
WRONG = ["assignment", "arg-type", "attr-defined"]


def test_a_script_is_checked_against_the_wheel_without_stubs(installed_wheel, tmp_path):
    # An environment of its own: what mypy finds there is the wheel and nothing else.
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    for one in installed_wheel.iterdir():
        (packages / one.name).symlink_to(one)
    assert (packages / "bayplan" / "py.typed").exists()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", environment / "bin" / "python", "--cache-dir", tmp_path / "cache", script]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    lines = done.stdout.splitlines()
    revealed = [
        line.partition('Revealed type is "')[2].rstrip('"').replace("builtins.", "")
        for line in lines
        if "Revealed" in line
    ]
    assert revealed == REVEALED, done.stdout + done.stderr
    errors = [line for line in lines if " error: " in line]
    assert [line.rpartition("[")[2].rstrip("]") for line in errors] == WRONG, done.stdout + done.stderr
    assert {pathlib.Path(line.partition(":")[0]).name for line in errors} == {"script.py"}
