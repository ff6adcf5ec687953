"""Which pods a ReplicaSet or a Job deletes first."""

import msgspec
import pytest

from bayplan.controllers import deletion_order, desired_state
from bayplan.controllers.desired_state import PodEntry
from bayplan.model import timestamps
from bayplan.wire.pods import Pod

NOW = timestamps.nanoseconds("2026-01-10T00:00:00Z")
DAY, HOUR = "2026-01-09T00:00:00Z", "2026-01-09T23:00:00Z"


def running(name="p", **more):
    return PodEntry(name, **({"node": "n1", "assigned": True, "ready": True, "phase": 2} | more))


@pytest.mark.parametrize(
    "first, second",
    [
        (running(assigned=False, node="", ready=False, phase=0), running(deletion_cost=-9)),
        (running(phase=0), running(phase=1)),
        (running(phase=1), running(phase=2)),
        (running(ready=False), running(deletion_cost=-9)),
        (running(deletion_cost=1), running(deletion_cost=2, node="n2")),
        (running(node="n2"), running(ready_since=HOUR)),  # two related pods are on n2
        (running(ready_since=HOUR), running(ready_since=DAY)),
        (running(), running(ready_since=HOUR)),  # a time that is not known counts as the youngest
        (running(ready_since="2026-01-09T23:00:01Z", uid="1"), running(ready_since=HOUR, uid="2")),
        (running(ready_since=HOUR, uid="1"), running(ready_since="2026-01-09T23:00:01Z", uid="2")),  # about as old
        (running(restarts=(2, 0)), running(restarts=(1, 5), created=HOUR)),
        (running(restarts=(1, 5)), running(restarts=(1, 4))),
        (running(created=HOUR), running(created=DAY)),
        (running("a"), running("b")),
    ],
)
def test_the_first_of_two_pods_is_deleted_first(first, second):
    related = [running(node="n2"), running(node="n2")]
    for pods in ([first, second], [second, first]):
        assert deletion_order.first_deleted(pods, 1, related, NOW) == [first]


def test_without_a_time_ages_are_compared_exactly():
    younger, older = running(ready_since="2026-01-09T23:00:01Z", uid="2"), running(ready_since=HOUR, uid="1")
    assert deletion_order.first_deleted([older, younger], 1, (), None) == [younger]


def test_a_job_ignores_costs_and_nodes():
    cheap, young = running("cheap", deletion_cost=-5, ready_since=DAY), running("young", ready_since=HOUR)
    assert deletion_order.first_deleted_of_job([cheap, young], 1) == [young]


def test_the_present_is_the_last_time_that_pods_mention():
    pods = [running(created=DAY, ready_since=HOUR), running(created="yesterday")]
    assert deletion_order.newest_time(pods) == timestamps.nanoseconds(HOUR)
    assert deletion_order.newest_time([running()]) is None


@pytest.mark.parametrize(
    "written, cost",
    [("10", 10), ("-3", -3), ("0", 0), ("+10", 0), ("008", 0), ("many", 0), ("2147483648", 0), ("", 0)],
)
def test_a_cost_that_is_no_number_of_32_bits_is_0(written, cost):
    pod = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": written}}}
    assert desired_state.entry_of(msgspec.convert(pod, Pod), None).deletion_cost == cost


@pytest.mark.parametrize(
    "spec, status, ready",
    [
        ({"nodeName": "n"}, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({"nodeName": "n"}, {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"nodeName": "n"}, {"phase": "Running"}, True),  # written by hand
        ({"nodeName": "n"}, {}, True),
        ({"nodeName": "n"}, {"phase": "Pending"}, False),
        ({}, {}, False),
    ],
)
def test_whether_a_pod_is_ready(spec, status, ready):
    assert desired_state.entry_of(msgspec.convert({"spec": spec, "status": status}, Pod), None).ready is ready


def test_restarts_are_the_most_of_a_container_and_of_a_sidecar():
    pod = {
        "spec": {"initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "once"}]},
        "status": {
            "containerStatuses": [{"name": "a", "restartCount": 2}, {"name": "b", "restartCount": 3}],
            "initContainerStatuses": [{"name": "side", "restartCount": 4}, {"name": "once", "restartCount": 9}],
        },
    }
    assert desired_state.entry_of(msgspec.convert(pod, Pod), None).restarts == (3, 4)
