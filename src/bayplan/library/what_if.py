"""
What is supposed to happen to a cluster or a fleet before it is placed, as written: names, labels, files, taints.

What the events do is in `placing.what_if` and `controllers.cluster_failures`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from bayplan.errors import ArgumentError, Fault, InputError
from bayplan.explaining import new_nodes
from bayplan.library.inputs import sources_of
from bayplan.placing import what_if
from bayplan.placing.what_if import NewNode, NodeEvents

if TYPE_CHECKING:
    from bayplan.controllers.cluster_failures import ClusterEvents
    from bayplan.engine.engine import EngineOf
    from bayplan.library.inputs import Supposed
    from bayplan.model.labels import Taint
    from bayplan.model.targets import Target
    from bayplan.reading.cluster import LoadedCluster

_LIKE = "like="
_NODE = ("node", "nodes", "no")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class NamedNode(msgspec.Struct, frozen=True):
    """One node, as in `node/N`."""

    name: str

    def __str__(self) -> str:
        return f"node/{self.name}"


class LabelledNodes(msgspec.Struct, frozen=True):
    """All nodes with a label, as in `topology.kubernetes.io/zone=a`."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def cluster_events(supposed: Supposed) -> ClusterEvents:
    """What is supposed to happen to the clusters of a fleet; raises ArgumentError for a bad taint."""
    from bayplan.controllers.cluster_failures import ClusterEvents

    return ClusterEvents(supposed.lose, supposed.drain, supposed.recover, tuple(map(_taint, supposed.taint)))


def _taint(text: str) -> tuple[str, Taint]:
    from bayplan.model.labels import Taint

    where, _, taint = text.partition(":")
    label, colon, effect = taint.rpartition(":")
    key, _, value = label.partition("=")
    if not where or not key or not colon or effect not in _EFFECTS:
        expected = f"expected cluster/NAME:KEY[=VALUE]:EFFECT with an effect of {', '.join(_EFFECTS)}"
        raise ArgumentError(f"{expected}, got {text!r}", argument="taint")
    return where, Taint(key, value, effect)


def apply(supposed: Supposed, cluster: LoadedCluster, engine_of: EngineOf) -> None:
    """Let it happen to the cluster; raises ArgumentError for unknown names and for contradictions."""
    nodes = {name: cluster.index.slots.at(slot) for name, slot in sorted(cluster.index.slots.by_name.items())}
    lost, drained, cordoned = (
        _named(argument, asked, nodes)
        for argument, asked in (("lose", supposed.lose), ("drain", supposed.drain), ("cordon", supposed.cordon))
    )
    for argument, others in (("drain", drained), ("cordon", cordoned)):
        both = sorted(set(lost) & set(others))
        if both:
            raise ArgumentError(f"lose and {argument} contradict each other: both name {', '.join(both)}")
    added = _added(supposed.add_node, nodes)
    events = NodeEvents(lost=lost, drained=drained, cordoned=cordoned, added=added)
    what_if.apply(events, cluster, engine_of)


def _parsed(argument: str, text: str) -> NamedNode | LabelledNodes:
    kind, slash, name = text.partition("/")
    if slash and "=" not in text and kind.lower() in _NODE and name:
        return NamedNode(name)
    key, equals, value = text.partition("=")
    if equals and key.strip():
        return LabelledNodes(key, value)
    raise ArgumentError(f"expected node/NAME or KEY=VALUE of a node label, got {text!r}", argument=argument)


def _added(asked: Iterable[str | bytes], nodes: Mapping[str, Target]) -> tuple[NewNode, ...]:
    """The nodes to add, each under a name that is not taken."""
    taken, found = set(nodes), list[NewNode]()
    for given in asked:
        text = given if isinstance(given, str) else "objects"
        if text.startswith(_LIKE):
            model = text.removeprefix(_LIKE)
            if model not in nodes:
                message = f"there is no node {model}{_near(model, nodes)}"
                raise ArgumentError(message, argument="add_node", value=text)
            made = [NewNode(new_nodes.as_new(nodes[model], taken), model)]
        else:
            made = [NewNode(target) for target in _read_nodes(given, text)]
        for one in made:
            if one.target.name in taken:
                message = f"node {one.target.name} exists already"
                raise ArgumentError(message, argument="add_node", value=text)
            taken.add(one.target.name)
        found += made
    return tuple(found)


def _named(argument: str, asked: Iterable[str], nodes: Mapping[str, Target]) -> tuple[str, ...]:
    """The names of the nodes, each once."""
    found: dict[str, None] = {}
    for one in (_parsed(argument, text) for text in asked):
        if isinstance(one, NamedNode):
            if one.name not in nodes:
                message = f"there is no such node{_near(one.name, nodes)}"
                raise ArgumentError(message, argument=argument, value=str(one))
            found[one.name] = None
            continue
        matching = [name for name, target in nodes.items() if target.labels.get(one.key) == one.value]
        if not matching:
            values = {str(target.labels[one.key]) for target in nodes.values() if one.key in target.labels}
            keys = {key for target in nodes.values() for key in target.labels}
            advice = _near(one.value, values, f"{one.key}=") if values else _near(one.key, keys)
            raise ArgumentError(f"no node has this label{advice}", argument=argument, value=str(one))
        found.update(dict.fromkeys(matching))
    return tuple(found)


def _near(name: str, known: Iterable[str], prefix: str = "") -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f", did you mean {prefix}{near[0]}?" if near else ""


def _read_nodes(given: str | bytes, named: str) -> list[Target]:
    """The nodes of a file, which has nothing else."""
    import sys

    from bayplan.mapping import targets
    from bayplan.reading import files
    from bayplan.reading.files import ReadOptions

    paths, lists = ((given,), ()) if isinstance(given, str) else ((), (given,))
    inputs = files.load(ReadOptions(paths, sources_of(lists), stdin=sys.stdin.buffer))
    if not inputs.nodes:
        raise InputError(Fault("expected an object of kind Node, got none", file=named))
    return [targets.target_of_node(node) for node in inputs.nodes]
