"""The assertions, and the plugin as pytest finds it: by the entry point of an installed wheel."""

import os
import pathlib
import subprocess
import sys

import pytest

import bayplan
from bayplan.testing import assert_fits, assert_survives, assert_valid

from .test_inputs import NODE, pod

pytest_plugins = ["pytester"]
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "21-manifests-with-tests"
CLUSTER, WEB, DB = (EXAMPLE / f"{name}.yaml" for name in ("cluster", "web", "db"))
ZONE = "topology.kubernetes.io/zone"
HUGE = {**pod("huge"), "spec": {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "64"}}}]}}


def test_assertions_that_hold_return_their_answers():
    assert assert_valid(WEB, DB).ok
    assert assert_fits(CLUSTER, WEB, DB).ok
    assert assert_fits(bayplan.Cluster.from_files(CLUSTER), WEB, workload="deploy/web").ok
    plans = assert_survives(CLUSTER, WEB, loss_of=ZONE, workload="deploy/web")
    assert list(plans) == [f"{ZONE}={zone}" for zone in "abc"]
    assert all(plan.ok for plan in plans.values())
    assert list(assert_survives(CLUSTER, WEB, loss_of="node/node-a1")) == ["node/node-a1"]
    assert list(assert_survives(CLUSTER, WEB, loss_of=f"{ZONE}=b")) == [f"{ZONE}=b"]


@pytest.mark.parametrize("ask, says", [
    (lambda: assert_valid(EXAMPLE.parent / "06-gate-in-ci" / "invalid"), "labelSelecter"),
    (lambda: assert_fits(CLUSTER, pod(), HUGE), "the change does not fit:"),
    (lambda: assert_survives(CLUSTER, DB, loss_of=ZONE), "what runs does not survive"),
    (lambda: assert_survives(CLUSTER, DB, loss_of=ZONE, workload="deploy/db"), "deploy/db does not survive the loss of topology.kubernetes.io/zone=c:"),
    (lambda: assert_fits(bayplan.Cluster.from_files(CLUSTER).lose(f"{ZONE}=a"), DB, workload="deploy/db"), "What would make it fit:"),
])  # fmt: skip
def test_a_failed_assertion_explains_itself(ask, says):
    with pytest.raises(AssertionError) as raised:
        ask()
    assert says in str(raised.value)


@pytest.mark.parametrize("ask, message", [
    (lambda: assert_fits(CLUSTER, WEB, workload="deploy/wbe"), "workload: no pod of deploy/wbe is in the input"),
    (lambda: assert_survives(CLUSTER, WEB, loss_of="zone"), "loss_of: no node has the label zone"),
    (lambda: assert_survives(CLUSTER, WEB, loss_of="node/x"), "lose node/x: there is no such node"),
    (lambda: assert_survives(CLUSTER, loss_of=ZONE), "assert_survives: nothing has a node"),
    (lambda: assert_fits(bayplan.Cluster.from_objects([NODE]), [pod(), pod(namespace="ops")], workload="pod/web"), "workload: pod/web is in several namespaces (ops, shop)"),
])  # fmt: skip
def test_an_assertion_about_nothing_is_an_error(ask, message):
    with pytest.raises(bayplan.ArgumentError) as raised:
        ask()
    assert str(raised.value).startswith(message)


def test_pending_pods_do_not_count_as_lost():
    """What had no node before the loss is no concern of it, unless the workload is named."""
    cluster = bayplan.Cluster.from_files(CLUSTER)
    assert assert_survives(cluster, WEB, HUGE, loss_of=ZONE)
    with pytest.raises(AssertionError, match="pod/huge does not survive"):
        assert_survives(cluster, WEB, HUGE, loss_of=ZONE, workload="pod/huge")


def test_the_tests_of_the_example_run_with_the_installed_plugin(installed_wheel, pytester):
    """The wheel is found by its entry point; a failure shows the explanation and no lines of Bayplan."""
    pytester.copy_example(str(EXAMPLE / "cluster.yaml"))
    pytester.copy_example(str(EXAMPLE / "web.yaml"))
    pytester.copy_example(str(EXAMPLE / "db.yaml"))
    pytester.makepyprojecttoml('[tool.pytest.ini_options]\nbayplan_state = ["cluster.yaml"]\n')
    pytester.makepyfile(
        """
        from bayplan.testing import assert_survives

        ZONE = "topology.kubernetes.io/zone"

        def test_web(bayplan_cluster):
            assert_survives(bayplan_cluster, "web.yaml", loss_of=ZONE, workload="deploy/web")

        def test_db(bayplan_cluster):
            assert_survives(bayplan_cluster, "db.yaml", loss_of=ZONE, workload="deploy/db")

        def test_where(bayplan_cluster):
            import bayplan
            print("bayplan is in", bayplan.__file__)
            assert len(bayplan_cluster.nodes) == 6
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(installed_wheel), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-rP", "-q"]
    done = subprocess.run(command, cwd=pytester.path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed" in done.stdout
    assert f"bayplan is in {installed_wheel}" in done.stdout
    assert "AssertionError: deploy/db does not survive the loss of topology.kubernetes.io/zone=a:" in done.stdout
    assert "What would make it fit:" in done.stdout
    assert "bayplan/testing.py" not in done.stdout


def test_without_its_setting_the_fixture_says_so(pytester):
    pytester.makepyfile("def test_it(bayplan_cluster): pass")
    # Not also as the installed plugin, which may be that of another version.
    result = pytester.runpytest("-p", "no:bayplan", "-p", "bayplan.pytest_plugin", "-p", "no:asyncio")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*bayplan_cluster needs the setting bayplan_state*"])


def test_the_plugin_imports_nothing_of_bayplan_but_itself(source_folder):
    code = (
        "import sys, bayplan.pytest_plugin; print(sorted(name for name in sys.modules if name.startswith('bayplan')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(source_folder)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "['bayplan', 'bayplan.pytest_plugin']\n"
