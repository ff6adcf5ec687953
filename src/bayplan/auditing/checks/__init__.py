"""The table of checks, in the order in which reports list them. Each module holds the checks of one subject."""

from __future__ import annotations

from bayplan.auditing.checks import bsi, control_plane, etcd, labels, workloads
from bayplan.auditing.outcomes import Check

ALL: dict[str, Check] = {
    check.id: check
    for group in (
        control_plane.VISIBLE,
        control_plane.ROLE_MISMATCH,
        control_plane.MACHINES,
        labels.PRESENT,
        labels.CURRENT,
        control_plane.ZONES,
        control_plane.WORKER_SPREAD,
        control_plane.EACH_ZONE,
        bsi.THREE_NODES,
        bsi.ZONES,
        bsi.EVERY_ROLE_TWICE,
        bsi.STANZA,
        control_plane.DUPLICATED,
        control_plane.HALF,
        etcd.QUORUM,
        etcd.ODD,
        control_plane.N1_COMPONENT,
        workloads.N1_WORKLOADS,
        workloads.NEED_WORKLOADS,
        workloads.ROOM,
        labels.ONE_PARENT,
        labels.HOST_VACUOUS,
        labels.MIXED_KEYS,
        labels.ZONE_UNINFORMATIVE,
    )
    for check in group
}
