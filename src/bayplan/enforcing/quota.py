"""
What exclusive pods cost everybody else: the seed's opportunity cost.

A pod whose hard anti-affinity means all pods of all namespaces asks for little and takes a whole domain, so it is
charged for the domain. While it waits, that is the largest (or the average) of those it may land on; once it runs, the
real one. Knows nothing of limits: those are `quota_limits`'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT
from bayplan.model import quantities, terms
from bayplan.model.node_selectors import NodeAffinity
from bayplan.model.reasons import Slots
from bayplan.model.semantics import Semantics
from bayplan.model.terms import AffinityTerms, resolve
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules import node_affinity

AVERAGE = "average"
_MAX_CACHED_TEMPLATES = 4096  # of which charges are remembered

Amounts = tuple[tuple[str, int], ...]  # by resource, cpu in thousandths; what is 0 is left out


class Exclusion(msgspec.Struct, frozen=True):
    """The topology keys over which a pod refuses all others, and where it says so; no keys for most pods."""

    keys: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """
    What one pod costs the others. `node` is empty while it waits.

    `domains` are those it blocks, as `key=value`, none while it waits; `n_domains` is how many it may come to block.
    `n_nodes` is how many nodes that makes; of a waiting pod the largest number, or the average.
    """

    workload: WorkloadKey
    namespace: str
    node: str
    exclusion: Exclusion
    domains: tuple[str, ...]
    n_domains: int
    n_nodes: int
    whole_cluster: bool
    amounts: Amounts


class _Domains(msgspec.Struct, frozen=True):
    """
    What a pod that refuses all others over some keys blocks, by where it stands.

    `of_slot` is the id of what it blocks at each slot, `ABSENT` where that is nothing. By id: `held` is what these
    nodes offer, shape (n_ids, n_resources), `n_nodes` how many they are, `names` their domains.
    """

    of_slot: NDArray[np.intp]
    held: NDArray[np.int64]
    n_nodes: NDArray[np.int64]
    names: tuple[tuple[str, ...], ...]


class _Blocked(msgspec.Struct, frozen=True):
    """What a pod blocks, or may come to block: the same for all pods of one template."""

    domains: tuple[str, ...]
    n_domains: int
    n_nodes: int
    whole_cluster: bool
    amounts: Amounts


class Charger:
    """Charges pods by what an index says of the nodes. What it has added up it keeps until a node changes."""

    def __init__(self, index: PlacementIndex, charge: Literal["largest", "average"] = "largest") -> None:
        self._index, self._charge = index, charge
        self._known: dict[tuple[str, ...], _Domains] = {}
        self._may_block: dict[tuple[tuple[str, ...], NodeAffinity, str], _Blocked] = {}
        self._generation = (-1, 0)

    def waiting(self, workload: Workload) -> Charge | None:
        """What a pod that has no node yet is charged; None if it keeps nobody out."""
        exclusion = exclusion_of(workload.needs.affinity, workload.namespace, self._index.semantics)
        if not exclusion.keys:
            return None
        self._catch_up()
        template = (exclusion.keys, workload.needs.node_affinity, workload.requested_target)
        blocked = self._may_block.get(template)
        if blocked is None:
            ids = np.unique(self._domains(exclusion.keys).of_slot[self._where(workload)])
            blocked = self._may_block[template] = self._blocked(exclusion.keys, ids[ids != ABSENT])
        return _charge(workload.key, workload.namespace, "", exclusion, blocked)

    def placed(self, namespaces: Iterable[str] | None = None) -> Iterator[Charge]:
        """What the pods of the index are charged, in these namespaces or in all."""
        self._catch_up()
        classes = self._index.peer_index.classes
        found = (
            classes.by_id.values()
            if namespaces is None
            else (c for n in namespaces for c in classes.by_namespace.get(n, {}).values())
        )
        for cls in found:
            exclusion = exclusion_of(cls.affinity, cls.namespace, self._index.semantics)
            for slot, here in cls.members.items() if exclusion.keys else ():
                domains = self._domains(exclusion.keys)
                ids = domains.of_slot[[slot]]
                blocked = self._blocked(exclusion.keys, ids[ids != ABSENT])
                named = msgspec.structs.replace(blocked, domains=domains.names[ids[0]])
                node = self._index.slots.at(slot).name
                yield from (_charge(key, cls.namespace, node, exclusion, named) for key in here)

    def _where(self, workload: Workload) -> Slots:
        """The slots of the nodes that the pod may land on by its name and its node affinity."""
        slots, named = self._index.slots, workload.requested_target
        if named in slots.by_name:
            return np.array([slots.by_name[named]])
        allowed = np.flatnonzero(slots.alive & node_affinity.matching(workload.needs.node_affinity, self._index))
        # It may land on a node that is still to come; until that is known, it may land on any.
        return allowed if len(allowed) else np.flatnonzero(slots.alive)

    def _blocked(self, keys: tuple[str, ...], ids: NDArray[np.intp]) -> _Blocked:
        domains = self._domains(keys)
        held, n_nodes = domains.held[ids], domains.n_nodes[ids]
        if not len(ids):
            totals, n_blocked = np.zeros(held.shape[1], np.int64), 0
        elif self._charge == AVERAGE:
            totals, n_blocked = -(-held.sum(axis=0) // len(ids)), -(-int(n_nodes.sum()) // len(ids))
        else:
            totals, n_blocked = held.max(axis=0), int(n_nodes.max())
        rows = self._index.capacity.rows
        return _Blocked(
            domains=(),
            n_domains=len(ids),
            n_nodes=n_blocked,
            whole_cluster=n_blocked == len(self._index.slots) > 0,
            amounts=tuple(sorted((name, int(totals[row])) for name, row in rows.items() if totals[row])),
        )

    def _catch_up(self) -> None:
        """Forget what was added up if a node has changed since, or a resource was heard of for the first time."""
        generation = (self._index.targets_generation, len(self._index.capacity.rows))
        if self._generation != generation or len(self._may_block) > _MAX_CACHED_TEMPLATES:
            self._known.clear()
            self._may_block.clear()
            self._generation = generation

    def _domains(self, keys: tuple[str, ...]) -> _Domains:
        found = self._known.get(keys)
        if found is None:
            found = self._known[keys] = _domains_of(keys, self._index)
        return found


def _charge(key: WorkloadKey, namespace: str, node: str, exclusion: Exclusion, blocked: _Blocked) -> Charge:
    return Charge(
        workload=key,
        namespace=namespace,
        node=node,
        exclusion=exclusion,
        domains=blocked.domains,
        n_domains=blocked.n_domains,
        n_nodes=blocked.n_nodes,
        whole_cluster=blocked.whole_cluster,
        amounts=blocked.amounts,
    )


@lru_cache(maxsize=16384)
def exclusion_of(affinity: AffinityTerms, namespace: str, semantics: Semantics) -> Exclusion:
    """Over which keys a pod with these terms refuses all pods of all namespaces, tolerated ones excepted."""
    if not affinity.anti_required:
        return Exclusion()
    # As it holds them once placed, because then it keeps others out.
    uses = resolve(affinity, namespace, semantics, incoming=False).anti_required
    meant = [use for use in uses if terms.covers_all_pods(use.term.parts[0])]
    return Exclusion(
        tuple(sorted({key for use in meant for key in use.keys})),
        tuple(dict.fromkeys(use.source.path for use in meant)),
    )


def _domains_of(keys: tuple[str, ...], index: PlacementIndex) -> _Domains:
    columns = [index.column(key) for key in keys]
    offered = index.capacity.allocatable
    # One row per slot with its domain of each key; what is blocked depends on that row alone.
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


# RF merged from enforcing.quota_limits: How much each namespace may be charged, and who is over it. Limits may add up
# to more than there is: then priority and preemption decide who runs. A resource that a namespace's limits do not
# name is not limited, nor is a namespace that has none.


class QuotaLimits(msgspec.Struct, frozen=True):
    """By namespace; `otherwise` is for those that are not named, None if they have no limits."""

    by_namespace: dict[str, Amounts] = {}
    otherwise: Amounts | None = None

    def of(self, namespace: str) -> Amounts | None:
        """What the namespace may be charged; None if nothing limits it."""
        return self.by_namespace.get(namespace, self.otherwise)


NO_LIMITS = QuotaLimits()


class Account(msgspec.Struct, frozen=True):
    """What a namespace is charged, for what, and which of its limits that exceeds."""

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
        _account(namespace, by_namespace.get(namespace, []), limits.of(namespace))
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


def quota_refusal(charge: Charge, used: Amounts, limits: Amounts | None, quota: str) -> str:
    """Why the charge may not be added to what is used, in the words of ResourceQuota; empty if it may."""
    asked, so_far = dict(charge.amounts), dict(used)
    over = [n for n, limit in limits or () if asked.get(n, 0) > 0 and so_far.get(n, 0) + asked[n] > limit]
    if not over:
        return ""
    shown = (
        ",".join(f"{name}={quantities.show(name, amounts.get(name, 0))}" for name in over)
        for amounts in (asked, so_far, dict(limits or ()))
    )
    return "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(quota, *shown)
