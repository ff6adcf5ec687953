"""A step of a rollout costs what it changes, counted in operations of Python, never in seconds."""

import sys
from pathlib import Path

import pytest

import bayplan
from rollout_scenes import controller, daemons, deployed, node, stateful, stepper

STEPPED = tuple(str(Path(bayplan.__file__).parent / room) for room in ("controllers", "placing"))


def n_operations(run):
    """How many operations of controllers and of the stepper are executed."""
    counted = 0

    def trace(frame, event, _):
        nonlocal counted
        if not frame.f_code.co_filename.startswith(STEPPED):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return counted


def rollout_of(n_replicas, kind, running, spec):
    old, new = (controller(kind, n_replicas, image=image, cpu="10m", **spec) for image in ("web:1", "web:2"))
    names = [f"n{number}" for number in range(10)]
    where = [names[number % len(names)] for number in range(n_replicas)]
    return stepper([*map(node, names), *running(old, *where)], new)


def rolling(surge, unavailable):
    return "Deployment", deployed, {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


def test_each_node_of_a_large_daemon_set_costs_as_much_as_one_of_a_small_one():
    costs = {}
    for n_nodes in (10, 80):
        names = [f"n{number:03}" for number in range(n_nodes)]
        old, new = (controller("DaemonSet", image=image, cpu="10m") for image in ("web:1", "web:2"))
        steps = stepper([*map(node, names), *daemons(old, *names)], new)
        costs[n_nodes] = n_operations(steps.run) / n_nodes
        assert all(pod.ready for pod in steps.rollouts[0].pods.values())
    assert costs[80] < 1.3 * costs[10]


@pytest.mark.parametrize(
    "kind, running, spec",
    [
        rolling(1, 0),
        rolling(0, 1),
        rolling("25%", "25%"),
        ("StatefulSet", stateful, {}),
        ("StatefulSet", stateful, {"podManagementPolicy": "Parallel"}),
    ],
)
def test_each_pod_of_a_large_rollout_costs_as_much_as_one_of_a_small_rollout(kind, running, spec):
    costs = {}
    for n_replicas in (20, 160):
        steps = rollout_of(n_replicas, kind, running, spec)
        costs[n_replicas] = n_operations(steps.run) / n_replicas
        assert all(pod.ready for pod in steps.rollouts[0].pods.values())
    assert costs[160] < 1.3 * costs[20]
