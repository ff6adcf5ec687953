"""Codes from what a Cluster object says of itself, for the rules that read nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ABSENT, At
from bayplan.model.reasons import Codes


def codes_by_value(index: PlacementIndex, key: str, at: At, code: Callable[..., int]) -> Codes:
    """A code per cluster from a column whose values are tuples: asked once for each; 0 without a value."""
    column = index.column(key)
    domains, by_domain = column.of_slot[at], np.zeros(column.n_domains, np.int64)
    for domain in sorted(set(domains.tolist())):
        if domain != ABSENT:
            value: Any = column.values[domain]
            by_domain[domain] = code(*value)
    codes: Codes = by_domain.take(domains)
    return codes
