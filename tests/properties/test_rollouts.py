"""Rollouts stay within their limits, complete if there is room, and take the same steps for the same update."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.controllers import deployments
from rollout_scenes import controller, daemons, deployed, node, pod_of, stateful, stepper

LIMITS = st.one_of(st.integers(0, 4), st.sampled_from(["0%", "10%", "25%", "34%", "50%", "100%"]))


@st.composite
def updates(draw, roomy=False):
    """A cluster, a Deployment that runs on it, and the Deployment after the change."""
    n_nodes, replicas = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    names = [f"n{number}" for number in range(n_nodes)]
    nodes = [node(name, cpu="64" if roomy else str(draw(st.integers(1, 6)))) for name in names]
    where = [draw(st.sampled_from(names)) for _ in range(replicas)]
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": draw(LIMITS), "maxUnavailable": draw(LIMITS)},
    }
    if draw(st.booleans()):
        strategy = {"type": "Recreate"} if draw(st.booleans()) else strategy
    ready = None if roomy else [draw(st.booleans()) for _ in where]
    old = controller("Deployment", replicas, strategy=strategy)
    after = replicas if draw(st.booleans()) else draw(st.integers(0, 6))
    cpu = "1" if roomy else draw(st.sampled_from(["1", "2", "100"]))
    new = controller("Deployment", after, image="web:2", cpu=cpu, strategy=strategy)
    return [*nodes, *deployed(old, *where, ready=ready)], new


def watched(state, new):
    """The stepper, and the numbers of active and available pods after each sync."""
    steps, seen = stepper(state, new, preempts=False), []
    for rollout in steps.rollouts:
        sync = type(rollout).sync

        def watch(rollout=rollout, sync=sync):
            actions = sync(rollout)
            active = [pod for pod in rollout.pods.values() if pod.active and pod.name not in actions.deleted]
            seen.append((len(active) + len(actions.created), sum(pod.ready for pod in active)))
            return actions

        rollout_class = type(f"Watched{type(rollout).__name__}", (type(rollout),), {"sync": lambda self, w=watch: w()})
        steps.rollouts = [rollout_class(**{f: getattr(rollout, f) for f in rollout.__struct_fields__})]
        watch.__defaults__ = (steps.rollouts[0], sync)
    return steps, seen


@given(updates())
@settings(max_examples=150, deadline=None)
def test_pods_stay_within_the_limits(update):
    state, new = update
    size = deployments.size_of(msgspec.convert(new, deployments.Controller))
    before = sum(one["kind"] == "Pod" for one in state)
    steps, seen = watched(state, new)
    (result,) = steps.run()
    most = max(before, size.most)
    n_ready = sum(one["kind"] == "Pod" and one["status"]["conditions"][0]["status"] == "True" for one in state)
    assert all(n_active <= most for n_active, _ in seen)
    if size.rolling:  # what was not available before is not lost by the rollout
        least = min(n_ready, before, size.replicas - size.max_unavailable)
        assert all(n_available >= least for _, n_available in seen)
    if result.is_complete:
        assert len(steps.rollouts[0].pods) == size.replicas
        assert all(pod.ready for pod in steps.rollouts[0].pods.values())
    else:
        assert result.why
        assert result.stuck_at >= 1


@given(updates(roomy=True))
@settings(max_examples=100, deadline=None)
def test_a_rollout_with_room_always_completes(update):
    state, new = update
    steps = stepper(state, new)
    (result,) = steps.run()
    assert result.is_complete
    assert {steps.rollouts[0].set_of[name] for name in steps.rollouts[0].pods} <= {steps.rollouts[0].present}


@given(updates())
@settings(max_examples=50, deadline=None)
def test_the_same_update_takes_the_same_steps(update):
    state, new = update
    assert stepper(state, new).run() == stepper(state, new).run()


@given(updates())
@settings(max_examples=50, deadline=None)
def test_a_rollout_that_completes_ends_in_a_state_that_fits(update):
    """The other way round does not hold: that the end fits does not mean that the rollout gets there."""
    state, new = update
    size = deployments.size_of(msgspec.convert(new, deployments.Controller))
    if stepper(state, new, preempts=False).run()[0].is_complete and size.replicas:
        (end,) = stepper(state, new, preempts=False).end_state()
        assert len(end.steps) == 1


@given(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5), st.booleans(), st.sampled_from(["1", "3", "100"]))
@settings(max_examples=60, deadline=None)
def test_a_stateful_set_misses_one_pod_at_a_time(before, after, partition, parallel, cpu):
    policy = {"podManagementPolicy": "Parallel"} if parallel else {}
    strategy = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}
    nodes = [node(name, cpu="8") for name in "abc"]
    state = [*nodes, *stateful(controller("StatefulSet", before), *("abcab"[:before]))]
    steps, seen = watched(state, controller("StatefulSet", after, image="2", cpu=cpu, **policy, **strategy))
    (result,) = steps.run()
    assert all(n_available >= min(before, after) - 1 for _, n_available in seen)
    assert result.is_stuck != (cpu != "100" or after <= partition)
    assert not result.is_held_back or after <= partition
    if not result.is_stuck:
        revisions = {name: pod.revision != "web-old" for name, pod in steps.rollouts[0].pods.items()}
        assert revisions == {f"web-{at}": at >= partition for at in range(after)}


@given(st.integers(1, 5), LIMITS, LIMITS, st.sampled_from(["1", "3", "100"]))
@settings(max_examples=60, deadline=None)
def test_a_daemon_set_stays_within_its_limits(n_nodes, surge, unavailable, cpu):
    names = [f"n{number}" for number in range(n_nodes)]
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    state = [*(node(name, cpu="4") for name in names), *daemons(controller("DaemonSet"), *names)]
    steps, seen = watched(state, controller("DaemonSet", cpu=cpu, updateStrategy=strategy))
    (result,) = steps.run()
    scaled = deployments.scaled
    n_surge = scaled(surge, n_nodes, up=True)
    n_missing = 0 if n_surge else max(1, scaled(unavailable, n_nodes, up=True))
    assert all(n_nodes - n_missing <= n_available for _, n_available in seen)
    assert all(n_active <= n_nodes + n_surge for n_active, _ in seen)
    assert result.is_complete == (cpu != "100")


@st.composite
def odd_states(draw):
    """Controllers of any kind whose pods are in any state, and any change of them."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 3)))]
    objects, change = [node(name, cpu=draw(st.sampled_from(["2", "8"]))) for name in names], []
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)):
        name = kind.lower()
        old = controller(kind, draw(st.integers(0, 3)), name, **draw(SPECS[kind]))
        cpu, priority = draw(st.sampled_from(["1", "2", "64"])), draw(st.sampled_from([0, 10]))
        new = controller(
            kind, draw(st.integers(0, 4)), name, cpu=cpu, image=draw(st.sampled_from(["web:1", "web:2"])),
            pod={"priority": priority}, **draw(SPECS[kind]),
        )  # fmt: skip
        pods = [draw(odd_pods(old, name, number, names)) for number in range(draw(st.integers(0, 4)))]
        if kind == "Deployment":
            found = deployed(old, *(["n0"] * len(pods)))
            pods = [one | {"metadata": own["metadata"]} for one, own in zip(pods, found[2:], strict=True)]
            objects += found[: draw(st.integers(1, 2))]  # with or without its ReplicaSet
        else:
            objects.append(old)
        objects += pods
        change.append(new)
    return objects, change


@st.composite
def odd_pods(draw, owner, name, number, names):
    phase = draw(st.sampled_from(["Running", "Pending", "Failed", "Succeeded"]))
    where = draw(st.sampled_from([*names, ""])) if phase == "Pending" else draw(st.sampled_from([*names, "gone"]))
    labels = {"controller-revision-hash": draw(st.sampled_from(["a", "b"]))} if draw(st.booleans()) else {}
    pod = pod_of(owner, f"{name}-{number}", where, ready=draw(st.booleans()), labels=labels)
    pod["status"]["phase"] = phase
    if draw(st.booleans()):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
_ROLLING = st.fixed_dictionaries({"maxSurge": LIMITS, "maxUnavailable": LIMITS})
_PARTITION = st.fixed_dictionaries({"partition": st.integers(0, 4)})
SPECS = {
    "Deployment": st.fixed_dictionaries(
        {
            "strategy": st.one_of(
                st.just({"type": "Recreate"}), st.fixed_dictionaries({"type": st.just(""), "rollingUpdate": _ROLLING})
            ),
            "paused": st.booleans(),
        }
    ),
    "StatefulSet": st.fixed_dictionaries(
        {
            "updateStrategy": st.one_of(
                st.just({"type": "OnDelete"}), st.fixed_dictionaries({"type": st.just(""), "rollingUpdate": _PARTITION})
            ),
            "podManagementPolicy": st.sampled_from(["OrderedReady", "Parallel"]),
            "ordinals": st.fixed_dictionaries({"start": st.integers(0, 2)}),
        }
    ),
    "DaemonSet": st.fixed_dictionaries(
        {
            "updateStrategy": st.one_of(
                st.just({"type": "OnDelete"}), st.fixed_dictionaries({"type": st.just(""), "rollingUpdate": _ROLLING})
            )
        }
    ),
    "ReplicaSet": st.just({}),
    "Job": st.fixed_dictionaries({"parallelism": st.integers(0, 3), "suspend": st.booleans()}),
}


@given(odd_states(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_state_is_stepped_through_to_an_end(update, final):
    state, change = update
    steps = stepper(state, *change)
    steps.scheduler.schedule()
    results = steps.end_state() if final else steps.run()
    assert len(results) == len(change)
    for result, rollout in zip(results, steps.rollouts, strict=True):
        assert "did not come to an end" not in result.why
        assert bool(result.why) != (result.is_complete or result.is_held_back)
        for name, pod in rollout.pods.items():
            placed = steps.index.records.get(f"shop/{name}")
            if pod.active and pod.assigned:
                assert placed is not None
                assert pod.node == placed.shares[0][0]
            elif pod.active:
                assert placed is None
