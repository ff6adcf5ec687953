"""The weight of each check in each standard. Knows nothing of how checks decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.auditing.layout import COMPONENTS, LEVELS

FAIL, FAIL_IF_SHOWN, WARN, INFO = "fail", "fail-if-shown", "warn", "info"
DEFAULT = "scs-0214-v2"
LEGACY = ("legacy=old", "legacy=head")
_COMPONENTS = tuple(component.removeprefix("kube-") for component in COMPONENTS)


class AuditProfile(msgspec.Struct, frozen=True):
    """
    The checks of a standard and the weight of each.

    A `fail` check must hold. A `fail-if-shown` check may stay undecided, for lack of a second source or of pods, but
    must not be broken. `warn` and `info` checks never make the cluster fail.
    """

    name: str
    title: str
    weights: Mapping[str, str]


def _weight_of_each_component(prefix: str, weight: str) -> dict[str, str]:
    return {f"{prefix}-{component}": weight for component in _COMPONENTS}


def _weight_at_each_level(prefix: str, weight: str) -> dict[str, str]:
    return {f"{prefix}-{level}": weight for level in LEVELS}


def requiring(profile: AuditProfile, check_ids: Iterable[str]) -> AuditProfile:
    """The profile with these checks required, whatever their weight in it."""
    return msgspec.structs.replace(profile, weights={**profile.weights, **dict.fromkeys(check_ids, FAIL)})


_COMMON = {
    "cp-hidden": FAIL,
    "scs-0214-cp-machines": FAIL,
    "scs-0214-labels-zone": FAIL,
    "scs-0214-labels-region": FAIL,
    "scs-0214-labels-current": FAIL_IF_SHOWN,
    "scs-0214-cp-zones": WARN,
    "scs-0214-worker-spread": WARN,
    **_weight_of_each_component("scs-0213-dup", FAIL_IF_SHOWN),
    **_weight_of_each_component("scs-0213-half", WARN),
    "fd-quorum-etcd-host": WARN,
    "fd-quorum-etcd-zone": WARN,
    "fd-odd-etcd": INFO,
    **_weight_at_each_level("fd-n1-component", WARN),
    **_weight_at_each_level("fd-n1-workloads", WARN),
    **_weight_at_each_level("fd-need-workloads", WARN),
    **_weight_at_each_level("fd-room", WARN),
    "lbl-host-present": WARN,
    "lbl-host-vacuous": WARN,
    "lbl-host-one-zone": FAIL,
    "lbl-zone-one-region": FAIL,
    "lbl-mixed-keys": WARN,
    "lbl-zone-uninformative": INFO,
    "cp-role-mismatch": WARN,
}
# The differences of each version from the one in force.
_DRAFT = {"scs-0214-cp-each-zone": FAIL, "lbl-host-present": FAIL}
_V1 = {"scs-0214-cp-each-zone": FAIL, "scs-0214-labels-zone": WARN, "scs-0214-labels-region": WARN}
_V1 |= {"scs-0214-labels-current": WARN, "lbl-host-one-zone": WARN, "lbl-zone-one-region": WARN}
_RECORD = {**_V1, **_weight_of_each_component("scs-0213-dup", FAIL), "scs-0214-cp-machines": WARN}
del _RECORD["scs-0214-cp-each-zone"]
_HA = {**_weight_of_each_component("scs-0213-dup", FAIL), **_weight_of_each_component("scs-0213-half", FAIL)}
_HA |= dict.fromkeys(
    ("fd-quorum-etcd-host", "fd-quorum-etcd-zone", "fd-n1-component-host", "fd-n1-component-zone"), FAIL
)
_BSI = {"bsi-cp-three-nodes": FAIL, "bsi-cp-three-zones": FAIL, "bsi-worker-two-zones": FAIL}
_BSI |= {"bsi-infra-two-zones": FAIL, "bsi-every-role-twice": FAIL, "fd-n1-workloads-zone": FAIL_IF_SHOWN}
_BSI |= {"fd-quorum-etcd-zone": FAIL, "fd-n1-component-zone": FAIL, "scs-0214-labels-region": WARN}
# Every cluster has many workloads without a stanza; where pods actually run is judged by the checks above.
_BSI |= {"bsi-stanza-deployment": WARN, "bsi-stanza-statefulset": WARN}

PROFILES = {
    profile.name: profile
    for profile in (
        AuditProfile(DEFAULT, "SCS-0214-v2, Kubernetes Node Distribution and Availability", _COMMON),
        AuditProfile("scs-0214-v2-draft", "SCS-0214-v2 as drafted in 2024", {**_COMMON, **_DRAFT}),
        AuditProfile("scs-0214-v1", "SCS-0214-v1", {**_COMMON, **_V1}),
        AuditProfile("scs-0213", "SCS-0213, Kubernetes Nodes Anti Affinity", {**_COMMON, **_RECORD}),
        AuditProfile("ha", "High availability: quorum survives any one loss", {**_COMMON, **_HA}),
        AuditProfile("bsi-app-4.4.a19", "BSI APP.4.4.A19, high availability", {**_COMMON, **_BSI}),
        AuditProfile(LEGACY[0], "The retired upstream script, before November 2024", {}),
        AuditProfile(LEGACY[1], "The retired upstream script, as it is now", {}),
    )
}
