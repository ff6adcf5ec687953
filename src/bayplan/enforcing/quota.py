"""
The quota of exclusive pods: what they cost other pods (opportunity cost), and how much each namespace may be charged.

A pod whose required anti-affinity covers all pods of all namespaces requests little and blocks a whole domain, so it is
charged for the domain. While it is pending, the charge is the largest (or the average) of the domains it may be placed
in; once it runs, its actual domain. The limits may add up to more than the capacity: then priority and preemption
decide. A resource that the limits of a namespace do not name is not limited, nor is a namespace without limits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.caching import memoised
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT
from bayplan.model import namespace_reach, quantities, terms
from bayplan.model.labels import Labels
from bayplan.model.node_selectors import NodeAffinity
from bayplan.model.reasons import Slots
from bayplan.model.semantics import Semantics
from bayplan.model.terms import AffinityTerms, ResolvedTerm, resolve
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules import node_affinity

AVERAGE = "average"
_MAX_CACHED_TEMPLATES = 4096

Amounts = tuple[tuple[str, int], ...]  # by resource, cpu in thousandths; zero amounts are left out


class Exclusion(msgspec.Struct, frozen=True):
    """The topology keys over which a pod excludes all others, and the paths of the terms; no keys for most pods."""

    keys: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


NO_EXCLUSION = Exclusion()


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """
    The cost of one pod to other pods. `node` is empty while it is pending.

    `domains` are those it blocks, as `key=value`, none while it is pending; `n_domains` is how many it may block.
    `n_nodes` is the number of blocked nodes; of a pending pod the largest number, or the average.
    """

    workload: WorkloadKey = WorkloadKey("")
    namespace: str = ""
    node: str = ""
    exclusion: Exclusion = Exclusion()
    domains: tuple[str, ...] = ()
    n_domains: int
    n_nodes: int
    whole_cluster: bool
    amounts: Amounts


class _Domains(msgspec.Struct, frozen=True):
    """
    What a pod that excludes all others over some keys blocks, by slot.

    `of_slot` is the id of the blocked nodes for a pod at each slot, `ABSENT` if there are none. By id: `held` is the
    allocatable of these nodes, shape (n_ids, n_resources), `n_nodes` their number, `names` their domains.
    """

    of_slot: NDArray[np.intp]
    held: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    names: tuple[tuple[str, ...], ...]


class Charger:
    """Computes the charges of pods from an index. Sums are cached until a node changes."""

    def __init__(self, index: PlacementIndex, charge: Literal["largest", "average"] = "largest") -> None:
        self._index, self._charge = index, charge
        self._known: dict[tuple[str, ...], _Domains] = {}
        self._by_template: dict[tuple[tuple[str, ...], NodeAffinity, str], Charge] = {}
        self._generation = (-1, 0)

    def pending(self, workload: Workload) -> Charge | None:
        """The charge of a pod without a node; None if it excludes no pods."""
        exclusion = self.exclusion(workload.needs.affinity, workload.namespace)
        if not exclusion.keys:
            return None
        self._catch_up()
        template = (exclusion.keys, workload.needs.node_affinity, workload.requested_target)
        charge = self._by_template.get(template)
        if charge is None:
            ids = np.unique(self._domains(exclusion.keys).of_slot[self._where(workload)])
            charge = self._by_template[template] = self._anonymous_charge(exclusion.keys, ids[ids != ABSENT])
        return msgspec.structs.replace(charge, workload=workload.key, namespace=workload.namespace, exclusion=exclusion)

    def exclusion(self, affinity: AffinityTerms, namespace: str) -> Exclusion:
        """The keys over which a pod with these terms excludes all pods of all namespaces that exist or could exist."""
        terms_of_pod = _terms_against_all_pods(affinity, namespace, self._index.semantics)
        if not terms_of_pod:
            return NO_EXCLUSION
        by_key: dict[str, list[ResolvedTerm]] = {}
        for one in terms_of_pod:
            for key in one.keys:
                by_key.setdefault(key, []).append(one)
        namespaces = self._index.peer_index.namespaces
        exclusive = {key: found for key, found in by_key.items() if _reaches_all(found, namespace, namespaces)}
        paths = dict.fromkeys(one.source.path for one in terms_of_pod if not exclusive.keys().isdisjoint(one.keys))
        return Exclusion(tuple(sorted(exclusive)), tuple(paths))

    def placed(self, namespaces: Iterable[str] | None = None) -> Iterator[Charge]:
        """The charges of the pods of the index, in these namespaces or in all."""
        self._catch_up()
        classes = self._index.peer_index.classes
        found = (
            classes.by_id.values() if namespaces is None else (c for n in namespaces for c in classes.in_namespace(n))
        )
        for cls in found:
            exclusion = self.exclusion(cls.affinity, cls.namespace)
            for slot, here in cls.members.items() if exclusion.keys else ():
                domains = self._domains(exclusion.keys)
                ids = domains.of_slot[[slot]]
                charge = msgspec.structs.replace(
                    self._anonymous_charge(exclusion.keys, ids[ids != ABSENT]),
                    namespace=cls.namespace,
                    node=self._index.slots.at(slot).name,
                    exclusion=exclusion,
                    domains=domains.names[ids[0]],
                )
                yield from (msgspec.structs.replace(charge, workload=key) for key in here)

    def _where(self, workload: Workload) -> Slots:
        """The slots of the nodes that the pod may be placed on by its node name and its node affinity."""
        slots, named = self._index.slots, workload.requested_target
        if named in slots.by_name:
            return np.array([slots.by_name[named]])
        allowed = np.flatnonzero(slots.alive & node_affinity.matching(workload.needs.node_affinity, self._index))
        # It may be placed on a node that does not exist yet; until then any node counts.
        return allowed if len(allowed) else np.flatnonzero(slots.alive)

    def _anonymous_charge(self, keys: tuple[str, ...], ids: NDArray[np.intp]) -> Charge:
        """The charge for one of these sets of blocked nodes, the same for all pods of one template."""
        domains = self._domains(keys)
        held, n_nodes = domains.held[ids], domains.n_nodes[ids]
        if not len(ids):
            totals, n_blocked = np.zeros(held.shape[1], np.int64), 0
        elif self._charge == AVERAGE:
            totals, n_blocked = -(-held.sum(axis=0) // len(ids)), -(-int(n_nodes.sum()) // len(ids))
        else:
            totals, n_blocked = held.max(axis=0), int(n_nodes.max())
        rows = self._index.capacity.rows
        return Charge(
            n_domains=len(ids),
            n_nodes=n_blocked,
            whole_cluster=n_blocked == len(self._index.slots) > 0,
            amounts=tuple(sorted((name, int(totals[row])) for name, row in rows.items() if totals[row])),
        )

    def _catch_up(self) -> None:
        """Drop the cached sums if a node has changed since, or a resource is new."""
        generation = (self._index.targets_generation, len(self._index.capacity.rows))
        if self._generation != generation or len(self._by_template) > _MAX_CACHED_TEMPLATES:
            self._known.clear()
            self._by_template.clear()
            self._generation = generation

    def _domains(self, keys: tuple[str, ...]) -> _Domains:
        found = self._known.get(keys)
        if found is None:
            found = self._known[keys] = _domains_of(keys, self._index)
        return found


@memoised(16384)
def _terms_against_all_pods(affinity: AffinityTerms, namespace: str, semantics: Semantics) -> tuple[ResolvedTerm, ...]:
    """The terms that exclude all pods of the namespaces they reach, and reach others than their own."""
    if not affinity.anti_required:
        return ()
    # As an existing pod, because that is when it excludes others.
    resolved = resolve(affinity, namespace, semantics, incoming=False).anti_required
    parts = [(one, one.term.parts[0]) for one in resolved]
    return tuple(
        one for one, part in parts if part.selects_unlabelled and namespace_reach.reaches_others(part, namespace)
    )


def _reaches_all(uses: Sequence[ResolvedTerm], namespace: str, namespaces: Mapping[str, Labels]) -> bool:
    parts = [one.term.parts[0] for one in uses]
    if any(map(terms.covers_all_namespaces, parts)):
        return True
    return namespace_reach.reach_of(parts, namespace, namespaces).is_all(namespace_reach.ALL_NAMESPACES_PERCENT)


def _domains_of(keys: tuple[str, ...], index: PlacementIndex) -> _Domains:
    columns = [index.column(key) for key in keys]
    offered = index.capacity.allocatable
    # One row per slot with its domain of each key; the blocked nodes depend on that row alone.
    rows = np.stack([column.of_slot for column in columns], axis=1)
    distinct, of_slot = np.unique(np.vstack([np.zeros((1, len(keys)), np.intp), rows]), axis=0, return_inverse=True)
    names = tuple(
        tuple(f"{c.key}={c.values[domain]}" for c, domain in zip(columns, row, strict=True) if domain != ABSENT)
        for row in distinct.tolist()
    )
    of_slot = of_slot.reshape(-1)[1:]
    if len(keys) == 1:
        held = np.zeros((len(distinct), len(offered)), np.int64)
        np.add.at(held, of_slot, offered.T)
        n_nodes = np.bincount(of_slot, index.slots.alive, len(distinct)).astype(np.int64)
        held[ABSENT] = n_nodes[ABSENT] = 0
        return _Domains(of_slot, held, n_nodes, names)
    blocked = [_union([c.slots_in(d) for c, d in zip(columns, row, strict=True) if d]) for row in distinct.tolist()]
    held = np.stack([offered[:, slots].sum(axis=1) for slots in blocked])
    return _Domains(of_slot, held, np.array([len(slots) for slots in blocked]), names)


def _union(parts: list[Slots]) -> Slots:
    return np.unique(np.concatenate(parts)) if parts else np.array([], np.intp)


# Limits


class QuotaLimits(msgspec.Struct, frozen=True):
    """Limits by namespace; `otherwise` applies to all others, None if they have no limits."""

    by_namespace: dict[str, Amounts] = {}
    otherwise: Amounts | None = None

    def of_namespace(self, namespace: str) -> Amounts | None:
        """The limits of the namespace; None if it has none."""
        return self.by_namespace.get(namespace, self.otherwise)


NO_LIMITS = QuotaLimits()


class Account(msgspec.Struct, frozen=True):
    """The charges of a namespace, their sum, and the limits that it exceeds."""

    namespace: str
    charges: tuple[Charge, ...]
    charged: Amounts
    limits: Amounts | None
    exceeded: tuple[str, ...]


def accounts(charges: Iterable[Charge], limits: QuotaLimits = NO_LIMITS) -> list[Account]:
    """One account per namespace that is charged or has limits of its own, by name."""
    by_namespace: defaultdict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        by_namespace[charge.namespace].append(charge)
    return [
        _account(namespace, by_namespace.get(namespace, []), limits.of_namespace(namespace))
        for namespace in sorted(by_namespace.keys() | limits.by_namespace.keys())
    ]


def _account(namespace: str, charges: list[Charge], limits: Amounts | None) -> Account:
    charged = sum_amounts(charge.amounts for charge in charges)
    over = tuple(name for name, limit in limits or () if dict(charged).get(name, 0) > limit)
    ordered = sorted(charges, key=lambda charge: charge.workload)
    return Account(namespace, tuple(ordered), charged, limits, over)


def sum_amounts(amounts: Iterable[Amounts]) -> Amounts:
    """The sum by resource."""
    total: defaultdict[str, int] = defaultdict(int)
    for one in amounts:
        for name, amount in one:
            total[name] += amount
    return tuple(sorted(total.items()))


def quota_rejection(charge: Charge, used: Amounts, limits: Amounts | None, quota: str) -> str:
    """Why the charge exceeds the limits, in the wording of ResourceQuota; empty if it does not."""
    requested, so_far = dict(charge.amounts), dict(used)
    over = [n for n, limit in limits or () if requested.get(n, 0) > 0 and so_far.get(n, 0) + requested[n] > limit]
    if not over:
        return ""
    shown = (
        ",".join(f"{name}={quantities.show(name, amounts.get(name, 0))}" for name in over)
        for amounts in (requested, so_far, dict(limits or ()))
    )
    return "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(quota, *shown)
