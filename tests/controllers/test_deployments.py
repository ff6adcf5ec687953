"""How a Deployment sizes its ReplicaSets, sync by sync."""

import msgspec
import pytest

from bayplan.controllers import deployments
from bayplan.controllers.deployments import DeploymentSize, ReplicaSetSize
from bayplan.wire.controllers import Controller


def written(replicas=None, **spec):
    return msgspec.convert({"spec": {"replicas": replicas} | spec}, Controller)


def rolling(max_surge=None, max_unavailable=None):
    limits = {"maxSurge": max_surge, "maxUnavailable": max_unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": {k: v for k, v in limits.items() if v is not None}}


def rs(name, replicas, available=None, created="", **noted):
    available = replicas if available is None else available
    return ReplicaSetSize(name, replicas, created or f"2026-01-0{ord(name[0]) % 9 + 1}", replicas, available, **noted)


@pytest.mark.parametrize(
    "replicas, strategy, surge, unavailable",
    [
        (None, None, 1, 0),  # one replica, 25 % of it rounded up and down
        (4, None, 1, 1),
        (10, None, 3, 2),
        (10, rolling("30%", "35%"), 3, 3),
        (2, rolling(0, "25%"), 0, 1),  # both are rounded to nothing: one by one
        (1, rolling(0, "1%"), 0, 1),
        (3, rolling(0, 5), 0, 3),  # never more than there are
        (3, rolling("100%", 0), 3, 0),
        (0, None, 0, 0),
        (3, rolling("lots", "few"), 0, 1),  # an API server admits no such text
        (3, rolling(-2, -1), 0, 1),  # nor anything negative
        (3, rolling("-5%", 0), 0, 1),
        (3, {"type": "Recreate"}, 0, 0),
    ],
)
def test_how_far_a_rollout_may_stray(replicas, strategy, surge, unavailable):
    size = deployments.size_of(written(replicas, **({"strategy": strategy} if strategy else {})))
    assert (size.max_surge, size.max_unavailable) == (surge, unavailable)


def test_recreate_is_no_rolling_update():
    assert deployments.size_of(written(3, strategy={"type": "Recreate"})).rolling is False


FOUR = DeploymentSize(4, True, 1, 1)
SAFE = DeploymentSize(4, True, 1, 0)
RISKY = DeploymentSize(4, True, 0, 1)
TEN = DeploymentSize(10, True, 3, 2)


@pytest.mark.parametrize(
    "size, new, old, expected",
    [
        # A first ReplicaSet takes what maxSurge leaves.
        (FOUR, None, [], (4, {})),
        (FOUR, None, [rs("a", 4)], (1, {})),
        (RISKY, None, [rs("a", 4)], (0, {})),
        # Old replicas leave as far as maxUnavailable and the available new ones allow.
        (FOUR, rs("n", 1, 0), [rs("a", 4)], (None, {"a": 3})),
        (SAFE, rs("n", 1, 0), [rs("a", 4)], (None, {})),
        (SAFE, rs("n", 1, 1), [rs("a", 4)], (None, {"a": 3})),
        (RISKY, rs("n", 0, 0), [rs("a", 4)], (None, {"a": 3})),
        (FOUR, rs("n", 2, 0), [rs("a", 3)], (None, {})),
        (FOUR, rs("n", 1, 0), [rs("a", 3)], (2, {})),
        (FOUR, rs("n", 4), [rs("a", 0)], (None, {})),
        # Replicas beyond the Deployment's go first.
        (FOUR, rs("n", 6), [rs("a", 2)], (4, {})),
        # Unavailable old replicas go first, oldest ReplicaSet first, then available ones.
        (SAFE, rs("n", 1, 1), [rs("a", 2, 1), rs("b", 2, 2)], (None, {"a": 1})),
        (TEN, rs("n", 0, 0), [rs("a", 8, 5), rs("b", 5, 5)], (None, {"a": 3})),
        # As rolling.go says: 13 pods, 8 must be available, 5 new ones are not, so nothing can go.
        (TEN, rs("n", 5, 0), [rs("a", 8, 7)], (None, {})),
        (TEN, rs("n", 8, 7), [rs("a", 5, 0)], (None, {"a": 1})),
    ],
)
def test_a_rolling_update(size, new, old, expected):
    assert deployments.sync(size, new, old, old_pods_exist=True) == expected


RECREATED = DeploymentSize(4, False, 0, 0)


@pytest.mark.parametrize(
    "new, old, old_pods_exist, expected",
    [
        (None, [rs("a", 4), rs("b", 0)], True, (None, {"a": 0})),
        (None, [rs("a", 0)], True, (None, {})),  # the old pods are still terminating
        (None, [rs("a", 0)], False, (4, {})),
        (rs("n", 0), [rs("a", 0)], False, (4, {})),
        (rs("n", 4), [rs("a", 0)], False, (None, {})),
    ],
)
def test_recreate_waits_until_the_last_old_pod_is_gone(new, old, old_pods_exist, expected):
    assert deployments.sync(RECREATED, new, old, old_pods_exist=old_pods_exist) == expected


def noted(name, replicas, desired=10, most=13, **more):
    return rs(name, replicas, desired=desired, most=most, **more)


def half(name):
    return noted(name, 5, desired=8, most=10)


@pytest.mark.parametrize(
    "size, new, old, expected",
    [
        # The only active ReplicaSet is scaled first, also if its template is the old one.
        (DeploymentSize(15, True, 4, 3), None, [noted("a", 10)], (None, {"a": 15})),
        (DeploymentSize(5, True, 2, 1), noted("n", 10), [rs("a", 0)], (5, {})),
        (DeploymentSize(0, True, 0, 0), noted("n", 8), [noted("a", 5)], (0, {"a": 0})),
        # Several are scaled in proportion: 13 pods become 20.
        (DeploymentSize(15, True, 5, 3), noted("n", 5), [noted("a", 8)], (8, {"a": 12})),
        (DeploymentSize(5, True, 2, 1), noted("n", 5), [noted("a", 8)], (3, {"a": 4})),
        # Among equals the newest grows and the oldest shrinks.
        (DeploymentSize(9, True, 2, 2), None, [half("a"), half("b")], (None, {"b": 6})),
        (DeploymentSize(7, True, 2, 1), None, [half("a"), half("b")], (None, {"a": 4})),
        # If the Deployment has its size, it is rolled out.
        (TEN, noted("n", 3, available=3), [noted("a", 10)], (None, {"a": 5})),
    ],
)
def test_a_scaled_deployment_keeps_the_shares_of_its_replica_sets(size, new, old, expected):
    assert deployments.sync(size, new, old, old_pods_exist=True) == expected


@pytest.mark.parametrize(
    "new, old, expected",
    [
        (None, [noted("a", 10)], (None, {"a": 4})),  # it scales
        (None, [rs("a", 4)], (None, {})),  # it does not roll out
        (rs("n", 1), [rs("a", 3)], (None, {"a": 4})),  # in proportion: one more may be there
    ],
)
def test_a_paused_deployment_scales_and_does_not_roll_out(new, old, expected):
    paused = msgspec.structs.replace(FOUR, paused=True)
    assert deployments.sync(paused, new, old, old_pods_exist=True) == expected


def test_a_saturated_new_replica_set_leaves_nothing_to_old_ones_while_paused():
    paused = msgspec.structs.replace(FOUR, paused=True)
    assert deployments.sync(paused, noted("n", 4, desired=4, most=5), [rs("a", 2)], old_pods_exist=True) == (
        None,
        {"a": 0},
    )
