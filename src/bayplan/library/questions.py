"""Questions about what runs, asked of a state that was read: how the answers of `running` are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import arguments
from bayplan.library import settings as deciding
from bayplan.library.inputs import Materials, Scope, Show
from bayplan.library.reading import Reading, empty_namespace
from bayplan.library.running import Charging, QuotaReport, quota_report_of

if TYPE_CHECKING:
    from bayplan.enforcing.quota import Amounts, QuotaLimits

QUOTA_CONFIG_MAP = "bayplan-system/bayplan-quota"


def quota(reading: Reading, scope: Scope, charge: Charging, limits: str | None, show: Show) -> QuotaReport:
    """
    What each namespace is charged; `limits` is NAMESPACE/NAME of their ConfigMap, by default that of Bayplan.

    The input is read anew: the ConfigMap is no part of a state otherwise.
    """
    from bayplan.enforcing import quota as accounting
    from bayplan.enforcing.quota import Charger
    from bayplan.kube_api import resources
    from bayplan.reading import cluster
    from bayplan.reading.quota_limits import LimitsSink
    from bayplan.watching.fetching import ObjectToFetch
    from bayplan.wire import kinds

    arguments.check_choice("charge", charge, ("largest", "average"))
    if limits is not None:
        arguments.check_is("limits", limits, str)
    namespace, slash, name = (limits or QUOTA_CONFIG_MAP).partition("/")
    if not (namespace and slash and name):
        raise ArgumentError(f"expected NAMESPACE/NAME, got {limits!r}", argument="limits")
    sink = LimitsSink(f"{namespace}/{name}")
    asked_for = ObjectToFetch(resources.of_kind("ConfigMap"), namespace, name)
    inputs, pods, fetched = reading.materials.read(show, {kinds.CONFIG_MAP: sink}, (asked_for,))
    notes = list(fetched)
    if scope.namespace is not None and scope.namespace not in sink.limits.by_namespace:
        notes += empty_namespace(scope.namespace, inputs.namespace_names())
    if not sink.found:
        if limits is not None:
            raise ArgumentError(f"the input has no ConfigMap {limits}", argument="limits")
        notes.append(f"there are no limits: the input has no ConfigMap {QUOTA_CONFIG_MAP}")
    found = cluster.cluster_of(inputs, semantics=deciding.semantics_of(reading.spec.settings), sink=pods)
    charger = Charger(found.index, charge)
    pending = (charger.pending(workload) for workload in found.pending)
    charges = [*charger.placed(), *(one for one in pending if one is not None)]
    supply = accounting.sum_amounts(target.allocatable for target in found.index.slots.targets if target is not None)
    accounts = [one for one in accounting.accounts(charges, sink.limits) if scope.namespace in (None, one.namespace)]
    further = (*found.notes, *_overcommitment(sink.limits, supply))
    return quota_report_of(accounts, charge, supply, (*notes, *further))


def _overcommitment(limits: QuotaLimits, supply: Amounts) -> Iterator[str]:
    """The resources of which the limits add up to more than the nodes have, which is allowed."""
    from bayplan.enforcing import quota as accounting
    from bayplan.model import quantities

    allocatable = dict(supply)
    for name, limit in accounting.sum_amounts(limits.by_namespace.values()):
        if limit > allocatable.get(name, 0):
            amounts = (quantities.show(name, amount) for amount in (limit, allocatable.get(name, 0)))
            yield (
                "the limits of {} add up to {}, more than the {} of all nodes: "
                "priority and preemption decide which pods run".format(name, *amounts)
            )


class StateSnapshot(msgspec.Struct, frozen=True):
    """A state as one JSON List of its objects, and notes on what is missing in it."""

    text: str
    n_objects: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<StateSnapshot: {self.n_objects} objects>"

    def to_dict(self) -> dict[str, Any]:
        """The List."""
        found: dict[str, Any] = msgspec.json.decode(self.text)
        return found


def snapshot(materials: Materials, key: bytes | None, show: Show) -> StateSnapshot:
    """The state as one JSON List; with a key, names are replaced by hashes with it."""
    from bayplan.model.semantics import DESIGN
    from bayplan.wire import kinds
    from bayplan.wire.pods import Pod
    from bayplan.writing import snapshots
    from bayplan.writing.name_hashing import Renaming

    pods: list[Pod] = []
    # With the semantics that accept most objects: whatever Bayplan can decide on can be reported.
    inputs, _, notes = materials.read(show, {kinds.POD: pods.append}, semantics=DESIGN)
    taken = snapshots.snapshot_of(inputs, pods)
    text = taken.text(None if key is None else Renaming(key))
    return StateSnapshot(text, len(taken.objects), (*notes, *inputs.hints, *snapshots.left_out(inputs)))
