"""Which pods of a Job are missing (pkg/controller/job). Creates no pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bayplan.controllers import deletion_order
from bayplan.controllers.desired_state import PodEntry
from bayplan.wire.controllers import Controller

INDEXED = "Indexed"
_FINAL_CONDITIONS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")


def is_indexed(job: Controller) -> bool:
    """Whether each pod of the Job has a completion index."""
    return job.spec.completion_mode == INDEXED


def n_missing(job: Controller, members: Sequence[PodEntry]) -> int:
    """How many pods the Job's controller would create now."""
    if job.spec.suspend or _is_finished(job):
        return 0
    n_active = sum(member.active for member in members)
    return max(0, _n_desired(job, members, n_active) - n_active)


def surplus(job: Controller, members: Sequence[PodEntry]) -> list[PodEntry]:
    """The active pods that the Job's controller would delete: all if it is suspended, else those beyond its size."""
    if _is_finished(job):
        return []
    active = [member for member in members if member.active]
    n_removed = len(active) if job.spec.suspend else max(0, len(active) - max(0, _n_desired(job, members, len(active))))
    if not is_indexed(job):
        return deletion_order.first_deleted_of_job(active, n_removed)
    doubled = _doubled_indexes(job, active)
    left = [member for member in active if member not in doubled]
    return doubled + deletion_order.first_deleted_of_job(left, max(0, n_removed - len(doubled)))


def _doubled_indexes(job: Controller, active: Sequence[PodEntry]) -> list[PodEntry]:
    """All but one pod of each index, and pods without an index of the Job (appendDuplicatedIndexPodsForRemoval)."""
    by_index: dict[str, list[PodEntry]] = {}
    for member in active:
        by_index.setdefault(member.index, []).append(member)
    found = []
    for index, pods in by_index.items():
        is_known = index.isdecimal() and int(index) < (job.spec.completions or 0)
        found += deletion_order.first_deleted_of_job(pods, len(pods) - is_known)
    return found


def missing_indexes(job: Controller, members: Sequence[PodEntry]) -> list[int]:
    """The completion indexes of the pods to create, lowest first."""
    busy = {member.index for member in members if member.active or member.succeeded}
    done = set(_ranges(job.status.completed_indexes))
    free = (i for i in range(job.spec.completions or 0) if i not in done and str(i) not in busy)
    return [index for index, _ in zip(free, range(n_missing(job, members)), strict=False)]


def _n_desired(job: Controller, members: Sequence[PodEntry], n_active: int) -> int:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    n_succeeded = max(job.status.succeeded, sum(member.succeeded for member in members))
    completions = job.spec.completions
    if completions is None and job.spec.parallelism is None:
        completions = 1
    if completions is None:  # a work queue: once one pod has succeeded, no new ones are created
        return n_active if n_succeeded else parallelism
    return min(parallelism, completions - n_succeeded)


def _is_finished(job: Controller) -> bool:
    return any(c.type in _FINAL_CONDITIONS and c.status == "True" for c in job.status.conditions or ())


def _ranges(text: str) -> Iterator[int]:
    """The indexes that `1,3-5` denotes."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
