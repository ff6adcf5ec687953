"""Whether there is another place for a workload that would have to go, asked of the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from bayplan import schedule_pod
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import WorkloadKey
from bayplan.rules.rule import Rule


@contextmanager
def asking(index: PlacementIndex, rules: Sequence[Rule]) -> Iterator[Callable[[WorkloadKey], bool]]:
    """
    A question that can be put for one workload after another while the context lasts.

    Whoever has another place is taken to stand there from then on, so that no two are promised the same room. In the
    end the index is as it was.
    """

    def has_another(key: WorkloadKey) -> bool:
        shares = index.records[key].shares
        workload = index.remove(key)
        slot, _ = schedule_pod.choose(workload, index, rules)
        target = index.slots.at(slot).name if slot >= 0 else ""
        moves = bool(target) and target not in dict(shares)
        index.add_shares(workload, ((target, 1),) if moves else shares)
        return moves

    with index.tentatively():
        yield has_another
