"""The answer to "where does this go?": cheap arrays and counts. Knows nothing of how they were found."""

from __future__ import annotations

import enum

import msgspec
import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]
Scores = NDArray[np.int64]
Slots = NDArray[np.intp]


class StatusCode(enum.Enum):
    """How a refusal counts: may freeing the target of others help (U), or never (UU)?"""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    EXCLUDED = "PreFilterExcluded"


class Reason(msgspec.Struct, frozen=True):
    """Why a rule refuses a target: `id` is stable and ours, `text` is what operators search for."""

    id: str
    text: str
    status: StatusCode
