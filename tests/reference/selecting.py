"""Label selectors and node selectors, read straight from their JSON. Knows nothing of namespaces."""

import re

WHOLE_NUMBER = re.compile(r"[+-]?\d+")
NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


def selects(selector, labels):
    """Whether a LabelSelector matches; null matches nothing and {} everything."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(holds(requirement, labels) for requirement in selector.get("matchExpressions") or [])


def selects_all(selector):
    """Whether it is the empty selector, which has no requirement."""
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def holds(requirement, labels):
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values") or []
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return key not in labels or labels[key] not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    if operator in ("Gt", "Lt"):
        here, there = whole(labels.get(key)), whole(values[0])
        if here is None or there is None:
            return False
        return here > there if operator == "Gt" else here < there
    raise ValueError(f"no such operator: {operator}")


def whole(text):
    """A 64-bit integer, or None."""
    if text is None or not WHOLE_NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def node_selected(selector, labels, name):
    """Whether a NodeSelector matches: its terms are ORed; none at all, or only empty ones, match no node."""
    return any(term_matches(term, labels, name) for term in selector.get("nodeSelectorTerms") or [])


def term_matches(term, labels, name):
    """
    Whether one NodeSelectorTerm matches: its requirements are ANDed, and an empty term matches nothing.

    Fields are only evaluated where there is a node name; an invalid term matches nothing.
    """
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    if not all(makes_sense(requirement) for requirement in expressions):
        return False
    if not all(
        requirement["operator"] in ("In", "NotIn") and len(requirement["values"]) == 1 for requirement in fields
    ):
        return False
    if not all(holds(requirement, labels) for requirement in expressions):
        return False
    if not name:
        return True
    return all(field_holds(requirement, name) for requirement in fields)


def field_holds(requirement, name):
    value = name if requirement["key"] == "metadata.name" else ""
    return (value == requirement["values"][0]) == (requirement["operator"] == "In")


def makes_sense(requirement):
    operator, values = requirement["operator"], requirement.get("values") or []
    if operator in ("In", "NotIn"):
        return bool(values) and all(label_value(value) for value in values)
    if operator in ("Exists", "DoesNotExist"):
        return not values
    if operator in ("Gt", "Lt"):
        return len(values) == 1 and whole(values[0]) is not None and label_value(values[0])
    return False


def label_value(text):
    return text == "" or (len(text) <= 63 and NAME.fullmatch(text) is not None)
