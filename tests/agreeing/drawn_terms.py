"""Affinity and spread of pods, as an API server admits them: what `matchLabelKeys` add is in the selectors."""

from agreeing.drawing import NAMESPACES, NODE_LABELS, POD_LABELS, REGION, ZONE, ZONES
from reference.strategies import TOPOLOGY_KEYS, label_selector, match_labels, requirement

REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
TEAMS = {"team": ("a", "b"), "stage": ("prod", "test")}
WEIGHTS = (1, 2, 10, 50, 100)


def affinity(theme, labels):
    """`spec.affinity` of a pod with these labels; empty where none was drawn."""
    drawn = {}
    for sign, hard, soft in (
        ("podAffinity", "affinity", "soft-affinity"),
        ("podAntiAffinity", "anti-affinity", "soft-anti-affinity"),
    ):
        side = {}
        if theme.has(hard):
            side[REQUIRED] = [term(theme, labels) for _ in range(theme.number(1, 2))]
        if theme.has(soft):
            side[PREFERRED] = [
                {"weight": theme.pick(WEIGHTS), "podAffinityTerm": term(theme, labels)}
                for _ in range(theme.number(1, 3))
            ]
        if side:
            drawn[sign] = side
    nodes = node_affinity(theme)
    return drawn | ({"nodeAffinity": nodes} if nodes else {})


def term(theme, labels):
    drawn = {"topologyKey": theme.pick(TOPOLOGY_KEYS)}
    if theme.often(15):
        drawn["labelSelector"] = _selector(theme, labels)
        if theme.has("label-keys"):
            _add_label_keys(theme, drawn, labels)
    if theme.rarely(4):
        drawn["namespaces"] = theme.some(NAMESPACES, 1)
    if theme.rarely(4):
        drawn["namespaceSelector"] = _namespace_selector(theme)
    return drawn


def _some_of(theme, labels):
    """A selector that matches the pod itself as often as others."""
    own = {key: value for key, value in labels.items() if key in POD_LABELS and theme.often(2)}
    return own or match_labels(theme, POD_LABELS)


def _namespace_selector(theme):
    """Also one with negative requirements only."""
    if theme.rarely(3):
        negative = {"key": "team", "operator": theme.pick(("DoesNotExist", "NotIn"))}
        return {"matchExpressions": [negative | ({"values": ["a"]} if negative["operator"] == "NotIn" else {})]}
    return label_selector(theme, TEAMS)


def _add_label_keys(theme, drawn, labels, fields=("matchLabelKeys", "mismatchLabelKeys"), *, merged=True):
    """Add label keys that the selector does not use, and what an API server adds to the selector for them."""
    selector = drawn["labelSelector"]
    used = {*selector.get("matchLabels", {}), *(one["key"] for one in selector.get("matchExpressions", ()))}
    free, added = [key for key in POD_LABELS if key not in used], []
    for field in fields:
        keys = theme.some(free, 0, 1)
        if keys:
            drawn[field] = keys
        free = [key for key in free if key not in keys]
        operator = "In" if field == "matchLabelKeys" else "NotIn"
        added += [{"key": key, "operator": operator, "values": [labels[key]]} for key in keys if key in labels]
    if added and merged:
        drawn["labelSelector"] = {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), *added]}


def _selector(theme, labels):
    return label_selector(theme) if theme.has("selectors") else {"matchLabels": _some_of(theme, labels)}


def node_affinity(theme):
    drawn = {}
    if theme.has("node-affinity"):
        drawn[REQUIRED] = {"nodeSelectorTerms": [node_term(theme) for _ in range(theme.number(1, 3))]}
    if theme.has("soft-node-affinity"):
        drawn[PREFERRED] = [
            {"weight": theme.pick(WEIGHTS), "preference": node_term(theme)} for _ in range(theme.number(0, 3))
        ]
    return drawn


def node_term(theme):
    """Now and then an empty one, which matches nothing."""
    drawn = {}
    if theme.often(6):
        drawn["matchExpressions"] = [node_requirement(theme) for _ in range(theme.number(1, 2))]
    if theme.rarely(5):
        operator = theme.pick(("In", "In", "NotIn"))
        fields = [{"key": "metadata.name", "operator": operator, "values": [f"n{theme.below(6)}"]}]
        drawn["matchFields"] = fields
        if theme.rarely(2):
            drawn.pop("matchExpressions", None)
    return drawn


def node_requirement(theme):
    if theme.rarely(5):
        return {"key": "gen", "operator": theme.pick(("Gt", "Lt")), "values": [theme.pick(("1", "4", "0"))]}
    return requirement(theme, NODE_LABELS)


def spread_constraints(theme, labels):
    """Constraints without two of the same key and action, which no API server takes."""
    pairs = [(key, action) for key in TOPOLOGY_KEYS for action in ("DoNotSchedule", "ScheduleAnyway")]
    drawn = []
    for key, action in theme.some(pairs, 1, 3):
        constraint = {"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": theme.number(1, 3)}
        if theme.often(15):
            constraint["labelSelector"] = _selector(theme, labels)
            if theme.has("label-keys"):  # older API servers did not merge them
                _add_label_keys(theme, constraint, labels, ("matchLabelKeys",), merged=theme.often(2))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if theme.has("spread-policies"):
                constraint[policy] = theme.pick(("Honor", "Ignore"))
        if action == "DoNotSchedule" and theme.rarely(3):
            constraint["minDomains"] = theme.number(1, 5)
        drawn.append(constraint)
    return drawn


def zone_terms(theme):
    """The node affinity of a PersistentVolume: zones, hosts, regions or several of them."""
    by_key = {ZONE: ZONES, REGION: NODE_LABELS[REGION], "kubernetes.io/hostname": tuple(f"n{i}" for i in range(6))}
    return [
        {
            "matchExpressions": [
                {"key": key, "operator": theme.pick(("In", "In", "In", "NotIn")), "values": theme.some(by_key[key], 1)}
                for key in theme.some(sorted(by_key), 1, 2)
            ]
        }
        for _ in range(theme.pick((1, 1, 2)))
    ]
