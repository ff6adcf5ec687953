"""
PodDisruptionBudgets in use: which potential victims would violate one.

Mirrors `filterPodsWithPDBViolation` in kube-scheduler's pkg/scheduler/framework/plugins/defaultpreemption.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.classes import LabelSet
from bayplan.indexing.pod_table import PodTable, Rows
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.kubernetes_versions import V1_37
from bayplan.model.reasons import Mask
from bayplan.model.workloads import Workload

Name = tuple[str, str]  # namespace and name


class DisruptionBudgets:
    """
    The budgets of a cluster, kept from decision to decision.

    A budget selects by namespace and labels alone, so which budgets select a workload is cached by its labelling.
    """

    def __init__(self, budgets: Iterable[DisruptionBudget] = ()) -> None:
        self._budgets: dict[Name, DisruptionBudget] = {}
        self._namespaces: dict[str, dict[str, DisruptionBudget]] = {}
        self._selecting: dict[int, tuple[tuple[str, LabelSet], tuple[Name, ...]]] = {}
        for budget in budgets:
            self.put(budget)

    def __len__(self) -> int:
        return len(self._budgets)

    def __iter__(self) -> Iterator[DisruptionBudget]:
        return iter(self._budgets.values())

    def put(self, budget: DisruptionBudget) -> None:
        """Add or replace a budget."""
        name = (budget.namespace, budget.name)
        known = self._budgets.get(name)
        if known is None or known.selector != budget.selector:
            self._selecting.clear()
        self._budgets[name] = budget
        self._namespaces.setdefault(budget.namespace, {})[budget.name] = budget

    def drop(self, namespace: str, name: str) -> None:
        if self._budgets.pop((namespace, name), None) is not None:
            self._selecting.clear()
            del self._namespaces[namespace][name]
            if not self._namespaces[namespace]:
                del self._namespaces[namespace]

    def charge(self, workload: Workload, times: int) -> None:
        """Let each budget that selects a pod allow so many disruptions fewer, as its controller would report."""
        for budget in list(self._namespaces.get(workload.namespace, {}).values()):
            if budget.selects(workload.labels) and workload.name not in budget.disrupted:
                self.put(msgspec.structs.replace(budget, allowed=budget.allowed - times))

    def forbidding(self, workload: Workload) -> str:
        """Why the eviction API does not evict a pod now; empty if it does (Go: pkg/registry/core/pod/storage)."""
        here = self._namespaces.get(workload.namespace, {}).values()
        selecting = [budget for budget in here if budget.selects(workload.labels)]
        if len(selecting) > 1:
            return f"more than one PodDisruptionBudget selects it: {', '.join(one.name for one in selecting)}"
        if selecting and selecting[0].allowed < 1:
            return f"PodDisruptionBudget {selecting[0].name} allows no disruption"
        return ""

    def allow(self, workloads: Iterable[Workload]) -> bool:
        """Whether the eviction API evicts all these pods, one after another."""
        left = DisruptionBudgets(self)
        for workload in workloads:
            if left.forbidding(workload):
                return False
            left.charge(workload, 1)
        return True

    def violations(self, groups: NDArray[np.intp], rows: Rows, pod_table: PodTable) -> Mask:
        """
        Which workloads violate a budget if all of their group are evicted, shape (n,): those beyond what it allows.

        `rows` are in order of importance within their group, and the more important ones are charged first. Until 1.36
        a workload is charged to all of its budgets, since 1.37 to none after the first that is exceeded.
        """
        violating = np.zeros(len(rows), np.bool_)
        places, budgets = self._charges(rows, pod_table)
        if not len(places):
            return violating
        names = list(self._budgets)
        allowed = np.array([self._budgets[name].allowed for name in names], np.int64)
        if pod_table.version >= V1_37 and (np.diff(places) == 0).any():
            violating[_exceeding(groups, places, budgets, allowed)] = True
            return violating
        accounts = groups[places] * len(names) + budgets
        order = accounts.argsort(kind="stable")
        sorted_accounts = accounts[order]
        firsts = np.flatnonzero(np.r_[True, sorted_accounts[1:] != sorted_accounts[:-1]])
        charged_before = np.arange(len(order)) - np.repeat(firsts, np.diff(np.r_[firsts, len(order)]))
        violating[places[order[charged_before >= allowed[budgets[order]]]]] = True
        return violating

    def _charges(self, rows: Rows, pod_table: PodTable) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Position in `rows` and number of the budget, for every workload and each budget that its eviction charges."""
        numbers = {name: number for number, name in enumerate(self._budgets)}
        labellings = pod_table.labelling[rows]
        present = np.zeros(len(pod_table.labellings.by_id), np.bool_)
        present[labellings] = bool(numbers)
        flat: list[int] = []
        first, n_budgets = np.zeros(len(present), np.intp), np.zeros(len(present), np.intp)
        for labelling in np.flatnonzero(present).tolist():
            names = self._selecting_labelling(labelling, pod_table)
            first[labelling], n_budgets[labelling] = len(flat), len(names)
            flat += [numbers[name] for name in names]
        repeats = n_budgets[labellings]
        places = np.repeat(np.arange(len(rows)), repeats)
        which = np.arange(len(places)) - np.repeat(repeats.cumsum() - repeats, repeats)
        charged = np.array(flat, np.intp)[first[labellings[places]] + which]
        # Evictions that the disruption controller has recorded already are not charged again.
        disrupted = [budget.disrupted for budget in self._budgets.values()]
        if not any(disrupted):
            return places, charged
        counts = np.array(
            [
                pod_table.at(row).workload.name not in disrupted[budget]
                for row, budget in zip(rows[places].tolist(), charged.tolist(), strict=True)
            ],
            np.bool_,
        )
        return places[counts], charged[counts]

    def _selecting_labelling(self, labelling: int, pod_table: PodTable) -> tuple[Name, ...]:
        """The budgets that select workloads of this labelling."""
        key = pod_table.labellings.by_id[labelling]
        assert key is not None, "called only for labellings in use"
        known = self._selecting.get(labelling)
        if known is None or known[0] != key:  # ids of labellings are reused
            namespace, label_set = key
            here = self._namespaces.get(namespace, {})
            names = tuple((namespace, name) for name, budget in here.items() if budget.selects(label_set.labels))
            known = self._selecting[labelling] = (key, names)
        return known[1]


def _exceeding(
    groups: NDArray[np.intp], places: NDArray[np.intp], budgets: NDArray[np.intp], allowed: NDArray[np.int64]
) -> list[int]:
    """The places that exceed a budget, each charged up to the first that it exceeds; `places` ascend."""
    found: list[int] = []
    left: dict[tuple[int, int], int] = {}  # by group and budget
    for place, budget in zip(places.tolist(), budgets.tolist(), strict=True):
        if found and found[-1] == place:
            continue
        account = (int(groups[place]), budget)
        left[account] = left.get(account, int(allowed[budget])) - 1
        if left[account] < 0:
            found.append(place)
    return found
