"""
What controllers write on their objects: sizes and revisions of ReplicaSets, revisions, and Jobs that are complete.

Other controllers, and the next rollout, read it. Writes nothing itself.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.controllers import deployments, jobs
from bayplan.controllers.deployments import ReplicaSetSize
from bayplan.controllers.desired_state import PodEntry
from bayplan.controllers.rollouts import DeploymentRollout, JobRollout, Rollout, StatefulSetRollout
from bayplan.model import timestamps
from bayplan.simulating.store import WallClock
from bayplan.wire.controllers import Controller, ControllerCondition

HISTORY_LIMIT = 10  # revisionHistoryLimit, by default
_NANOSECONDS = 1_000_000_000


def seconds_until_available(entry: PodEntry, controller: Controller, wall: WallClock) -> float:
    """How long a pod that is ready must stay so before it counts as available."""
    if not entry.ready_since:
        return 0.0
    since = timestamps.nanoseconds(entry.ready_since) / _NANOSECONDS
    return since + controller.spec.min_ready_seconds - wall.now().timestamp()


def revision_of(replica_set: Controller) -> int:
    """The number of the revision that the ReplicaSet was made for, 0 if it has none."""
    written = (replica_set.metadata.annotations or {}).get(deployments.REVISION, "")
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 10 else 0


def with_size(replica_set: Controller, size: ReplicaSetSize, revision: int) -> Controller:
    """The ReplicaSet with the size and the notes of its Deployment; the same object if it has them."""
    notes = {
        deployments.DESIRED: None if size.desired is None else str(size.desired),
        deployments.MAX_REPLICAS: None if size.most is None else str(size.most),
        deployments.REVISION: str(revision) if revision else None,
    }
    before = replica_set.metadata.annotations or {}
    annotations = {**before, **{name: text for name, text in notes.items() if text is not None}}
    if annotations == before and replica_set.spec.replicas == size.replicas:
        return replica_set
    return msgspec.structs.replace(
        replica_set,
        metadata=msgspec.structs.replace(replica_set.metadata, annotations=annotations),
        spec=msgspec.structs.replace(replica_set.spec, replicas=size.replicas),
    )


def beyond_history(rollout: DeploymentRollout) -> list[str]:
    """The ReplicaSets of a complete rollout that are deleted, oldest first (cleanupDeployment)."""
    limit = rollout.deployment.spec.revision_history_limit
    empty = [
        name
        for name, one in rollout.sets.items()
        if name != rollout.present and not one.size.replicas and not rollout.pods.of_set(name).n_existing
    ]
    empty.sort(key=lambda name: revision_of(rollout.sets[name].controller))
    n_deleted = len(empty) - (HISTORY_LIMIT if limit is None else limit)
    return empty[: max(0, n_deleted)]


def with_status(controller: Any, rollout: Rollout) -> Any:
    """The controller with the status that is read elsewhere; the same object if it has it."""
    if isinstance(rollout, StatefulSetRollout):
        state = rollout.state
        current = state.update_revision if rollout.is_complete() else state.current_revision
        revisions = {"update_revision": state.update_revision, "current_revision": current}
        status = msgspec.structs.replace(controller.status, **revisions)
        return controller if status == controller.status else msgspec.structs.replace(controller, status=status)
    if isinstance(rollout, JobRollout) and not jobs.is_finished(controller) and _is_done(controller, rollout):
        complete = ControllerCondition(type="Complete", status="True")
        conditions = [*(controller.status.conditions or ()), complete]
        status = msgspec.structs.replace(controller.status, conditions=conditions)
        return msgspec.structs.replace(controller, status=status)
    return controller


def _is_done(job: Controller, rollout: JobRollout) -> bool:
    """Whether as many pods have succeeded as the Job asks for, and none is left."""
    pods = list(rollout.pods.values())
    if job.spec.suspend or any(pod.active or pod.terminating for pod in pods) or jobs.n_missing(job, pods):
        return False
    n_succeeded = max(job.status.succeeded, sum(pod.succeeded for pod in pods))
    completions = job.spec.completions
    if completions is None:
        completions = 1
    return n_succeeded >= completions
