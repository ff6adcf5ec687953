"""Pods are mapped to workloads as the API server and kube-scheduler interpret them."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.mapping import pod_requests, pod_shapes, pods
from bayplan.model.kubernetes_versions import KubernetesVersion
from bayplan.wire.pods import Pod

MIB = 2**20
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"


def workload(spec=None, labels=None, **metadata):
    written = {
        "metadata": {"name": "p", "labels": labels or {}, **metadata},
        "spec": {"containers": [], **(spec or {})},
    }
    return pods.workload_of(msgspec.convert(written, Pod))


def requesting(*containers, init=(), level=None, overhead=None):
    def container(requests):
        restartable = {"restartPolicy": "Always"} if requests.pop("sidecar", False) else {}
        return {"name": "c", "resources": {"requests": requests}, **restartable}

    spec = {
        "containers": [container(dict(c)) for c in containers],
        "initContainers": [container(dict(c)) for c in init],
    }
    if level:
        spec["resources"] = {"requests": level}
    if overhead:
        spec["overhead"] = overhead
    return workload(spec).needs.requests


@pytest.mark.parametrize(
    "requests, cpu",
    [
        (requesting({"cpu": "1"}, {"cpu": "500m"}), 1500),
        (requesting({"cpu": "1"}, init=[{"cpu": "3"}]), 3000),  # init containers run before, one by one
        (requesting({"cpu": "1"}, init=[{"cpu": "2", "sidecar": True}]), 3000),  # a sidecar runs in parallel
        (
            requesting({"cpu": "1"}, init=[{"cpu": "2", "sidecar": True}, {"cpu": "4"}]),
            6000,
        ),  # also to later init containers
        (requesting({"cpu": "1"}, init=[{"cpu": "4"}, {"cpu": "2", "sidecar": True}]), 4000),  # but not to earlier ones
        (requesting({"cpu": "1"}, overhead={"cpu": "250m"}), 1250),
        (
            requesting({"cpu": "1"}, init=[{"cpu": "2", "sidecar": True}], level={"cpu": "5"}),
            5000,
        ),  # pod-level requests take precedence
        (requesting({"cpu": "1"}, level={"cpu": "5"}, overhead={"cpu": "1"}), 6000),
        (requesting({"cpu": "0.0001"}, {"cpu": "0.0001"}), 2),  # each is rounded up when an API server reads it
    ],
)
def test_cpu_that_must_fit(requests, cpu):
    assert dict(requests.amounts)["cpu"] == cpu


@pytest.mark.parametrize(
    "requests, scored, counted",
    [
        (requesting({}), (100, 200 * MIB), (100, 200 * MIB)),
        (requesting({}, {}), (200, 400 * MIB), (200, 400 * MIB)),
        (requesting({"cpu": "0"}), (0, 200 * MIB), (0, 200 * MIB)),  # an explicit zero stays zero
        (
            requesting({}, level={"cpu": "2"}),
            (100, 200 * MIB),
            (2000, 200 * MIB),
        ),  # not scored, but counted once it runs
        (requesting({"memory": "1Gi"}, level={"cpu": "2"}), (100, 1024 * MIB), (2000, 1024 * MIB)),
        (requesting({}, init=[{}]), (100, 200 * MIB), (100, 200 * MIB)),
        (requesting({}, init=[{"sidecar": True}]), (200, 400 * MIB), (200, 400 * MIB)),
    ],
)
def test_missing_requests_have_defaults_in_scores(requests, scored, counted):
    assert (dict(requests.scored)["cpu"], dict(requests.scored)["memory"]) == scored
    assert (dict(requests.counted)["cpu"], dict(requests.counted)["memory"]) == counted


def test_hugepages_are_requested_by_containers_and_by_pods():
    assert dict(requesting({"hugepages-2Mi": "4Mi"}).amounts)["hugepages-2Mi"] == 4 * MIB
    assert (
        dict(requesting({"hugepages-2Mi": "4Mi"}, level={"hugepages-2Mi": "8Mi"}).amounts)["hugepages-2Mi"] == 8 * MIB
    )
    assert "example.com/gpu" not in dict(
        requesting({}, level={"example.com/gpu": "1"}).amounts
    )  # not a pod-level resource


@pytest.mark.parametrize(
    "image, name",
    [
        ("web", "web:latest"),
        ("web:v1", "web:v1"),
        ("registry:5000/web", "registry:5000/web:latest"),  # a port is not a tag
        ("registry:5000/web:v1", "registry:5000/web:v1"),
        ("web@sha256:0123", "web@sha256:0123"),
    ],
)
def test_image_names_have_a_tag(image, name):
    assert workload({"containers": [{"name": "c", "image": image}]}).needs.images.names == (name,)


def test_image_volumes_count_as_images_but_not_as_containers():
    images = workload(
        {"containers": [{"name": "c", "image": "a"}], "volumes": [{"name": "v", "image": {"reference": "b"}}]}
    )
    assert images.needs.images.names == ("a:latest", "b:latest")
    assert images.needs.images.n_containers == 1


def term(**fields):
    written = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **fields}
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [written]}}}
    labels = {"app": "web", "pod-template-hash": "abc"}
    return str(workload(spec, labels).needs.affinity.anti_required[0].selector)


@pytest.mark.parametrize(
    "fields, selector",
    [
        ({}, "app=web"),
        ({"matchLabelKeys": ["pod-template-hash"]}, "app=web,pod-template-hash=abc"),
        ({"mismatchLabelKeys": ["pod-template-hash"]}, "app=web,pod-template-hash notin (abc)"),
        ({"matchLabelKeys": ["absent"]}, "app=web"),
        ({"matchLabelKeys": ["pod-template-hash"], "labelSelector": {}}, "pod-template-hash=abc"),
        (  # an API server has merged it already, and merging again changes nothing
            {
                "matchLabelKeys": ["pod-template-hash"],
                "labelSelector": {
                    "matchLabels": {"app": "web"},
                    "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["abc"]}],
                },
            },
            "app=web,pod-template-hash=abc",
        ),
        # Merged when the pod was created, with the label that it had then
        (
            {
                "matchLabelKeys": ["pod-template-hash"],
                "labelSelector": {
                    "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["old"]}]
                },
            },
            "pod-template-hash=old",
        ),
        (
            {
                "mismatchLabelKeys": ["pod-template-hash"],
                "labelSelector": {
                    "matchExpressions": [{"key": "pod-template-hash", "operator": "NotIn", "values": ["old"]}]
                },
            },
            "pod-template-hash notin (old)",
        ),
        # A key of mismatchLabelKeys may also be in the selector that the user writes.
        (
            {
                "mismatchLabelKeys": ["pod-template-hash"],
                "labelSelector": {"matchExpressions": [{"key": "pod-template-hash", "operator": "Exists"}]},
            },
            "pod-template-hash,pod-template-hash notin (abc)",
        ),
        ({"matchLabelKeys": ["pod-template-hash"], "labelSelector": None}, "None"),  # matches nothing, merges nothing
    ],
)
def test_label_keys_are_merged_into_the_selector(fields, selector):
    assert term(**fields) == selector


def test_spread_constraints_merge_their_label_keys_too():
    spec = {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["version"],
            }
        ]
    }
    (constraint,) = workload(spec, {"app": "web", "version": "2"}).needs.spread.constraints
    assert str(constraint.selector) == "app=web,version=2"


def test_an_invalid_annotation_makes_the_pod_unplaceable_and_names_the_path():
    annotated = workload(annotations={"bayplan.io/affinity": '{"podAntiAffinity": {"requird": []}}'})
    assert "metadata.annotations[bayplan.io/affinity].podAntiAffinity.requird" in annotated.unplaceable
    assert not annotated.needs.affinity


def test_empty_and_absent_namespaces_are_different_values():
    def namespaces(written):
        spec = {
            "affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z", **written}]}
            }
        }
        return workload(spec).needs.affinity.required[0].namespaces

    assert namespaces({}) is None
    assert namespaces({"namespaces": []}) == ()


def test_restarts_do_not_distinguish_pods_of_one_template():
    status = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}
    one, other = (
        pods.workload_of(msgspec.convert({"metadata": {"name": name}, "status": written}, Pod))
        for name, written in (
            ("one", status),
            ("other", {"containerStatuses": [status["containerStatuses"][0] | {"restartCount": 3}]}),
        )
    )
    assert one.needs is other.needs


AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", "3"]), "memory": st.just("1Gi")})
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab"), "resources": st.fixed_dictionaries({}, optional={"requests": AMOUNTS})}
    ),
    max_size=2,
)
STATUSES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("ab")},
        optional={
            "restartCount": st.integers(0, 2),
            "allocatedResources": AMOUNTS,
            "resources": st.fixed_dictionaries({}, optional={"requests": AMOUNTS}),
        },
    ),
    max_size=2,
)


@given(CONTAINERS, CONTAINERS, STATUSES, STATUSES)
def test_pods_of_one_shape_need_what_the_pod_itself_says(containers, init_containers, statuses, init_statuses):
    written = {
        "spec": {"containers": containers, "initContainers": init_containers},
        "status": {"containerStatuses": statuses, "initContainerStatuses": init_statuses},
    }
    pod = msgspec.convert(written, Pod)
    assert pods.workload_of(pod).needs.requests == pod_requests.requests_of(pod)


@pytest.mark.parametrize("spec, is_shared", [
    ({}, True),
    ({"affinity": {"podAffinity": {SCHEDULING: [{"topologyKey": "zone", "labelSelector": {}}]}}}, True),
    ({"affinity": {"podAffinity": {SCHEDULING: [{"topologyKey": "zone", "matchLabelKeys": ["job"]}]}}}, False),
    ({"affinity": {"podAntiAffinity": {SCHEDULING: [{"topologyKey": "zone", "mismatchLabelKeys": ["job"]}]}}}, False),
    ({"topologySpreadConstraints": [{"topologyKey": "zone", "matchLabelKeys": ["job"]}]}, False),
])  # fmt: skip
def test_labels_distinguish_pods_of_one_template_only_if_its_terms_read_them(spec, is_shared):
    one, other = (
        pod_shapes.shape_of(msgspec.convert({"metadata": {"labels": {"job": job}}, "spec": spec}, Pod)) for job in "12"
    )
    assert (one == other) == is_shared


@pytest.mark.parametrize("side, key", [("podAffinity", "matchLabelKeys"), ("podAntiAffinity", "mismatchLabelKeys")])
@pytest.mark.parametrize("stored", [{}, {"uid": "1"}, {"resourceVersion": "1"}])
def test_a_label_that_a_stored_pod_was_given_later_is_not_merged_into_its_terms(side, key, stored):
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, key: ["team"]}
    written = {"metadata": {"labels": {"team": "a"}, **stored}, "spec": {"affinity": {side: {SCHEDULING: [term]}}}}
    terms = pods.workload_of(msgspec.convert(written, Pod)).needs.affinity
    (found,) = (*terms.required, *terms.anti_required)
    assert {one.key for one in found.selector.requirements} == ({"app"} if stored else {"app", "team"})


def test_the_annotation_of_a_stored_pod_reads_the_labels_that_it_has():
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["team"]}
    text = json.dumps({"podAffinity": {SCHEDULING: [term]}})
    written = {"metadata": {"uid": "1", "labels": {"team": "a"}, "annotations": {"bayplan.io/affinity": text}}}
    (found,) = pods.workload_of(msgspec.convert(written, Pod)).needs.affinity.required
    assert {one.key for one in found.selector.requirements} == {"app", "team"}


def test_labels_distinguish_pods_whose_annotation_reads_them():
    text = "podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, matchLabelKeys: [job]}]}"
    one, other = (
        pod_shapes.shape_of(
            msgspec.convert({"metadata": {"labels": {"job": job}, "annotations": {"bayplan.io/affinity": text}}}, Pod)
        )
        for job in "12"
    )
    assert one != other


def test_the_statuses_of_many_containers_are_each_read_once():
    """A pod of a megabyte has thousands of containers, and each of them a status."""

    class Name(str):
        __slots__ = ()
        n_compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Name.n_compared += 1
            return str.__eq__(self, other)

    n = 300
    containers = [{"name": f"c{i}", "resources": {"requests": {"cpu": "1"}}} for i in range(n)]
    statuses = [{"name": f"c{i}", "resources": {"requests": {"cpu": "2"}}} for i in range(n)]
    pod = msgspec.convert({"spec": {"containers": containers}, "status": {"containerStatuses": statuses}}, Pod)
    for status in pod.status.container_statuses:
        status.name = Name(status.name)
    requests = pod_requests.requests_of(pod)
    for version in KubernetesVersion:
        assert dict(requests.on_node(version).amounts)["cpu"] == 2000 * n
    assert Name.n_compared <= 10 * n
