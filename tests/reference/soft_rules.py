"""The points of soft rules of placed pods, by plain loops over all pairs. Question in (without a pending pod)."""

from reference.cycle import semantics_of
from reference.objects import Cluster
from reference.selecting import node_selected, selects, selects_all, term_matches

STRONGEST = 100


def points(question):
    cluster = Cluster(question)
    semantics = semantics_of(question.get("options") or {}, cluster)
    placed = [(node, pod) for node in cluster.nodes for pod in node.pods]
    total = sum(peer_points(cluster, semantics, placed, node, pod) for node, pod in placed)
    total += sum(node_points(node, pod) - STRONGEST * soft_taints(node, pod) for node, pod in placed)
    return total - STRONGEST * too_many(cluster, placed)


def peer_points(cluster, semantics, placed, node, owner):
    points = 0
    for sign, terms in ((1, owner.terms.preferred), (-1, owner.terms.anti_preferred)):
        for term in terms:
            peers = [
                pod
                for other, pod in placed
                if pod is not owner
                and term.matches(pod, cluster.namespace_labels(pod.namespace), semantics)
                and set(term.domains(node, semantics)) & set(term.domains(other, semantics))
            ]
            points += sign * term.weight * (min(len(peers), 1) if semantics.soft_terms_count_once else len(peers))
    return points


def node_points(node, pod):
    preferred = pod.node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or []
    return sum(one["weight"] for one in preferred if term_matches(one["preference"], node.labels, node.name))


def soft_taints(node, pod):
    return sum(
        taint["effect"] == "PreferNoSchedule" and not any(tolerates(each, taint) for each in pod.tolerations)
        for taint in node.taints
    )


def tolerates(toleration, taint):
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def too_many(cluster, placed):
    """For every soft spread constraint, each once: pods beyond what the emptiest domain and the skew allow."""
    constraints = []
    for _, pod in placed:
        for raw in pod.spec.get("topologySpreadConstraints") or []:
            required = (
                pod.node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution"),
                pod.spec.get("nodeSelector"),
            )
            found = (pod.namespace, raw, required)
            empty = raw.get("labelSelector") is None or selects_all(raw["labelSelector"])
            if raw["whenUnsatisfiable"] == "ScheduleAnyway" and not empty and found not in constraints:
                constraints.append(found)
    return sum(excess(cluster, placed, *found) for found in constraints)


def excess(cluster, placed, namespace, raw, required):
    key = raw["topologyKey"]
    eligible = [node for node in cluster.nodes if key in node.labels and allowed(node, *required)]
    counts = {node.labels[key]: 0 for node in eligible}
    for node, pod in placed:
        if node in eligible and pod.namespace == namespace and not pod.terminating:
            counts[node.labels[key]] += selects(raw["labelSelector"], pod.labels)
    return sum(max(0, count - min(counts.values()) - raw["maxSkew"]) for count in counts.values())


def allowed(node, required, node_selector):
    if any(node.labels.get(key) != value for key, value in (node_selector or {}).items()):
        return False
    return required is None or node_selected(required, node.labels, node.name)
