"""
Rules of a pod that have no effect, or another one than meant, given what is known of a cluster.

A topology key that no node has switches a hard anti-affinity term off; a selector that no pod matches does the same.
Each finding is `path: message`. Knows nothing of files or of an index: what exists is passed in.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from bayplan.model.labels import Selector
from bayplan.model.semantics import Semantics
from bayplan.model.terms import NAME_LABEL, AffinityTerms, PeerTerm, PodTerm, resolve
from bayplan.model.workloads import SpreadConstraint

NO_NODE_HAS = "no node has the label "
NOT_EVERY_NODE_HAS = " have no label "
MISSPELT = " is no label that Kubernetes gives nodes"
NO_NAMESPACES = (
    "the input has no Namespace objects, so the only label of a namespace that is known is its name; add the output of "
    "kubectl get namespaces -o json"
)
NOTHING_MATCHES = "no pod of the input matches "
CONTRADICTION = "no pod can match "
DAEMONS_EXEMPT = "pods of daemon namespaces neither block nor are blocked, so this term has no effect"
# The labels that the kubelet and cloud providers give nodes and that make sense as topology keys.
WELL_KNOWN_KEYS = (
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/arch",
    "kubernetes.io/os",
)
_NEAR = 0.9  # of names outside the domains of Kubernetes nothing is known


class KnownObjects(msgspec.Struct, frozen=True):
    """
    What is known of a cluster.

    `nodes_with_key` counts nodes by label key; without nodes, `n_nodes` is 0 and the keys are not known. `selects` says
    whether a term selects any pod; None if not all pods are known.
    """

    n_nodes: int = 0
    nodes_with_key: Mapping[str, int] = {}
    has_namespaces: bool = True
    selects: Callable[[PeerTerm], bool] | None = None


def of_terms(affinity: AffinityTerms, namespace: str, semantics: Semantics, known: KnownObjects) -> Iterator[str]:
    """What is wrong with the pod affinity terms of a pod in `namespace`."""
    resolved = resolve(affinity, namespace, semantics, incoming=True)
    if affinity.anti_required and not resolved.anti_required:
        yield from (f"{term.path}: {DAEMONS_EXEMPT}" for term in affinity.anti_required)
    for use in resolved.anti_required:
        yield from _of_key(use.source.path, use.keys, known, "the term keeps no pods apart", exempts=True)
        if not _reaches_any(use.term, semantics):
            yield f"{use.source.path}: {DAEMONS_EXEMPT}"
    for use in resolved.required:
        yield from _of_key(use.source.path, use.keys, known, "the pod fits on no node")
    for use in (*resolved.required, *resolved.anti_required, *resolved.preferred, *resolved.anti_preferred):
        yield from _of_selection(use.source, use.term, known)


def of_constraints(constraints: tuple[SpreadConstraint, ...], known: KnownObjects) -> Iterator[str]:
    """What is wrong with the topology spread constraints of a pod."""
    for number, one in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{number}]"
        if one.hard:
            yield from _of_key(path, (one.topology_key,), known, "the pod fits on no node")
        if one.selector is not None and _is_contradictory(one.selector):
            yield f"{path}.labelSelector: {CONTRADICTION}{one.selector}"


def _of_key(
    path: str, keys: tuple[str, ...], known: KnownObjects, effect: str, *, exempts: bool = False
) -> Iterator[str]:
    if len(keys) > 1:
        return  # any of the configured keys
    (key,) = keys
    if not known.n_nodes:
        near = [] if key in WELL_KNOWN_KEYS else difflib.get_close_matches(key, WELL_KNOWN_KEYS, n=1, cutoff=_NEAR)
        yield from (f"{path}.topologyKey: {key}{MISSPELT}, did you mean {one}?" for one in near)
        return
    n_with = known.nodes_with_key.get(key, 0)
    if not n_with:
        near = _near(key, known.nodes_with_key)
        advice = f", did you mean {near[0]}?" if near else ""
        yield f"{path}.topologyKey: {NO_NODE_HAS}{key}, so {effect}{advice}"
    elif exempts and n_with < known.n_nodes:
        n_without = known.n_nodes - n_with
        yield (
            f"{path}.topologyKey: {n_without} of {known.n_nodes} nodes{NOT_EVERY_NODE_HAS}{key}: "
            "the term does not apply there"
        )


def _near(key: str, known: Iterable[str]) -> list[str]:
    """The known key that is meant: the same name in another domain, else a similar key."""
    name = key.rpartition("/")[2]
    same_name = [one for one in sorted(known) if one.rpartition("/")[2] == name]
    return same_name[:1] or difflib.get_close_matches(key, sorted(known), n=1)


def _of_selection(term: PodTerm, peers: PeerTerm, known: KnownObjects) -> Iterator[str]:
    if term.selector is not None and _is_contradictory(term.selector):
        yield f"{term.path}.labelSelector: {CONTRADICTION}{term.selector}"
        return
    needs_labels = term.namespace_selector is not None and any(
        one.key != NAME_LABEL for one in term.namespace_selector.requirements
    )
    if needs_labels and not known.has_namespaces:
        yield f"{term.path}.namespaceSelector: {NO_NAMESPACES}"
    elif term.selector is not None and known.selects is not None and not known.selects(peers):
        yield f"{term.path}.labelSelector: {NOTHING_MATCHES}{term.selector} in the namespaces of the term"


def _is_contradictory(selector: Selector) -> bool:
    """Whether two requirements on one key exclude each other."""
    by_key: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for one in selector.requirements:
        by_key.setdefault(one.key, []).append((one.operator, frozenset(one.values)))
    return any(map(_excludes_all, by_key.values()))


def _excludes_all(requirements: list[tuple[str, frozenset[str]]]) -> bool:
    operators = {operator for operator, _ in requirements}
    if "DoesNotExist" in operators:
        return bool(operators & {"Exists", "In"})
    allowed = [values for operator, values in requirements if operator == "In"]
    if not allowed:
        return False
    left = frozenset.intersection(*allowed)
    return not left.difference(*(values for operator, values in requirements if operator == "NotIn"))


def _reaches_any(term: PeerTerm, semantics: Semantics) -> bool:
    """Whether the term selects pods outside of daemon namespaces at all."""
    (part,) = term.parts
    listed = part.namespaces
    if not semantics.daemon_namespaces or listed is None or part.namespace_selector is not None:
        return True
    return bool(set(listed) - set(part.excluded_namespaces))
