"""NodeResourcesFit: what is free on a node, and what using it is worth."""

import pytest

from bayplan.rules.resources_fit import MOST_ALLOCATED, RATIO, ResourcesFit, ResourcesFitArguments, ScoringStrategy
from rules.shorthand import container, node, pod, run

GPU, FOO = "nvidia.com/gpu", "example.com/foo"
BIG = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def asking(*containers, **spec):
    return pod("new", containers=[container(**each) for each in containers], **spec)


def holding(*containers):
    """One pod on node n for each container."""
    return [pod(f"old-{i}@n", containers=[container(**each)]) for i, each in enumerate(containers)]


@pytest.mark.parametrize(
    "offers, taken, asked, answer",
    [
        ({}, [], {"cpu": "4"}, None),  # exactly what there is
        ({}, [], {"cpu": "4001m"}, "UU Insufficient cpu"),
        ({}, [{"cpu": "1"}], {"cpu": "3"}, None),
        ({}, [{"cpu": "1"}], {"cpu": "3001m"}, "U Insufficient cpu"),
        ({}, [{"cpu": "1"}], {"cpu": "4"}, "U Insufficient cpu"),
        ({}, [{"cpu": "1"}], {"cpu": "3000.1m"}, "U Insufficient cpu"),  # rounded up
        ({}, [{"cpu": "4"}], {}, None),
        ({}, [{"cpu": "4"}], {"cpu": "0"}, None),
        ({}, [{"cpu": "5"}], {"cpu": "0", "memory": "1"}, None),  # an overcommitted resource that is not requested
        ({}, [{"memory": "8Gi"}], {"memory": "1"}, "U Insufficient memory"),
        ({}, [], {"memory": "8193Mi"}, "UU Insufficient memory"),
        ({}, [], {"ephemeral-storage": "1"}, "UU Insufficient ephemeral-storage"),
        ({"ephemeral-storage": "2Gi"}, [{"ephemeral-storage": "1Gi"}], {"ephemeral-storage": "1Gi"}, None),
        ({}, [], {GPU: "1"}, "UU Insufficient nvidia.com/gpu"),
        ({GPU: "2"}, [{GPU: "1"}], {GPU: "1"}, None),
        ({GPU: "2"}, [{GPU: "2"}], {GPU: "1"}, "U Insufficient nvidia.com/gpu"),
        ({GPU: "2"}, [{GPU: "2"}], {GPU: "0"}, None),
        ({"hugepages-2Mi": "4Mi"}, [], {"hugepages-2Mi": "6Mi"}, "UU Insufficient hugepages-2Mi"),
        ({"pods": "1"}, [], {}, None),
        ({"pods": "1"}, [{}], {}, "U Too many pods"),
        ({"pods": "0"}, [], {}, "U Too many pods"),  # no request of the pod exceeds what there is
        ({"pods": "1"}, [{"cpu": "4"}], {"cpu": "1"}, "U Too many pods + Insufficient cpu"),
        ({"pods": "1"}, [{}], {"cpu": "5"}, "UU Too many pods + Insufficient cpu"),
        ({}, [{"cpu": "4", "memory": "8Gi"}], {"cpu": "1", "memory": "1"}, "U Insufficient cpu + Insufficient memory"),
        ({}, [{"memory": "8Gi"}], {"cpu": "5", "memory": "1"}, "UU Insufficient cpu + Insufficient memory"),
        ({"cpu": "0"}, [], {"cpu": "1m"}, "UU Insufficient cpu"),
    ],
)
def test_what_fits(offers, taken, asked, answer):
    found = run(ResourcesFit(), asking(asked), [node("n", **offers)], holding(*taken))
    assert found.rejected == ({} if answer is None else {"n": answer})


def sidecar(**requests):
    return {**container(**requests), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    "spec, fits",
    [
        ({"containers": [container(cpu="2"), container(cpu="2")]}, True),
        ({"containers": [container(cpu="2"), container(cpu="2001m")]}, False),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="4"), container(cpu="4")]}, True),
        ({"containers": [container(cpu="1")], "initContainers": [container(cpu="4001m")]}, False),
        ({"containers": [container(cpu="3")], "initContainers": [sidecar(cpu="1")]}, True),
        ({"containers": [container(cpu="3")], "initContainers": [sidecar(cpu="1001m")]}, False),
        ({"containers": [container()], "initContainers": [sidecar(cpu="1"), container(cpu="3001m")]}, False),
        (
            {"containers": [container()], "initContainers": [container(cpu="4"), sidecar(cpu="1")]},
            True,
        ),  # it runs later
        ({"containers": [container(cpu="3")], "overhead": {"cpu": "1"}}, True),
        ({"containers": [container(cpu="3")], "overhead": {"cpu": "1001m"}}, False),
        ({"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "5"}}}, False),
        ({"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "4"}}}, True),
    ],
)
def test_the_request_of_a_pod(spec, fits):
    found = run(ResourcesFit(), pod("new", **spec), [node("n", cpu="4")])
    assert found.rejected == ({} if fits else {"n": "UU Insufficient cpu"})


def ignoring(resource="", group=""):
    return ResourcesFit(ResourcesFitArguments(ScoringStrategy(), frozenset({resource}), frozenset({group})))


@pytest.mark.parametrize(
    "rule, asked, fits",
    [
        (ignoring(FOO), {FOO: "1"}, True),
        (ignoring(FOO), {"example.com/bar": "1"}, False),
        (ignoring(group="example.com"), {FOO: "1"}, True),
        (ignoring(group="other.com"), {FOO: "1"}, False),
        (ignoring("cpu"), {"cpu": "5"}, False),  # only extended resources can be ignored
        (ignoring("kubernetes.io/foo"), {"kubernetes.io/foo": "1"}, False),
        (ignoring(group="kubernetes.io"), {"kubernetes.io/foo": "1"}, False),
    ],
)
def test_ignored_resources(rule, asked, fits):
    assert (run(rule, asking(asked), [node("n")]).rejected == {}) is fits


@pytest.mark.parametrize(
    "offers, taken, asked, raw",
    [
        ({}, [], {"cpu": "1", "memory": "2Gi"}, 75),
        ({}, [], {"cpu": "4", "memory": "8Gi"}, 0),
        ({}, [], {"cpu": "0", "memory": "0"}, 100),  # an explicit 0 stays 0
        ({"cpu": "1", "memory": "1000Mi"}, [], {}, 85),  # 100m and 200Mi if not given: 90 and 80
        ({"cpu": "1", "memory": "1000Mi"}, [{}], {}, 70),  # also for the pods of the node
        ({}, [{"cpu": "1", "memory": "2Gi"}], {"cpu": "1", "memory": "2Gi"}, 50),
        ({}, [], {"cpu": "1", "memory": "4Gi"}, 62),  # 75 and 50, rounded down
        ({}, [], {"cpu": "3", "memory": "3Gi"}, 43),  # 25 and 62
        ({"cpu": "0"}, [], {"cpu": "0", "memory": "2Gi"}, 75),  # a resource that the node lacks is left out
        ({}, [{"cpu": "3", "memory": "0"}], {"cpu": "2", "memory": "4Gi"}, 25),  # more than there is: 0
    ],
)
def test_least_allocated(offers, taken, asked, raw):
    found = run(ResourcesFit(), asking(asked), [node("n", **{**BIG, **offers})], holding(*taken))
    assert found.raw == {"n": raw}
    assert found.scores in ({"n": raw}, None)  # not normalised


@pytest.mark.parametrize(
    "spec, raw",
    [
        (
            {"containers": [container(cpu="1", memory="2Gi")], "resources": {"requests": {"cpu": "4"}}},
            75,
        ),  # not used here
        ({"containers": [container(cpu="0", memory="0")], "initContainers": [container(cpu="2", memory="0")]}, 75),
        ({"containers": [container(cpu="1", memory="0")], "overhead": {"cpu": "1"}}, 75),
    ],
)
def test_the_scored_request_of_a_pod(spec, raw):
    assert run(ResourcesFit(), pod("new", **spec), [node("n", **BIG)]).raw == {"n": raw}


EVEN, FALLING = ((0, 0), (100, 100)), ((0, 100), (100, 0))
BOTH = (("cpu", 1), ("memory", 1))


@pytest.mark.parametrize(
    "strategy, asked, raw",
    [
        (ScoringStrategy(MOST_ALLOCATED), {"cpu": "1", "memory": "2Gi"}, 25),
        (ScoringStrategy(MOST_ALLOCATED), {"cpu": "4", "memory": "8Gi"}, 100),
        (ScoringStrategy(MOST_ALLOCATED), {"cpu": "9", "memory": "8Gi"}, 100),
        (ScoringStrategy(MOST_ALLOCATED), {"cpu": "1", "memory": "4Gi"}, 37),
        (
            ScoringStrategy(resources=(("cpu", 3), ("memory", 1))),
            {"cpu": "1", "memory": "4Gi"},
            68,
        ),  # 75, 75, 75 and 50
        (ScoringStrategy(resources=(("cpu", 1), (GPU, 1))), {"cpu": "1"}, 75),  # not requested, so left out
        (ScoringStrategy(resources=(("cpu", 1), (GPU, 1))), {"cpu": "1", GPU: "1"}, 62),  # 75 and 50
        (ScoringStrategy(RATIO, BOTH, EVEN), {"cpu": "1", "memory": "2Gi"}, 25),
        (ScoringStrategy(RATIO, BOTH, EVEN), {"cpu": "1", "memory": "0"}, 25),  # only scores above 0 enter
        (ScoringStrategy(RATIO, BOTH, EVEN), {"cpu": "0", "memory": "0"}, 0),
        (ScoringStrategy(RATIO, BOTH, EVEN), {"cpu": "2", "memory": "2Gi"}, 38),  # 37.5, half away from zero
        (ScoringStrategy(RATIO, BOTH, EVEN), {"cpu": "9", "memory": "8Gi"}, 100),
        (ScoringStrategy(RATIO, BOTH, FALLING), {"cpu": "1", "memory": "2Gi"}, 75),
        (ScoringStrategy(RATIO, (("cpu", 1),), ((30, 40), (60, 70))), {"cpu": "1"}, 40),  # before the first point
        (ScoringStrategy(RATIO, (("cpu", 1),), ((30, 40), (60, 70))), {"cpu": "2"}, 60),
        (ScoringStrategy(RATIO, (("cpu", 1),), ((30, 40), (60, 70))), {"cpu": "3"}, 70),  # after the last point
        (ScoringStrategy(RATIO, (("cpu", 1),), ((49, 10), (52, 0))), {"cpu": "2"}, 7),  # integers, towards zero
        (ScoringStrategy(RATIO, (("cpu", 1),), ((49, 0), (52, 10))), {"cpu": "2"}, 3),
    ],
)
def test_scoring_strategies(strategy, asked, raw):
    assert run(ResourcesFit(ResourcesFitArguments(strategy)), asking(asked), [node("n", **BIG, **{GPU: "2"})]).raw == {
        "n": raw
    }


@pytest.mark.parametrize(
    "asked, failures",
    [
        ({"cpu": "2"}, [("cpu", "requests 2 cpu, 1 of 4 is free")]),
        ({"cpu": "1500m"}, [("cpu", "requests 1500m cpu, 1 of 4 is free")]),
        ({"memory": "9Gi"}, [("memory", "requests 9Gi memory, 4Gi of 8Gi is free")]),
        ({GPU: "1"}, [(GPU, "requests 1 nvidia.com/gpu, 0 of 0 is free")]),
        (
            {"cpu": "2", "memory": "5Gi"},
            [("cpu", "requests 2 cpu, 1 of 4 is free"), ("memory", "requests 5Gi memory, 4Gi of 8Gi is free")],
        ),
    ],
)
def test_evidence_gives_the_amounts(asked, failures):
    found = run(ResourcesFit(), asking(asked), [node("n", **BIG)], holding({"cpu": "3", "memory": "4Gi"}))
    assert [(failure.term, failure.detail) for failure in found.failures["n"]] == failures


def test_evidence_of_too_many_pods():
    found = run(ResourcesFit(), asking({}), [node("n", pods="1")], holding({}, {}))
    assert [failure.detail for failure in found.failures["n"]] == ["requests 1 pods, 0 of 1 is free"]
