"""LimitRanges complete containers and refuse pods and claims, in the server's words."""

import pytest
import yaml

from admitting import Loader, container, deployment, messages, pod, requests, stored, written


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def limit_range(limits, name="limits", namespace="shop"):
    return written("LimitRange", name, f"spec: {{limits: [{limits}]}}", namespace=namespace)


@pytest.mark.parametrize("limits, resources, asked", [
    ("{type: Container, defaultRequest: {cpu: 1}}", "{}", {"cpu": 1000}),
    ("{type: Container, default: {cpu: 2}}", "{}", {"cpu": 2000}),  # the default request is the default limit
    ("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}", "{}", {"cpu": 1000}),
    ("{type: Container, max: {cpu: 3}}", "{}", {"cpu": 3000}),  # and the default limit is the maximum
    ("{type: Container, min: {cpu: 1}}", "{}", {"cpu": 1000}),
    ("{type: Container, default: {cpu: 2}}", "{requests: {cpu: 1}}", {"cpu": 1000}),
    # The server takes requests from limits before it knows the range.
    ("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}", "{limits: {cpu: 4}}", {"cpu": 4000}),
    ("{type: Pod, max: {cpu: 3}}", "{limits: {cpu: 2}}", {"cpu": 2000}),
])  # fmt: skip
@pytest.mark.parametrize("made", [pod, deployment])
def test_defaults_are_added(load, made, limits, resources, asked):
    found = load(limit_range(limits), made(containers=[container(resources)]))
    assert messages(found) == []
    assert requests(found) == asked


def test_a_range_counts_in_its_own_namespace_only(load):
    assert requests(load(limit_range("{type: Container, default: {cpu: 2}}", namespace="other"), pod())) == {}


def test_a_pod_of_a_dump_was_admitted(load):
    found = load(
        limit_range("{type: Container, max: {cpu: 1}}"), stored(pod(containers=[container("{requests: {cpu: 2}}")]))
    )
    assert (messages(found), requests(found)) == ([], {"cpu": 2000})


@pytest.mark.parametrize("limits, resources, message", [
    ("{type: Container, max: {cpu: 1}}", "{limits: {cpu: 2}}", "maximum cpu usage per Container is 1, but limit is 2"),
    ("{type: Container, min: {memory: 1Gi}}", "{requests: {memory: 512Mi}}",
     "minimum memory usage per Container is 1Gi, but request is 512Mi"),
    ("{type: Container, maxLimitRequestRatio: {cpu: 2}}", "{limits: {cpu: 3}, requests: {cpu: 1}}",
     "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"),
    ("{type: Container, maxLimitRequestRatio: {cpu: 2}}", "{}",
     "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"),
    ("{type: Pod, max: {cpu: 1}}", "{}", "maximum cpu usage per Pod is 1.  No limit is specified"),
    ("{type: Pod, min: {cpu: 1}}", "{}", "minimum cpu usage per Pod is 1.  No request is specified"),
    ("{type: Pod, max: {cpu: 1500m}}", "{limits: {cpu: 1}}, second: {limits: {cpu: 1}}",
     "maximum cpu usage per Pod is 1500m, but limit is 2"),
    ("{type: Container, max: {cpu: 1, memory: 1Gi}}", "{limits: {cpu: 2, memory: 2Gi}}",
     "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]"),
])  # fmt: skip
def test_a_violation_refuses_the_pod(load, limits, resources, message):
    listed = yaml.safe_load(f"{{first: {resources}}}")
    found = load(
        limit_range(limits), pod(containers=[{"name": n, "image": "i", "resources": r} for n, r in listed.items()])
    )
    assert messages(found) == [f'pods "web" is forbidden: {message}']
    assert found.pending == []


@pytest.mark.parametrize("limits, spec, message", [
    ("{type: Container, default: {cpu: 1500m}}", {"containers": [container("{requests: {cpu: 2}}")]},
     'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1500m'),
    ("{type: Container, defaultRequest: {cpu: 300m}}", {"resources": {"limits": {"cpu": 1}, "requests": {"cpu": "100m"}}},
     'spec.resources.requests[cpu]: Invalid value: "100m": must be greater than or equal to aggregate container requests of 300m'),
    ("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 1}}", {"resources": {"limits": {"cpu": 1}}},
     'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1'),
])  # fmt: skip
@pytest.mark.parametrize("made", [pod, deployment])
def test_a_default_can_make_a_pod_invalid(load, made, limits, spec, message):
    found = load(limit_range(limits), made(**spec))
    (refused,) = found.refused
    assert refused.message == f'Pod "{refused.pod.metadata.name}" is invalid: {message}'


CLAIMS = """
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: i}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}
"""


@pytest.mark.parametrize("limits, message", [
    ("max: {storage: 1Gi}", "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi"),
    ("min: {storage: 9Gi}", "minimum storage usage per PersistentVolumeClaim is 9Gi, but request is 5Gi"),
])  # fmt: skip
def test_without_its_claim_a_stateful_set_creates_no_pod(load, limits, message):
    found = load(
        limit_range(f"{{type: PersistentVolumeClaim, {limits}}}"), written("StatefulSet", "db", CLAIMS, "apps/v1")
    )
    assert messages(found) == [f'persistentvolumeclaims "data-db-0" is forbidden: {message}']
    assert found.pending == []
