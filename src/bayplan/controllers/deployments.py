"""
How a Deployment sizes its ReplicaSets (pkg/controller/deployment: rolling.go, recreate.go, sync.go).

One call is one sync of the controller: sizes in, sizes out. Creates no pods and compares no templates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from bayplan.controllers.scaled_values import scaled
from bayplan.wire.controllers import Controller

ROLLING_UPDATE, RECREATE = "RollingUpdate", "Recreate"
DEFAULT_SHARE = "25%"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
REVISION = "deployment.kubernetes.io/revision"


class DeploymentSize(msgspec.Struct, frozen=True):
    """How many replicas a Deployment has, and how far it may stray from that during a rollout."""

    replicas: int
    rolling: bool
    max_surge: int
    max_unavailable: int
    paused: bool = False

    @property
    def most(self) -> int:
        """The number of pods that are never exceeded."""
        return self.replicas + self.max_surge


class ReplicaSetSize(msgspec.Struct, frozen=True):
    """
    A ReplicaSet: how many replicas it should have, has, and has available.

    `desired` and `most` are what the controller has noted on it of the Deployment, None if nothing is noted.
    """

    name: str
    replicas: int
    created: str = ""
    n_active: int = 0
    n_available: int = 0
    desired: int | None = None
    most: int | None = None


def size_of(deployment: Controller) -> DeploymentSize:
    """The numbers of a Deployment, with the API server's defaults."""
    spec, strategy = deployment.spec, deployment.spec.strategy
    replicas = 1 if spec.replicas is None else spec.replicas
    if strategy is not None and strategy.type == RECREATE:
        return DeploymentSize(replicas, rolling=False, max_surge=0, max_unavailable=0, paused=spec.paused)
    rolling = strategy.rolling_update if strategy else None
    surge = rolling.max_surge if rolling and rolling.max_surge is not None else DEFAULT_SHARE
    missing = rolling.max_unavailable if rolling and rolling.max_unavailable is not None else DEFAULT_SHARE
    max_surge, max_unavailable = scaled(surge, replicas, up=True), scaled(missing, replicas, up=False)
    if not max_surge and not max_unavailable:
        max_unavailable = 1  # a percentage can be rounded down to nothing; then pods are replaced one by one
    return DeploymentSize(replicas, True, max_surge, min(max_unavailable, replicas), paused=spec.paused)


def sync(
    deployment: DeploymentSize, new: ReplicaSetSize | None, old: Sequence[ReplicaSetSize], *, old_pods_exist: bool
) -> tuple[int | None, dict[str, int]]:
    """
    The size of the ReplicaSet with the present template, and the new sizes of the old ones by name.

    Sizes that stay are left out. The first is None also as long as the ReplicaSet is not created. `old_pods_exist`
    counts pods that are still terminating, for which Recreate waits.
    """
    everyone = [*old, new] if new is not None else list(old)
    noted = {one.desired for one in everyone if one.replicas and one.desired is not None}
    if deployment.paused or any(desired != deployment.replicas for desired in noted):
        sizes = _scale(deployment, new, old)
        if sizes or deployment.paused:
            return sizes.pop(new.name, None) if new else None, sizes
    if not deployment.rolling:
        return _recreate(deployment, new, old, old_pods_exist=old_pods_exist)
    size = _size_of_new(deployment, new, everyone)
    if new is None or size != new.replicas:
        return size, {}
    return None, _shrink_old(deployment, new, old)


def by_age(sets: Sequence[ReplicaSetSize]) -> list[ReplicaSetSize]:
    return sorted(sets, key=lambda one: (one.created, one.name))


def _size_of_new(deployment: DeploymentSize, new: ReplicaSetSize | None, everyone: Sequence[ReplicaSetSize]) -> int:
    present = new.replicas if new else 0
    if present >= deployment.replicas:
        return deployment.replicas
    room = deployment.most - sum(one.replicas for one in everyone)
    return present + max(0, min(room, deployment.replicas - present))


def _shrink_old(deployment: DeploymentSize, new: ReplicaSetSize, old: Sequence[ReplicaSetSize]) -> dict[str, int]:
    """Unavailable replicas first, then as many available ones as may be missing; old ReplicaSets before newer ones."""
    least = deployment.replicas - deployment.max_unavailable
    sizes = {one.name: one.replicas for one in by_age(old) if one.replicas}
    n_unavailable = {one.name: max(0, one.replicas - one.n_available) for one in old}
    n_removable = sum(sizes.values()) + new.replicas - least - (new.replicas - new.n_available)
    if n_removable <= 0:
        return {}
    shrunk: dict[str, int] = {}
    for name, size in sizes.items():
        n_removed = min(n_removable, n_unavailable[name])
        if n_removed > 0:
            shrunk[name] = size - n_removed
            n_removable -= n_removed
    n_spare = new.n_available + sum(one.n_available for one in old if one.replicas) - least
    for name, size in sizes.items():
        left = shrunk.get(name, size)
        n_removed = min(left, n_spare)
        if n_removed > 0:
            shrunk[name] = left - n_removed
            n_spare -= n_removed
    return shrunk


def _recreate(
    deployment: DeploymentSize, new: ReplicaSetSize | None, old: Sequence[ReplicaSetSize], *, old_pods_exist: bool
) -> tuple[int | None, dict[str, int]]:
    """All old replicas go, and only when the last pod is gone the new ones come."""
    active = {one.name: 0 for one in old if one.replicas}
    if active or old_pods_exist:
        return None, active
    return None if new is not None and new.replicas == deployment.replicas else deployment.replicas, {}


def _scale(deployment: DeploymentSize, new: ReplicaSetSize | None, old: Sequence[ReplicaSetSize]) -> dict[str, int]:
    """New sizes if the Deployment is scaled: of the only active ReplicaSet, or of all in proportion."""
    everyone = [*by_age(old)[::-1], *([new] if new is not None else [])]
    active = [one for one in everyone if one.replicas]
    if len(active) <= 1:
        only = active[0] if active else new or (everyone[0] if everyone else None)
        return {only.name: deployment.replicas} if only and only.replicas != deployment.replicas else {}
    if new is not None and (new.replicas == new.desired == new.n_available == deployment.replicas):
        return {one.name: 0 for one in old if one.replicas}
    return _scale_in_proportion(deployment, active) if deployment.rolling else {}


def _scale_in_proportion(deployment: DeploymentSize, active: Sequence[ReplicaSetSize]) -> dict[str, int]:
    n_added = (deployment.most if deployment.replicas else 0) - sum(one.replicas for one in active)
    if not n_added:
        return {}
    # Largest first; among equals the newest grows and the oldest shrinks.
    ordered = by_age(active)[:: -1 if n_added > 0 else 1]
    ordered.sort(key=lambda one: -one.replicas)
    n_left, sizes = n_added, {}
    for one in ordered:
        share = _fraction(deployment, one, sum(each.n_active for each in active))
        share = min(share, n_left) if n_added > 0 else max(share, n_left)
        share = share if n_left else 0
        sizes[one.name] = one.replicas + share
        n_left -= share
    first = ordered[0].name
    sizes[first] = max(0, sizes[first] + n_left)
    return {one.name: sizes[one.name] for one in active if sizes[one.name] != one.replicas}


def _fraction(deployment: DeploymentSize, one: ReplicaSetSize, n_pods: int) -> int:
    """How many replicas the ReplicaSet gains if it keeps its share of the Deployment."""
    if not deployment.replicas:
        return -one.replicas
    before = one.most or n_pods
    if not before:
        return 0
    exact = one.replicas * deployment.most / before
    return math.floor(exact + 0.5) - one.replicas  # k8s.io/utils/integer rounds halves away from zero
