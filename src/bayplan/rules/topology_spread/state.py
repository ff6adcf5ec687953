"""Spread constraints with the pods that they count: what PodTopologySpread works on."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.caching import BoundedCache
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, ALL, ValueColumn
from bayplan.indexing.term_table import Counter, TermEntry
from bayplan.model.labels import EVERYTHING, Toleration
from bayplan.model.node_selectors import ANY_NODE, NodeAffinity
from bayplan.model.reasons import Mask
from bayplan.model.terms import HOSTNAME, TARGET, PeerTerm, TermPart
from bayplan.model.workloads import SpreadConstraint
from bayplan.rules import node_affinity, taint_toleration

MAX_DOMAINS_AS_INTEGERS = 16  # up to which plain integers are quicker than arrays


class SpreadPart(msgspec.Struct, frozen=True):
    """`self_matching[i]`: the i-th constraint counts the pod itself; `strict`: only nodes with all keys are scored."""

    namespace: str
    constraints: tuple[SpreadConstraint, ...]
    self_matching: tuple[bool, ...]
    affinity: NodeAffinity
    tolerations: tuple[Toleration, ...]
    strict: bool


class CountedConstraint(msgspec.Struct, frozen=True):
    """
    One constraint with its counts: matching pods on eligible targets, over the domains that those are in.

    `peers` counts by domain (`counts_domains`) where every target that has the label is eligible, else by target.
    `scores_targets`: the score counts the pods on each target, whatever its labels (upstream, soft and by hostname).
    """

    constraint: SpreadConstraint
    self_matching: bool
    column: ValueColumn
    term: PeerTerm | None
    peers: Counter | None
    eligible: Mask
    domains: tuple[int, ...]
    counts_domains: bool
    scores_targets: bool

    def count_by_domain(self) -> NDArray[np.int64]:
        """Matching pods on eligible targets per domain, shape (n_domains,)."""
        n_domains = self.column.n_domains
        if self.peers is None or not self.peers.by_domain:
            return np.zeros(n_domains, np.int64)
        if self.counts_domains:
            return self.peers.array()
        here = np.where(self.eligible, self.peers.column.gather(self.peers.array(), ALL), 0)
        counts = np.bincount(self.column.of_slot, weights=here, minlength=n_domains).astype(np.int64)
        for slot, domains in self.column.further.items():  # a target in several domains counts in each
            for domain in domains:
                counts[domain] += here[slot]
        return counts

    def eligible_domains(self) -> NDArray[np.intp]:
        """The domains over which the global minimum is taken."""
        return np.array(self.domains, np.intp)

    def global_minimum(self, counts: NDArray[np.int64]) -> int:
        """The fewest matching pods in one of the domains; 0 if there are fewer domains than `minDomains`."""
        return 0 if len(self.domains) < self.constraint.min_domains else int(counts[self.eligible_domains()].min())

    def current_minimum(self) -> int:
        """The global minimum without an array of all counts, where that is quicker."""
        if self.peers is None or not self.counts_domains or len(self.domains) > MAX_DOMAINS_AS_INTEGERS:
            return self.global_minimum(self.count_by_domain())
        if len(self.domains) < self.constraint.min_domains:
            return 0
        by_domain = self.peers.by_domain
        return min([by_domain.get(domain, 0) for domain in self.domains])


class SpreadState(msgspec.Struct):
    """
    `domain_column` is the only column that the codes depend on, if there is one; `representatives` a slot per domain.

    `scorable` are the targets that have all keys of the soft constraints, None if that is not required. `effects` maps
    a class id to the topology keys in whose domains its members count, `minimums` holds the global minimum of each
    hard constraint when targets were last evaluated.
    """

    hard: tuple[CountedConstraint, ...]
    soft: tuple[CountedConstraint, ...]
    scorable: Mask | None
    terms: tuple[TermEntry, ...]
    domain_column: ValueColumn | None
    representatives: tuple[int, ...]
    effects: BoundedCache[int, tuple[str, ...]]
    minimums: tuple[int, ...] = ()
    _current_minimums: tuple[int, ...] = ()
    _position: int = -1

    def current_minimums(self, index: PlacementIndex) -> tuple[int, ...]:
        """The global minimum of each hard constraint now, computed once for each change."""
        if self._position != index.journal.end:
            self._position = index.journal.end
            self._current_minimums = tuple([counted.current_minimum() for counted in self.hard])
        return self._current_minimums


def counted_constraint(
    one: tuple[SpreadConstraint, bool],
    complete: Mask | None,
    part: SpreadPart,
    index: PlacementIndex,
    terms: list[TermEntry],
) -> CountedConstraint:
    """
    A constraint, given with whether it matches the pod itself, and its counts; the term is held and added to `terms`.

    `complete` are the targets with all keys, None if others count too.
    """
    constraint, self_matching = one
    column, term, peers = index.column(constraint.topology_key), None, None
    eligible = index.slots.alive.copy()
    if constraint.honors_affinity and part.affinity != ANY_NODE:
        eligible &= node_affinity.matching(part.affinity, index)
    if constraint.honors_taints:
        eligible &= taint_toleration.tolerated_mask(part.tolerations, index)
    if complete is not None:
        eligible &= complete
    scores_targets = not constraint.hard and constraint.topology_key == HOSTNAME
    # kube-scheduler counts no pod for an empty selector, which elsewhere selects every pod.
    if constraint.selector is not None and constraint.selector != EVERYTHING:
        term = PeerTerm((TermPart(constraint.selector, (part.namespace,)),), counts_terminating=False)
        entry = index.peer_index.hold(term)
        terms.append(entry)
        everywhere = bool(eligible[column.present(ALL)].all())
        counted_by = TARGET if scores_targets or not everywhere else column.key
        term, peers = entry.term, index.peer_index.match_reach(entry, (counted_by,)).counter
    present = np.zeros(column.n_domains, np.bool_)
    present[column.of_slot[eligible]] = True
    for slot, further in column.further.items():
        if eligible[slot]:
            present[list(further)] = True
    present[ABSENT] = False
    domains = tuple(np.flatnonzero(present).tolist())
    counts_domains = peers is not None and peers.column is column
    return CountedConstraint(
        constraint, self_matching, column, term, peers, eligible, domains, counts_domains, scores_targets
    )
