"""A tenant that changes a large pod of its own again and again does not hold up what others do."""

import asyncio

import msgspec

from bayplan.kube_api.decoding import Key
from bayplan.watching import resources
from bayplan.watching.large_changes import MAX_CATCH_UP_SECONDS, REST_FACTOR, PacedPodHandler
from bayplan.watching.resources import ResourceHandler
from bayplan.wire.pods import Pod
from kube_api.fake_time import SkippedTime
from live_loop.simulated import Simulation

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(name, n_terms, labels=None, *, node="one", uid="", phase="Running"):
    terms = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": str(i)}}}
        for i in range(n_terms)
    ]
    written = {
        "metadata": {"namespace": "web", "name": name, "uid": uid or name, "labels": labels or {}},
        "spec": {
            "nodeName": node,
            "affinity": {"podAntiAffinity": {REQUIRED: terms}},
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": phase},
    }  # fmt: skip
    return msgspec.convert(written, Pod)


class Scene:
    """A handler in front of a cluster on which counting a pod with its terms takes a second."""

    def __init__(self):
        self.cluster, self.time, self.applied = Simulation(), SkippedTime(), []
        self.cluster.add_node("one")
        watched = next(one for one in resources.scheduling_resources(self.cluster.state) if one.item_type is Pod)
        put = watched.put

        def slow(written):
            if written.spec.affinity is not None:
                self.time.now += 1.0
                self.applied.append(written.metadata.name)
            put(written)

        watched = msgspec.structs.replace(watched, put=slow)
        inner = ResourceHandler(watched, lambda: None, lambda _resource: None)
        state = self.cluster.state
        self.handler = PacedPodHandler(
            inner,
            state.size_of_large_pod,
            state.is_counted,
            clock=self.time.clock,
            sleep=self.time.sleep,
        )

    def labels_of(self, name):
        return self.cluster.state.index.records[f"web/{name}"].workload.labels


async def test_of_many_changes_of_a_large_pod_the_last_is_applied_with_a_rest():
    scene = Scene()
    scene.handler.upsert(pod("large", 300))
    assert scene.applied == ["large"], "a pod that is not counted yet takes room on its node at once"
    running = asyncio.create_task(scene.handler.run())
    for i in range(50):
        scene.handler.upsert(pod("large", 300, {"x": str(i)}))
        scene.handler.upsert(pod("small", 3, {"x": str(i)}))
    assert scene.applied.count("large") == 1
    assert scene.applied.count("small") == 50, "other pods do not wait"
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    assert scene.applied.count("large") == 2
    assert scene.labels_of("large") == {"x": "49"}
    assert scene.time.slept == [REST_FACTOR * 1.0]


async def test_a_new_large_pod_takes_room_at_once_and_its_terms_wait():
    scene = Scene()
    scene.handler.synced()
    index = scene.cluster.state.index
    for i in range(50):
        scene.handler.upsert(pod("large", 300, {"app": "a"}, uid=str(i)))
        assert scene.labels_of("large") == {"app": "a"}
        assert index.records["web/large"].workload.needs.requests.amounts == (("cpu", 1000),)
        if i < 49:
            scene.handler.delete(Key("web", "large"), str(i))
    assert scene.applied == [], "a tenant that deletes and creates it again and again holds up nobody"
    assert scene.handler.apply_next()
    assert scene.applied == ["large"]
    assert len(index.records["web/large"].workload.needs.affinity.anti_required) == 300


async def test_a_new_leader_catches_up_first_but_not_for_long():
    scene = Scene()
    scene.handler.synced()
    for i in range(20):
        scene.handler.upsert(pod(f"large-{i}", 300))
    await scene.handler.catch_up()
    assert len(scene.applied) == MAX_CATCH_UP_SECONDS
    assert set(scene.time.slept) == {0}


async def test_a_new_pod_that_cannot_be_read_closes_its_node():
    scene = Scene()
    scene.handler.synced()
    broken = pod("large", 300)
    resources_ = msgspec.structs.replace(broken.spec.containers[0].resources, requests={"cpu": "much"})
    containers = [msgspec.structs.replace(broken.spec.containers[0], resources=resources_)]
    broken = msgspec.structs.replace(broken, spec=msgspec.structs.replace(broken.spec, containers=containers))
    scene.handler.upsert(broken)
    while scene.handler.apply_next():
        pass
    assert len(scene.cluster.state.nodes_set_aside) == 1


async def test_the_smallest_comes_first():
    scene = Scene()
    for name, n_terms in (("huge", 900), ("large", 60)):
        scene.handler.upsert(pod(name, n_terms))
        scene.handler.upsert(pod(name, n_terms, {"x": "y"}))
    scene.applied.clear()
    while scene.handler.apply_next():
        pass
    assert scene.applied == ["large", "huge"]


async def test_a_pod_that_ends_is_replaced_or_moves_does_not_wait():
    scene = Scene()
    scene.cluster.add_node("two")
    records = scene.cluster.state.index.records
    for after in (
        lambda: scene.handler.upsert(pod("large", 300, phase="Succeeded")),
        lambda: scene.handler.delete(Key("web", "large"), "large"),
        lambda: scene.handler.upsert(pod("large", 300, uid="other")),
        lambda: scene.handler.upsert(pod("large", 300, node="two", uid="other")),
    ):
        if "web/large" not in records:
            scene.handler.upsert(pod("large", 300))
        scene.handler.upsert(pod("large", 300, {"x": "late"}, uid=records["web/large"].workload.uid))
        after()
        assert not scene.handler.apply_next(), "nothing is left to be applied"
    assert records["web/large"].shares == (("two", 1),)
    assert scene.labels_of("large") == {}


async def test_a_large_change_that_cannot_be_read_sets_the_pod_aside():
    scene = Scene()
    scene.handler.upsert(pod("large", 300))
    broken = pod("large", 300, {"x": "y"})
    scene.handler.upsert(
        msgspec.structs.replace(broken, status=msgspec.structs.replace(broken.status, start_time="now"))
    )
    assert scene.handler.apply_next()
    assert scene.labels_of("large") == {}, "it counts as it was last read"
