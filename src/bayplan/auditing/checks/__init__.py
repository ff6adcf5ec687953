"""The table of checks, one rule per module, in the order reports have them."""

from __future__ import annotations

from bayplan.auditing.checks import (
    bsi_every_role_twice,
    bsi_stanza,
    bsi_three_nodes,
    bsi_zones,
    cp_each_zone,
    cp_hidden,
    cp_machines,
    cp_role_mismatch,
    cp_zones,
    duplicated,
    half,
    host_vacuous,
    labels_current,
    labels_present,
    mixed_keys,
    n1_component,
    n1_workloads,
    need_workloads,
    odd_etcd,
    one_parent,
    quorum_etcd,
    room,
    worker_spread,
    zone_uninformative,
)
from bayplan.auditing.outcomes import Check

ALL: dict[str, Check] = {
    check.id: check
    for module in (
        cp_hidden,
        cp_role_mismatch,
        cp_machines,
        labels_present,
        labels_current,
        cp_zones,
        worker_spread,
        cp_each_zone,
        bsi_three_nodes,
        bsi_zones,
        bsi_every_role_twice,
        bsi_stanza,
        duplicated,
        half,
        quorum_etcd,
        odd_etcd,
        n1_component,
        n1_workloads,
        need_workloads,
        room,
        one_parent,
        host_vacuous,
        mixed_keys,
        zone_uninformative,
    )
    for check in module.CHECKS
}
