"""Workloads as kubectl names them. Knows nothing of what is said about them."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model.workloads import Workload
from bayplan.writing import untrusted


def name_of(workload: Workload) -> str:
    """A pod, or what a binding propagates, as `kind/name`."""
    binding = workload.binding
    return f"pod/{workload.name}" if binding is None else f"{binding.kind.lower()}/{binding.name}"


def lines(workloads: Iterable[Workload]) -> str:
    """Each as `kind/name`, one a line."""
    return "".join(f"{untrusted.clean(name_of(workload))}\n" for workload in workloads)
