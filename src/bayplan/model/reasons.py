"""Reasons for rejecting a target, and the array types of decisions. Does not know how they are computed."""

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
    """kube-scheduler's status of a target: preemption may help (UNSCHEDULABLE) or never does (UNRESOLVABLE)."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    EXCLUDED = "PreFilterExcluded"


class Reason(msgspec.Struct, frozen=True):
    """Why a rule rejects a target: `id` is stable and Bayplan's own, `text` is the upstream message."""

    id: str
    text: str
    status: StatusCode
