"""What an API server fills in: checked against pods as a real server stores them."""

import pytest

from admitting import Loader, container, deployment, pod, requests, stored

CPU_LIMIT = container("{limits: {cpu: 2}}")


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


@pytest.mark.parametrize("spec, asked", [
    ({"containers": [CPU_LIMIT]}, {"cpu": 2000}),
    ({"containers": [container("{limits: {cpu: 2, memory: 1Ki}, requests: {cpu: 1}}")]}, {"cpu": 1000, "memory": 1024}),
    ({"initContainers": [container("{limits: {cpu: 3}}", "i")]}, {"cpu": 3000}),
    # Of the pod as a whole, what is missing is the containers' first, and then its own limit.
    ({"resources": {"limits": {"cpu": 4, "memory": 1024}}, "containers": [CPU_LIMIT]}, {"cpu": 2000, "memory": 1024}),
    ({"resources": {"limits": {"cpu": 4}, "requests": {"cpu": 3}}, "containers": [CPU_LIMIT]}, {"cpu": 3000}),
    ({"resources": {"requests": {"memory": 1024}}, "containers": [CPU_LIMIT]}, {"cpu": 2000, "memory": 1024}),
])  # fmt: skip
@pytest.mark.parametrize("made", [pod, deployment])
def test_a_request_that_is_absent_is_the_limit(load, made, spec, asked):
    assert requests(load(made(**spec))) == asked


def test_a_running_pod_that_is_written_by_hand_takes_what_its_limit_says(load):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a1"}, "status": {"allocatable": {"cpu": 2}}}
    found = load(node, pod(node="a1", containers=[CPU_LIMIT]))
    (record,) = found.index.records.values()
    assert dict(record.workload.needs.requests.amounts) == {"cpu": 2000}


def test_a_pod_of_a_dump_is_what_the_server_stored(load):
    assert requests(load(stored(pod(containers=[CPU_LIMIT]), phase="Pending"))) == {}


def test_on_the_network_of_the_host_every_port_is_a_host_port(load):
    ports = [{"name": "c", "image": "i", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]}]
    (on_host,) = load(pod(hostNetwork=True, containers=ports)).pending
    assert [port.port for port in on_host.needs.host_ports] == [80, 81]
    (apart,) = load(pod(containers=ports)).pending
    assert [port.port for port in apart.needs.host_ports] == [81]


@pytest.mark.parametrize("own, tolerated", [
    ([], ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
    ([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
     ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
    ([{"operator": "Exists"}], [""]),
    ([{"operator": "Exists", "effect": "NoSchedule"}],
     ["", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]),
])  # fmt: skip
def test_nodes_that_are_not_ready_are_tolerated_for_a_while(load, own, tolerated):
    (found,) = load(pod(tolerations=own)).pending
    assert [one.key for one in found.needs.tolerations] == tolerated


def test_the_scheduler_has_a_name(load):
    (found,) = load(pod()).pending
    assert found.scheduler_name == "default-scheduler"
