"""Which pods of a Job are missing (pkg/controller/job). Creates no pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bayplan.controllers import deletion_order
from bayplan.controllers.desired_state import PodEntry
from bayplan.wire.controllers import Controller

INDEXED = "Indexed"
OWN_CONTROLLER = "kubernetes.io/job-controller"
UNKNOWN_INDEX = -1
_FINAL_CONDITIONS = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
_INDEX = re.compile(r"\+?0*([0-9]{1,10})", re.ASCII)  # more digits are beyond the completions of any Job


def is_indexed(job: Controller) -> bool:
    """Whether each pod of the Job has a completion index."""
    return job.spec.completion_mode == INDEXED


def manager_of(job: Controller) -> str:
    """The controller that manages the Job, if it is not Kubernetes' own."""
    manager = job.spec.managed_by
    return "" if manager == OWN_CONTROLLER else manager


def n_missing(job: Controller, members: Sequence[PodEntry]) -> int:
    """How many pods the Job's controller would create now."""
    return sum(map(len, _missing_ranges(job, members))) if is_indexed(job) else _n_lacking(job, members)


def _n_lacking(job: Controller, members: Sequence[PodEntry]) -> int:
    if job.spec.suspend or is_finished(job):
        return 0
    n_active = sum(member.active for member in members)
    return max(0, _n_desired(job, members, n_active) - n_active)


def surplus(job: Controller, members: Sequence[PodEntry]) -> list[PodEntry]:
    """The active pods that the Job's controller would delete: all if it is suspended, else those beyond its size."""
    if is_finished(job):
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
    by_index: dict[int, list[PodEntry]] = {}
    for member in active:
        by_index.setdefault(_index_of(member.index), []).append(member)
    found = []
    for index, pods in by_index.items():
        is_known = 0 <= index < (_completions(job) or 0)
        found += deletion_order.first_deleted_of_job(pods, len(pods) - is_known)
    return found


def missing_indexes(job: Controller, members: Sequence[PodEntry]) -> list[int]:
    """The completion indexes of the pods to create, lowest first."""
    return [index for indexes in _missing_ranges(job, members) for index in indexes]


def _missing_ranges(job: Controller, members: Sequence[PodEntry]) -> Iterator[range]:
    """The same as ranges, since a Job may have billions of indexes (firstPendingIndexes)."""
    completions, n_left = _completions(job) or 0, _n_lacking(job, members)
    active = [_index_of(member.index) for member in members if member.active]
    taken = [
        *_succeeded(job, members),
        *_intervals(job.status.failed_indexes, completions),
        *zip(active, active, strict=True),
    ]
    candidate = 0
    for first, last in (*sorted(taken), (completions, completions)):
        indexes = range(candidate, min(first, completions, candidate + n_left))
        yield indexes
        n_left -= len(indexes)
        candidate = max(candidate, last + 1)


def _succeeded(job: Controller, members: Sequence[PodEntry]) -> list[tuple[int, int]]:
    """The intervals of completion indexes that have succeeded, in order; they may overlap."""
    indexes = [_index_of(member.index) for member in members if member.succeeded]
    reported = _intervals(job.status.completed_indexes, _completions(job) or 0)
    return sorted([*reported, *((index, index) for index in indexes if index != UNKNOWN_INDEX)])


def _n_succeeded(job: Controller, members: Sequence[PodEntry]) -> int:
    if not is_indexed(job):
        return max(job.status.succeeded, sum(member.succeeded for member in members))
    n_found, end = 0, -1
    for first, last in _succeeded(job, members):
        n_found += max(0, last - max(first - 1, end))
        end = max(end, last)
    return n_found


def _n_desired(job: Controller, members: Sequence[PodEntry], n_active: int) -> int:
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    n_succeeded, completions = _n_succeeded(job, members), _completions(job)
    if completions is None:  # a work queue: once one pod has succeeded, no new ones are created
        return n_active if n_succeeded else parallelism
    return min(parallelism, completions - n_succeeded)


def _completions(job: Controller) -> int | None:
    """With neither completions nor parallelism, the server fills in one; with parallelism alone it is a work queue."""
    return 1 if job.spec.completions is None and job.spec.parallelism is None else job.spec.completions


def is_finished(job: Controller) -> bool:
    """Whether the Job has completed or failed, or is about to."""
    return any(c.type in _FINAL_CONDITIONS and c.status == "True" for c in job.status.conditions or ())


def _index_of(text: str) -> int:
    """The completion index that is written (getCompletionIndex)."""
    found = _INDEX.fullmatch(text)
    return int(found[1]) if found else UNKNOWN_INDEX


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    """The intervals of indexes that `1,3-5` denotes; the controller skips what is none (parseIndexesFromString)."""
    for part in text.split(","):
        ends = [_index_of(end) for end in part.split("-")[:2]]
        if UNKNOWN_INDEX in ends:
            continue
        if ends[0] >= completions:
            return
        yield ends[0], min(ends[-1], completions - 1)
