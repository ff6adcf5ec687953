"""The table of checks, in the order reports have them."""

from __future__ import annotations

from bayplan.auditing.checks import (
    components,
    cp_machines,
    hierarchy,
    host_labels,
    labels_current,
    labels_present,
    quorum,
    visibility,
    workloads,
    zones,
)
from bayplan.auditing.outcomes import Check

ALL: dict[str, Check] = {
    check.id: check
    for module in (
        visibility,
        cp_machines,
        labels_present,
        labels_current,
        zones,
        components,
        quorum,
        workloads,
        hierarchy,
        host_labels,
    )
    for check in module.CHECKS
}
