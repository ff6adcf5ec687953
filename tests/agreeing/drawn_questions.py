"""Whole questions for `decide pods`: of one decision, of a large cluster, and of a cluster that changes."""

from agreeing import drawn_configs, drawn_nodes, drawn_pods, drawn_steps, drawn_storage
from agreeing.drawing import NAMESPACES, THEMES, Theme, thing
from reference.strategies import POD_LABELS, match_labels

STORAGE = ("claims", "disks", "ephemeral", "attach-limits", "capacity", "volumes", "volume-zones")
LIVING, LARGE = "living", "large"


def question(seed, number):
    """The question of this number. Every tenth is about a living cluster, every fiftieth about a large one."""
    themes = sorted(THEMES)
    theme = Theme(themes[number % len(themes)], f"{seed}/{number}")
    if number % 50 == 7:
        return _named(question_of(theme, theme.number(200, 1000), 400), f"{LARGE}-{theme.name}", seed, number)
    if number % 10 == 3:
        drawn = question_of(theme, theme.number(2, 5), 6)
        drawn["steps"] = drawn_steps.steps(theme, drawn)
        del drawn["pod"]
        return _named(drawn, f"{LIVING}-{theme.name}", seed, number)
    return _named(question_of(theme, theme.number(1, 8), 18), theme.name, seed, number)


def _named(drawn, kind, seed, number):
    return {"name": f"{kind}-{seed}-{number}", **drawn}


def question_of(theme, n_nodes, most_pods):
    node_names = [f"n{i}" for i in range(n_nodes)]
    is_stored = theme.has(*STORAGE)
    claims = drawn_storage.CLAIMS if is_stored else ()
    pod = drawn_pods.pending(theme, "new", claims)
    if theme.has("node-name"):
        pod["spec"]["nodeName"] = theme.pick((*node_names, "gone"))
    pods = [
        drawn_pods.placed(theme, f"p{i}", node_names, claims) for i in range(theme.number(most_pods // 6, most_pods))
    ]
    if theme.has("nominated"):
        waiting = [drawn_pods.pending(theme, f"w{i}", claims) for i in range(theme.number(1, 3))]
        pods += [drawn_pods.nominate(theme, one, node_names) for one in waiting]
    drawn = {
        "nodes": [drawn_nodes.node(theme, name) for name in node_names],
        "namespaces": drawn_nodes.namespaces(theme),
        "pods": pods,
        "pod": pod,
        "objects": objects(theme, [*pods, pod], node_names, is_stored=is_stored),
    }
    config = drawn_configs.config(theme)
    return drawn | ({"options": {"config": config}} if config else {})


def objects(theme, pods, node_names, *, is_stored):
    found = []
    if is_stored:
        found += drawn_storage.storage(theme, pods[-1]["metadata"]["namespace"], pods, node_names)
    if theme.has("controllers"):
        found += controllers(theme, pods)
    return found


def _selector_of(theme, labels):
    """A selector that matches these labels, as it must those of its template."""
    if theme.often(2):
        return {"matchLabels": labels}
    key = theme.pick(sorted(labels))
    exists = {"key": key, "operator": theme.pick(("Exists", "In"))}
    return {"matchExpressions": [exists | ({"values": [labels[key], "other"]} if exists["operator"] == "In" else {})]}


def controllers(theme, pods):
    """Services and controllers that select some pods; the controllers own them."""
    found = []
    for number in range(theme.number(0, 3)):
        namespace = theme.pick((pods[-1]["metadata"]["namespace"], *NAMESPACES))
        spec = {"selector": match_labels(theme, POD_LABELS)} if theme.often(8) else {}
        found.append(thing("Service", f"s{number}", namespace=namespace, spec=spec))
    for kind, api_version in (("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1"), ("ReplicationController", "v1")):
        if theme.often(2):
            continue
        pod = theme.pick(pods[-3:])
        name, namespace = kind.lower(), pod["metadata"]["namespace"]
        plain = kind == "ReplicationController"
        own = match_labels(theme, POD_LABELS)
        template = {"metadata": {"labels": own}, "spec": {"containers": [{"name": "c", "image": "repo/web:v1"}]}}
        spec = {"selector": own if plain else _selector_of(theme, own), "template": template}
        made = thing(kind, name, api_version, namespace=namespace, spec=spec)
        owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": made["metadata"]["uid"]}
        pod["metadata"]["ownerReferences"] = [owner | {"controller": theme.often(6)}]
        found.append(made)
    return found
