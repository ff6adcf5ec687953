"""Node selectors and node affinity of pods and volumes. Does not know how nodes are stored."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

GT, LT = "Gt", "Lt"
NAME_FIELD = "metadata.name"


class NodeRequirement(msgspec.Struct, frozen=True):
    """One expression on a node label, or (in `fields`) on the node's name."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        """Whether a node with this value of the label (None: without the label) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _compares(self.operator, value, self.values)
        return False

    def __str__(self) -> str:
        return f"{self.key} {self.operator} ({','.join(self.values)})" if self.values else f"{self.key} {self.operator}"


class NodeTerm(msgspec.Struct, frozen=True):
    """Expressions and fields that must all hold; a term without any matches no node."""

    expressions: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if not self.expressions and not self.fields:
            return False
        return all(e.matches(labels.get(e.key)) for e in self.expressions) and all(
            f.key == NAME_FIELD and f.matches(name) for f in self.fields
        )

    def __str__(self) -> str:
        return " and ".join(str(requirement) for requirement in (*self.expressions, *self.fields)) or "nothing"


class PreferredNodeTerm(msgspec.Struct, frozen=True):
    weight: int
    term: NodeTerm


class NodeAffinity(msgspec.Struct, frozen=True, cache_hash=True):
    """
    `selector` is `spec.nodeSelector`; `required` is None if the pod has no required node affinity.

    `fault` says why the preferred terms cannot be parsed: kube-scheduler fails at such a pod when it scores nodes.
    """

    selector: tuple[tuple[str, str], ...] = ()
    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[PreferredNodeTerm, ...] | None = None
    fault: str = ""


ANY_NODE = NodeAffinity()


def parse_integer(text: str) -> int | None:
    """As Go's ParseInt in base 10: 64 bits, an optional sign, no spaces or underscores."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0")[:20] or "0"  # 20 digits are too many already, and thousands would be slow
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if -(2**63) <= value < 2**63 else None


def _compares(operator: str, value: str | None, values: tuple[str, ...]) -> bool:
    if value is None or len(values) != 1:
        return False
    label, bound = parse_integer(value), parse_integer(values[0])
    if label is None or bound is None:
        return False
    return label > bound if operator == GT else label < bound
