"""
Which clusters a required term may concern because of labels that are not known.

A binding does not have the labels of its template. If the template is not known either, a term may or may not select
the workload, so what depends on it cannot be answered. Karmada's affinity groups are in the binding itself, and never
in doubt. Knows nothing of where labels could come from.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec
import numpy as np

from bayplan.engine.filtering import Verdicts
from bayplan.indexing.classes import WorkloadClass
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.bindings import UNKNOWN_LABELS
from bayplan.model.labels import EVERYTHING, NEGATIVE, Labels
from bayplan.model.reasons import Mask, Slots
from bayplan.model.terms import PeerTerm, ResolvedTerm, resolve
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.workload_terms import WorkloadTermRule

_MAX_NAMES_SHOWN = 3


class Doubt(msgspec.Struct, frozen=True):
    """`whose` labels matter on these clusters, if they are feasible otherwise; `slots` None means all clusters."""

    whose: tuple[WorkloadKey, ...]
    slots: Slots | None = None


class Uncertain(enum.Enum):
    """How the rules count a workload that a term may select: as not selected, or as selected."""

    NOT_COUNTED = enum.auto()
    COUNTED = enum.auto()


def doubts_about(workload: Workload, index: PlacementIndex) -> list[Doubt]:
    """Every required term, of the workload and of placed ones, for which it matters what is not known."""
    unknown = index.peer_index.classes.by_label.get((UNKNOWN_LABELS, None), {}).values()
    is_unknown = UNKNOWN_LABELS in workload.labels
    if not unknown and not is_unknown:
        return []
    terms = resolve(workload.needs.affinity, workload.namespace, index.semantics, incoming=True)
    found: list[Doubt] = []
    for term in terms.anti_required:
        found += [_doubt(keys, term, how, index) for keys, how in _possible_peers(term, unknown, index)]
    for term in terms.required:
        found += [Doubt(tuple(keys)) for keys, _ in _possible_peers(term, unknown, index)]
        if is_unknown and (term.source.possible is not None or not index.peer_index.all_peers(term.term)):
            found.append(Doubt((workload.key,)))  # whether it is the first of a set that it is part of
    if index.peer_index.owner_rules.n:
        owners = index.peer_index.classes.by_id.values() if is_unknown else unknown
        found += _of_owners(workload, [cls for cls in owners if cls.affinity.anti_required], index)
    return found


def feasible_but_for_peers(verdicts: Verdicts, index: PlacementIndex) -> Mask:
    """The clusters that no rule rejects but those about the labels of other workloads."""
    feasible = index.slots.alive.copy()
    for one in verdicts.results:
        rejected = None if isinstance(one.rule, WorkloadTermRule) else one.rejected()
        if rejected is not None:
            feasible &= ~rejected
    return feasible


def feasible_in_doubt(doubts: Iterable[Doubt], feasible: Mask, exempt: Collection[int]) -> tuple[Mask, list[Doubt]]:
    """The feasible clusters whose feasibility is in doubt, and the doubts about them."""
    mask = np.zeros_like(feasible)
    relevant = []
    for doubt in doubts:
        here = feasible.copy()
        if doubt.slots is not None:
            here[:] = False
            here[doubt.slots] = feasible[doubt.slots]
        here[list(exempt)] = False  # no rule about peers rejects a cluster that holds the workload already
        if here.any():
            relevant.append(doubt)
        mask |= here
    return mask, relevant


def whose_labels(doubts: Iterable[Doubt]) -> tuple[WorkloadKey, ...]:
    """The workloads whose labels would settle the doubts."""
    return tuple(dict.fromkeys(key for doubt in doubts for key in doubt.whose))


def names_of(keys: Iterable[WorkloadKey], workload: Workload, index: PlacementIndex) -> list[str]:
    """The templates of workloads, this one or placed ones, as KIND NAMESPACE/NAME."""
    # A copy that is draining has the name of the whole, of which it may be all that is left.
    return [*dict.fromkeys(_name(workload if key == workload.key else index.records[key].workload) for key in keys)]


def sentence(names: Sequence[str]) -> str:
    """`labels of KIND NAMESPACE/NAME are not known`, with the first names."""
    shown = ", ".join(names[:_MAX_NAMES_SHOWN])
    more = f" and {len(names) - _MAX_NAMES_SHOWN} more" if len(names) > _MAX_NAMES_SHOWN else ""
    return f"labels of {shown}{more} are not known"


def _name(workload: Workload) -> str:
    binding = workload.binding
    assert binding is not None
    return f"{binding.kind} {binding.namespace}/{binding.name}".replace(" /", " ")


def _possible_peers(
    term: ResolvedTerm, unknown: Iterable[WorkloadClass], index: PlacementIndex
) -> Iterator[tuple[list[WorkloadKey], Uncertain]]:
    """The placed workloads that a term of the incoming one may select, where that is not certain."""
    (part,) = term.term.parts
    for cls in unknown:
        if part.in_scope(cls.namespace, index.peer_index.namespaces.get(cls.namespace, {})):
            for label_set, keys in cls.label_sets.items():
                how = _may_select(term, label_set.labels)
                if how is not None:
                    yield sorted(keys), how
    if term.source.possible is not None:  # what else it selects depends on the labels of the incoming workload
        scope = msgspec.structs.replace(part, selector=term.source.possible)
        peers = PeerTerm((scope,), term.term.counts_terminating)
        entry = index.peer_index.hold(peers)  # so that classes are distinguished by the labels that it selects by
        classes = [cls for cls in index.peer_index.classes.candidates(peers) if UNKNOWN_LABELS not in cls.labels]
        found = [sorted(cls.keys) for cls in classes if index.peer_index.class_matches(peers, cls)]
        index.peer_index.release(entry)
        yield from ((keys, Uncertain.NOT_COUNTED) for keys in found)


def _of_owners(workload: Workload, owners: Iterable[WorkloadClass], index: PlacementIndex) -> Iterator[Doubt]:
    """The anti-affinity terms of placed workloads that may select the incoming one, where that is not certain."""
    is_unknown = UNKNOWN_LABELS in workload.labels
    labels_of_namespace = index.peer_index.namespaces.get(workload.namespace, {})
    for cls in owners:
        for term in resolve(cls.affinity, cls.namespace, index.semantics, incoming=False).anti_required:
            how = _may_select(term, workload.labels)
            if how is not None and term.term.parts[0].in_scope(workload.namespace, labels_of_namespace):
                is_of_owner = term.source.possible is not None
                whose = (*(sorted(cls.keys) if is_of_owner else ()), *((workload.key,) if is_unknown else ()))
                yield msgspec.structs.replace(_doubt(sorted(cls.keys), term, how, index), whose=whose)


def _may_select(term: ResolvedTerm, labels: Labels) -> Uncertain | None:
    """Whether the term may select a workload with these labels; None if it is certain that it does, or does not."""
    possible, selector = term.source.possible, term.term.parts[0].selector
    is_unknown = UNKNOWN_LABELS in labels
    requirements = (possible or selector or EVERYTHING).requirements
    if not all(one.matches(labels) for one in requirements if not is_unknown or one.key in labels):
        return None
    if possible is not None:
        return Uncertain.NOT_COUNTED
    missing = [one for one in requirements if one.key not in labels]
    if selector is None or not is_unknown or not missing:
        return None
    # The rules read what is not known as absent.
    return Uncertain.COUNTED if all(one.operator in NEGATIVE for one in missing) else Uncertain.NOT_COUNTED


def _doubt(keys: Iterable[WorkloadKey], term: ResolvedTerm, how: Uncertain, index: PlacementIndex) -> Doubt:
    """About all clusters that share a domain of the term with these workloads, which the rules may have rejected."""
    keys = tuple(keys)
    if how is Uncertain.COUNTED:
        return Doubt(keys)
    columns = [index.column(key) for key in term.keys]
    slots = {slot for key in keys for slot in index.records[key].slots}
    pieces = [column.slots_in(domain) for slot in slots for column in columns for domain in column.domains(slot)]
    return Doubt(keys, np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, np.intp))
