"""
The domains of nodes according to an inventory, and whether labels agree with it.

Labels may be obfuscated: OpenStack writes hashes of host names, and so does `audit labels --hash-key-file`. Obfuscated
labels are compared by grouping: what must agree is which nodes share a domain. Knows nothing of checks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from bayplan.auditing.layout import CLOUD, DECLARED, HOST, LEVELS, OBSERVED, AuditNode, Grouping

_DIGEST = re.compile(r"(?=.*[0-9])[0-9a-f]{16,}")
Entries = Mapping[str, Mapping[str, str]]  # the domain of each level, by node name


def match(
    nodes: Sequence[AuditNode], entries: Entries, *, revealed: bool = False
) -> tuple[list[AuditNode], tuple[Grouping, ...]]:
    """
    The nodes with the domains of the inventory, and the groupings to compare at levels with obfuscated labels.

    A domain that has an obfuscated label keeps it as its name, unless `revealed`: the inventory's own names would say
    which hash is which machine.
    """
    groupings = []
    found = list(nodes)
    for level in LEVELS:
        stated = {node.name: value for node in found if (value := entries.get(node.name, {}).get(level))}
        if not stated:
            continue
        labels = {node.name: node.labels[node.keys[level]] for node in found if _is_labelled(node, level)}
        obfuscated = obfuscated_values(level, labels.values(), stated.values())
        pairs = tuple((name, labels[name], value) for name, value in stated.items() if name in labels)
        grouping = Grouping(level, pairs, revealed)
        values_of = _values_by_label(grouping)
        names = _names(grouping, values_of, obfuscated)
        # A hash of which only the label is known, and a machine of which only the name is, may be the same.
        hashes = {
            name for name, value in labels.items() if name not in stated and value in obfuscated - values_of.keys()
        }
        machines = {name for name, value in stated.items() if labels.get(name) not in obfuscated and value not in names}
        unknown = min(hashes, machines, key=len) if hashes and machines else set()
        relation = _Relation(level, labels, stated, obfuscated, names, values_of, unknown)
        found = [relation.placed(node) for node in found]
        groupings += [grouping] if any(label in obfuscated for _, label, _ in pairs) else []
    return found, tuple(groupings)


def group_statements(nodes: Iterable[AuditNode]) -> tuple[list[AuditNode], tuple[Grouping, ...]]:
    """
    The nodes without what other sources say where the label is a hash, and that as groupings.

    A Machine or a storage driver says the plain name of a zone that is hashed in the label.
    """
    found = []
    pairs: dict[str, list[tuple[str, str, str]]] = {}
    for node in nodes:
        kept = []
        for statement in node.other_sources:
            _, level, value = statement
            label = node.labels.get(node.keys.get(level, ""), "")
            if _DIGEST.fullmatch(label) and not _DIGEST.fullmatch(value):
                pairs.setdefault(level, []).append((node.name, label, value))
            else:
                kept.append(statement)
        found.append(msgspec.structs.replace(node, other_sources=tuple(kept)))
    return found, tuple(Grouping(level, tuple(several), source="other sources") for level, several in pairs.items())


def obfuscated_values(level: str, labels: Iterable[str], stated: Iterable[str]) -> frozenset[str]:
    """
    The label values that are not names of the inventory: digests, and those of hosts if no label is such a name.

    A plain zone or region that differs from the inventory is wrong, not obfuscated.
    """
    given, known = set(labels), set(stated)
    other_names = level == HOST and not given & known
    return frozenset(value for value in given - known if other_names or _DIGEST.fullmatch(value))


def _is_labelled(node: AuditNode, level: str) -> bool:
    """Whether a label says its domain; one that names the node itself does not."""
    return level in node.keys and not (level == HOST and node.vacuous)


def _values_by_label(grouping: Grouping) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for _, label, value in grouping.pairs:
        found.setdefault(label, set()).add(value)
    return found


def _names(grouping: Grouping, values_of: Mapping[str, set[str]], obfuscated: Collection[str]) -> dict[str, str]:
    """
    The name in the layout of each domain that has an obfuscated label: that label, if each belongs to the other alone.

    Where the groupings differ, no label is a name; the name then has a space, so that it cannot be taken for a label.
    """
    labels_of: dict[str, set[str]] = {}
    for _, label, value in grouping.pairs:
        labels_of.setdefault(value, set()).add(label)
    found: dict[str, str] = {}
    for node, label, value in grouping.pairs:
        if not labels_of[value] & set(obfuscated):
            continue
        if grouping.revealed:
            found[value] = value
        elif labels_of[value] == {label} and values_of[label] == {value}:
            found[value] = label
        else:
            found.setdefault(value, f"{grouping.level} of {node}")
    return found


class _Relation(msgspec.Struct, frozen=True):
    """
    Labels and inventory at one level, by node name; `names` are the names in the layout by the inventory's names.

    `unknown` are nodes whose domain cannot be told from that of other nodes.
    """

    level: str
    labels: Mapping[str, str]
    stated: Mapping[str, str]
    obfuscated: frozenset[str]
    names: Mapping[str, str]
    values_of: Mapping[str, set[str]]
    unknown: Collection[str]

    def placed(self, node: AuditNode) -> AuditNode:
        """The node with its domain at the level, None where that is unknown."""
        value, label = self.stated.get(node.name), self.labels.get(node.name)
        if node.name in self.unknown:
            shared = {**node.together, self.level: value or str(label)}
            return msgspec.structs.replace(self._at(node, None, DECLARED), together=shared)
        if value is not None:
            plain = label is not None and label not in self.obfuscated
            vacuous = self.level == HOST and bool(node.vacuous)
            compared = (("inventory", self.level, value),) if plain or (vacuous and self.level in node.keys) else ()
            return self._at(node, self.names.get(value, value), OBSERVED, compared)
        if label is None or label not in self.obfuscated:
            return node
        values = self.values_of.get(label, set())
        if len(values) == 1:
            return self._at(node, self.names[next(iter(values))], DECLARED)
        return self._at(node, None if values else label, DECLARED)

    def _at(
        self, node: AuditNode, domain: str | None, evidence: str, compared: tuple[tuple[str, str, str], ...] = ()
    ) -> AuditNode:
        others = {level: kind for level, kind in node.evidence.items() if level != self.level}
        return msgspec.structs.replace(
            node,
            domains={**node.domains, self.level: domain},
            evidence={**others, self.level: evidence} if domain else others,
            cloud_assumed=node.cloud_assumed and self.level != CLOUD,
            other_sources=(*node.other_sources, *compared),
        )
