"""
Which execution-time rules are violated, by plain loops over all pairs of pods.

Question in (`nodes`, `namespaces`, `pods`, `options` of `decide pods`), list of violated rules out.
"""

import yaml

from reference.affinity_terms import EXECUTION, REQUIRED, Term
from reference.cycle import semantics_of
from reference.label_keys import ANNOTATION
from reference.objects import Cluster


class Scene:
    def __init__(self, question):
        self.cluster = Cluster(question)
        self.semantics = semantics_of(question.get("options") or {}, self.cluster)
        self.placed = [(node, pod) for node in self.cluster.nodes for pod in node.pods]

    def means(self, term, pod, *, incoming):
        return term.matches(pod, self.cluster.namespace_labels(pod.namespace), self.semantics, incoming=incoming)

    def is_daemon(self, pod):
        return pod.namespace in self.semantics.daemon_namespaces


def broken(question):
    """(owner, sign, path, topology keys, domains, node, peers) for each, in order."""
    scene = Scene(question)
    found = []
    for node, owner in scene.placed:
        if not owner.terminating:
            found += missing_affinity(scene, node, owner)
            found += broken_anti_affinity(scene, node, owner)
    return sorted(found)


def missing_affinity(scene, node, owner):
    lasting = meaningful(scene, listed(owner, "podAffinity", EXECUTION))
    every = listed(owner, "podAffinity", EXECUTION, REQUIRED)
    for path, term in lasting:
        peers = [
            pod
            for other, pod in scene.placed
            if pod is not owner and meets(scene, lasting, term, pod) and shares(scene, term, node, other)
        ]
        if peers or is_first(scene, owner, lasting, term) or is_first(scene, owner, every, term):
            continue
        elsewhere = [pod for _, pod in scene.placed if pod is not owner and meets(scene, lasting, term, pod)]
        domains = term.domains(node, scene.semantics)
        yield breach(owner, "affinity", path, term.keys(scene.semantics), domains, node, elsewhere)


def meets(scene, terms, term, pod):
    """Whether the pod matches: all of the terms at once, or this one."""
    needed = [term] if scene.semantics.affinity_terms_met_apart else [each for _, each in terms]
    return all(scene.means(each, pod, incoming=True) for each in needed)


def is_first(scene, owner, terms, term):
    """Whether the first-pod exception would apply to the owner with these terms if it were placed now."""
    semantics = scene.semantics
    if semantics.first_pod_per_term:
        return scene.means(term, owner, incoming=True) and not any(
            scene.means(term, pod, incoming=True) for _, pod in scene.placed if pod is not owner
        )
    if not all(scene.means(each, owner, incoming=True) for _, each in terms):
        return False
    return not any(
        meets(scene, terms, each, pod) and (each.domains(node, semantics) or is_any(each, semantics))
        for _, each in terms
        for node, pod in scene.placed
        if pod is not owner
    )


def is_any(term, semantics):
    """Over several keys every pod counts, whatever labels its node has."""
    return len(term.keys(semantics)) > 1


def broken_anti_affinity(scene, node, owner):
    if scene.is_daemon(owner):
        return
    for path, term in meaningful(scene, listed(owner, "podAntiAffinity", EXECUTION)):
        for domain in term.domains(node, scene.semantics):
            peers = [
                pod
                for other, pod in scene.placed
                if pod is not owner
                and not pod.terminating
                and not scene.is_daemon(pod)
                and scene.means(term, pod, incoming=False)
                and domain in term.domains(other, scene.semantics)
            ]
            if len(peers) > term.limit:
                yield breach(owner, "anti-affinity", path, [domain[0]], [domain], node, peers)


def shares(scene, term, one, other):
    return any(domain in term.domains(other, scene.semantics) for domain in term.domains(one, scene.semantics))


def listed(pod, sign, *lists):
    """(path, term) of the spec, then of the annotation; in each, one list after the other."""
    annotations = (pod.manifest.get("metadata") or {}).get("annotations") or {}
    sources = [("spec.affinity", pod.spec.get("affinity") or {})]
    if annotations.get(ANNOTATION):
        sources.append((f"metadata.annotations[{ANNOTATION}]", yaml.safe_load(annotations[ANNOTATION]) or {}))
    return [
        (f"{where}.{sign}.{name}[{i}]", Term(pod.namespace, raw))
        for where, affinity in sources
        for name in lists
        for i, raw in enumerate((affinity.get(sign) or {}).get(name) or [])
    ]


def meaningful(scene, terms):
    """The terms without those whose empty topology key has no meaning."""
    return [(path, term) for path, term in terms if term.topology_key or scene.semantics.empty_topology_key_means_any]


def breach(owner, sign, path, keys, domains, node, peers):
    return (
        f"{owner.namespace}/{owner.name}",
        sign,
        path,
        ", ".join(keys),
        ", ".join(f"{key}={value}" for key, value in domains),
        node.name,
        tuple(sorted(f"{pod.namespace}/{pod.name}" for pod in peers)),
    )
