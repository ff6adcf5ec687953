"""
Which spread constraints a result does not meet.

Karmada selects clusters by them, and may then assign no replicas to some: aggregated replicas need fewer clusters,
static weights ignore the constraints, and of zones and providers a cluster only has to have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.placements import SpreadField
from bayplan.model.targets import CLUSTER, FIELD_KEYS
from bayplan.model.terms import TARGET


def unmet(constraints: Sequence[SpreadField], names: Iterable[str], index: PlacementIndex) -> Iterator[str]:
    """One sentence for each constraint that the clusters of these names do not meet."""
    slots = [slot for name in names if (slot := index.slots.by_name.get(name)) is not None]
    for constraint in constraints if slots else ():
        key = constraint.field or constraint.label or CLUSTER
        column = index.column(TARGET if key == CLUSTER else FIELD_KEYS.get(key, key))
        n_spanned = len({domain for slot in slots for domain in column.domains(slot)})
        noun = f"{key}s" if key in (CLUSTER, *FIELD_KEYS) else f"values of {key}"
        spans = f"spans {n_spanned} {noun if n_spanned != 1 else noun.replace('values', 'value').removesuffix('s')}"
        if n_spanned < constraint.min_groups:
            yield f"{spans}, minGroups is {constraint.min_groups}"
        elif 0 < constraint.max_groups < n_spanned:
            yield f"{spans}, maxGroups is {constraint.max_groups}"
