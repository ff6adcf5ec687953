"""
An id for each warning of `validate`, by which it can be ignored and looked up. The ids are stable.

A warning has the first id whose text its message contains. It does not know when a warning is given.
"""

from __future__ import annotations

from bayplan.validating import ineffective_rules, placements, warnings

OTHER = "Warning"
SKIPPED_FILE = "SkippedFile"
# Id → a part of the message that no other warning has, and a description.
_TABLE = {
    "DeprecatedLabel": (("deprecated since v", "node-role.kubernetes.io/control-plane"), "A node label is deprecated"),
    "NullLabelSelector": ((warnings.NO_SELECTOR,), "A term without a selector matches no pod"),
    "DroppedField": ((warnings.DROPPED, warnings.DROPPED_OF_PLACEMENT), "An API server drops the field"),
    "UnparsableSelector": ((warnings.UNPARSABLE,), "A selector of a placement is invalid and matches nothing"),
    "InvalidPreferredValue": ((" is invalid, ",), "No label can have a value that a preferred term names"),
    "OnePodMeetsAllTerms": ((warnings.ONE_FOR_ALL,), "One pod has to meet all required affinity terms at once"),
    "NegativeNamespaceSelector": ((warnings.NEGATIVE_SELECTOR,), "The namespace selector matches every namespace"),
    "EmptyNamespaceList": ((warnings.EMPTY_LIST,), "An empty list of namespaces means the pod's own"),
    "AntiAffinityToDaemons": ((warnings.DAEMONS_TOO,), "The term covers the pods of daemons"),
    "StuckRollingUpdate": ((warnings.STUCK_UPDATE,), "The rolling update needs a free domain"),
    "TakesEveryCluster": ((warnings.EVERY_CLUSTER,), "The first workload takes every cluster that fits"),
    "NoMaxGroups": ((warnings.NO_MAX, warnings.NO_MAX_BESIDE_REGION), "The spread constraint has no maxGroups"),
    "SpreadByLabel": ((warnings.BY_LABEL,), "Karmada does not spread by label"),
    "SpreadByField": (("Karmada does not spread by ",), "Karmada does not spread by this field"),
    "StaticWeightsIgnoreSpread": ((warnings.STATIC,), "Static weights ignore spread constraints"),
    "NeverFallsThrough": ((warnings.NEVER_FALLS_THROUGH,), "The next term is never tried for lack of resources"),
    "NullWorkloadSelector": ((warnings.NO_WORKLOAD_SELECTOR,), "A term without a selector matches no workload"),
    "UnknownCluster": ((placements.UNKNOWN_CLUSTER,), "The input has no cluster of this name"),
    "NoNodeHasKey": (
        (ineffective_rules.NO_NODE_HAS, ineffective_rules.MISSPELT),
        "No node has the label of a topology key",
    ),
    "ExemptNodes": ((ineffective_rules.NOT_EVERY_NODE_HAS,), "Anti-affinity does not apply to nodes without the label"),
    "NoNamespaces": ((ineffective_rules.NO_NAMESPACES,), "The labels of namespaces are not known"),
    "NothingMatches": (
        (ineffective_rules.NOTHING_MATCHES, ineffective_rules.CONTRADICTION),
        "No pod matches the selector",
    ),
    "DaemonsExempt": ((ineffective_rules.DAEMONS_EXEMPT,), "The term has no effect in daemon namespaces"),
    SKIPPED_FILE: (("skipped: ",), "Something in a directory is not read"),
}
DESCRIPTIONS = {name: description for name, (_, description) in _TABLE.items()}


def id_of(message: str) -> str:
    """The id of a warning."""
    return next((name for name, (texts, _) in _TABLE.items() if any(text in message for text in texts)), OTHER)
