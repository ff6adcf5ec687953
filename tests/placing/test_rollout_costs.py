"""A step of a rollout costs what it changes, counted in operations of Python, never in seconds."""

import sys
from pathlib import Path

import pytest

import bayplan
from rollout_scenes import controller, deployed, node, stepper

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


def rollout_of(n_replicas, surge, unavailable):
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    old, new = (
        controller("Deployment", n_replicas, image=image, cpu="10m", strategy={"rollingUpdate": limits})
        for image in ("web:1", "web:2")
    )
    names = [f"n{number}" for number in range(10)]
    where = [names[number % len(names)] for number in range(n_replicas)]
    return stepper([*map(node, names), *deployed(old, *where)], new)


@pytest.mark.parametrize("surge, unavailable", [(1, 0), (0, 1), ("25%", "25%")])
def test_each_pod_of_a_large_rollout_costs_as_much_as_one_of_a_small_rollout(surge, unavailable):
    costs = {}
    for n_replicas in (20, 160):
        steps = rollout_of(n_replicas, surge, unavailable)
        costs[n_replicas] = n_operations(steps.run) / n_replicas
        assert all(pod.ready for pod in steps.rollouts[0].pods.values())
    assert costs[160] < 1.3 * costs[20]
