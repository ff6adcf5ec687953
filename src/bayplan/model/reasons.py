"""Reasons for rejecting a target, and the array types of decisions. Does not know how they are computed."""

from __future__ import annotations

import enum
import re

import msgspec
import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]
Scores = NDArray[np.int64]
Slots = NDArray[np.intp]

PLACEHOLDER = re.compile(r"<[a-z]+>")


class StatusCode(enum.Enum):
    """kube-scheduler's status of a target: preemption may help (UNSCHEDULABLE) or never does (UNRESOLVABLE)."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    EXCLUDED = "PreFilterExcluded"


class Reason(msgspec.Struct, frozen=True):
    """
    Why a rule rejects a target: `id` is stable and Bayplan's own, `text` is the upstream message.

    The constants of a rule have a <placeholder> where the rule inserts a name.
    """

    id: str
    text: str
    status: StatusCode

    def filled(self, **values: str) -> Reason:
        """The reason with a value for each placeholder."""
        id_, text = (PLACEHOLDER.sub(lambda one: values[one[0][1:-1]], given) for given in (self.id, self.text))
        return Reason(id_, text, self.status)


class DocumentedReason(msgspec.Struct, frozen=True):
    """A reason with what it means and what to do; `plugin` is the scheduler's, if it is not that of the rule."""

    reason: Reason
    means: str
    to_do: str
    plugin: str = ""
