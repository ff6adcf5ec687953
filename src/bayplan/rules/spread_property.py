"""SpreadConstraint: a cluster has every property that the spread constraints of the placement name."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At
from bayplan.model.reasons import Codes, DocumentedReason, Reason, StatusCode
from bayplan.model.targets import FIELD_KEYS, PROVIDER, REGION, ZONE
from bayplan.model.workloads import Workload
from bayplan.rules.rule import Failure, LiftedBy, PartRule

NO_PROVIDER = Reason("provider-missing", "cluster(s) did not have provider property", StatusCode.UNRESOLVABLE)
NO_REGION = Reason("region-missing", "cluster(s) did not have region property", StatusCode.UNRESOLVABLE)
NO_ZONES = Reason("zone-missing", "cluster(s) did not have zones property", StatusCode.UNRESOLVABLE)
NO_LABEL = Reason("label-missing", "cluster(s) did not have label <key>", StatusCode.UNRESOLVABLE)
PROPERTIES = {FIELD_KEYS[PROVIDER]: NO_PROVIDER, FIELD_KEYS[REGION]: NO_REGION, FIELD_KEYS[ZONE]: NO_ZONES}


class SpreadProperty(PartRule[tuple[str, ...]]):
    """Code i+1: the i-th constrained property is missing."""

    name = "SpreadConstraint"
    id = "spread-property"
    lifted_by = LiftedBy.TARGET
    follows_workloads = False
    documented = (
        DocumentedReason(
            NO_PROVIDER,
            means="A spread constraint uses the provider, and the cluster's spec.provider is empty.",
            to_do="Set spec.provider on the cluster, or remove the constraint.",
        ),
        DocumentedReason(
            NO_REGION,
            means="A spread constraint uses the region, and the cluster's spec.region is empty.",
            to_do="Set spec.region on the cluster, or remove the constraint.",
        ),
        DocumentedReason(
            NO_ZONES,
            means="A spread constraint uses the zone, and the cluster's spec.zones is empty.",
            to_do="Set spec.zones on the cluster, or remove the constraint.",
        ),
        DocumentedReason(
            NO_LABEL,
            means=(
                "A spread constraint uses this label, and the cluster does not have it. Karmada does not spread by "
                "label; only --semantics design does."
            ),
            to_do="Label the cluster, or remove the constraint.",
        ),
    )

    def part(self, workload: Workload, index: PlacementIndex) -> tuple[str, ...] | None:
        assert workload.binding is not None
        spread = workload.binding.placement.spread
        if index.semantics.spread_by_every_field:
            return tuple([key for c in spread if (key := FIELD_KEYS.get(c.field, c.label))]) or None
        return tuple([FIELD_KEYS[c.field] for c in spread if c.field in FIELD_KEYS]) or None

    def reject(self, state: tuple[str, ...], index: PlacementIndex, at: At) -> Codes:
        codes = np.zeros(len(index.slots.alive[at]), np.int64)
        for position in reversed(range(len(state))):  # the code of the first that is missing overwrites the others
            codes[~index.column(state[position]).present(at)] = position + 1
        return codes

    def reasons(self, state: tuple[str, ...], code: int) -> tuple[Reason, ...]:
        key = state[code - 1]
        return (PROPERTIES.get(key) or NO_LABEL.filled(key=key),)

    def evidence(self, state: tuple[str, ...], workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        del workload
        code = int(self.reject(state, index, np.array([slot]))[0])
        (reason,) = self.reasons(state, code)
        return [Failure(self.id, reason.text, term=f"spreadConstraints {state[code - 1].removeprefix(chr(0))}")]
