"""
Whether a rule of one namespace may evict pods of another.

A rule is written by the owner of its pod, and its selector may match pods of every namespace. So it evicts across
namespaces only with consent: of the victim's namespace, by a label, or of the operator, by a grant to the namespace of
the rule. Under the switch `evictAcrossNamespaces` no consent is needed. Does not know rules or victims.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import msgspec

from bayplan.model.labels import Labels
from bayplan.model.workloads import WorkloadKey

EVICTABLE_BY = "bayplan.io/evictable-by"
# Label values allow neither commas nor asterisks. Names of namespaces have no underscore and no capital letter, so
# neither can be mistaken for a part of a name.
SEPARATOR = "_"
ANY = "ANY"


class EvictionConsent(msgspec.Struct, frozen=True):
    """`everywhere`: no consent is needed. `granted` are the namespaces whose rules may evict everywhere."""

    everywhere: bool
    granted: AbstractSet[str]
    namespaces: Mapping[str, Labels]

    def allows(self, rule_namespace: str, victim_namespace: str) -> bool:
        """Whether a rule of the first namespace may evict pods of the second."""
        if self.everywhere or rule_namespace == victim_namespace or rule_namespace in self.granted:
            return True
        named = consenting_to(self.namespaces.get(victim_namespace))
        return rule_namespace in named or ANY in named


def consenting_to(labels: Labels | None) -> tuple[str, ...]:
    """The namespaces whose rules may evict pods of the namespace with these labels, or `ANY`."""
    written = (labels or {}).get(EVICTABLE_BY, "")
    return tuple(written.split(SEPARATOR)) if written else ()


def namespace_of(key: WorkloadKey) -> str:
    return key.partition("/")[0]
