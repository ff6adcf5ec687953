"""
What is supposed to happen to the nodes of a cluster, read from the what-if options: names, labels and files.

What the events do is in `placing.what_if`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import options
from bayplan.explaining import new_nodes
from bayplan.placing import what_if
from bayplan.placing.what_if import NewNode, NodeEvents

if TYPE_CHECKING:
    from bayplan.cli.what_if_options import WhatIfOptions
    from bayplan.model.targets import Target
    from bayplan.reading.cluster import LoadedCluster

_LIKE = "like="
_NODE = ("node", "nodes", "no")


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


def apply(supposed: WhatIfOptions, cluster: LoadedCluster) -> None:
    """Let it happen to the cluster; raises a usage error for unknown names and for contradictions."""
    nodes = {name: cluster.index.slots.at(slot) for name, slot in sorted(cluster.index.slots.by_name.items())}
    lost, drained, cordoned = (
        _named(option, asked, nodes)
        for option, asked in (("--lose", supposed.lose), ("--drain", supposed.drain), ("--cordon", supposed.cordon))
    )
    for option, others in (("--drain", drained), ("--cordon", cordoned)):
        both = sorted(set(lost) & set(others))
        if both:
            raise click.UsageError(f"--lose and {option} contradict each other: both name {', '.join(both)}")
    events = NodeEvents(lost=lost, drained=drained, cordoned=cordoned, added=_added(supposed.add_node, nodes))
    what_if.apply(events, cluster, options.configured_engines()(cluster.index))


def _parsed(option: str, text: str) -> NamedNode | LabelledNodes:
    kind, slash, name = text.partition("/")
    if slash and "=" not in text and kind.lower() in _NODE and name:
        return NamedNode(name)
    key, equals, value = text.partition("=")
    if equals and key.strip():
        return LabelledNodes(key, value)
    raise click.BadParameter(f"expected node/NAME or KEY=VALUE of a node label, got {text!r}", param_hint=option)


def _added(asked: Iterable[str], nodes: Mapping[str, Target]) -> tuple[NewNode, ...]:
    """The nodes to add, each under a name that is not taken."""
    taken, found = set(nodes), list[NewNode]()
    for text in asked:
        if text.startswith(_LIKE):
            model = text.removeprefix(_LIKE)
            if model not in nodes:
                raise click.UsageError(f"--add-node {text}: there is no node {model}{_near(model, nodes)}")
            made = [NewNode(new_nodes.as_new(nodes[model], taken), model)]
        else:
            made = [NewNode(target) for target in _read_nodes(text)]
        for one in made:
            if one.target.name in taken:
                raise click.UsageError(f"--add-node {text}: node {one.target.name} exists already")
            taken.add(one.target.name)
        found += made
    return tuple(found)


def _named(option: str, asked: Iterable[str], nodes: Mapping[str, Target]) -> tuple[str, ...]:
    """The names of the nodes, each once."""
    found: dict[str, None] = {}
    for one in (_parsed(option, text) for text in asked):
        if isinstance(one, NamedNode):
            if one.name not in nodes:
                raise click.UsageError(f"{option} {one}: there is no such node{_near(one.name, nodes)}")
            found[one.name] = None
            continue
        matching = [name for name, target in nodes.items() if target.labels.get(one.key) == one.value]
        if not matching:
            values = {str(target.labels[one.key]) for target in nodes.values() if one.key in target.labels}
            keys = {key for target in nodes.values() for key in target.labels}
            advice = _near(one.value, values, f"{one.key}=") if values else _near(one.key, keys)
            raise click.UsageError(f"{option} {one}: no node has this label{advice}")
        found.update(dict.fromkeys(matching))
    return tuple(found)


def _near(name: str, known: Iterable[str], prefix: str = "") -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f", did you mean {prefix}{near[0]}?" if near else ""


def _read_nodes(path: str) -> list[Target]:
    """The nodes of a file, which has nothing else."""
    import sys

    from bayplan.errors import InputError
    from bayplan.mapping import targets
    from bayplan.reading import files
    from bayplan.reading.files import ReadOptions

    inputs = files.load(ReadOptions((path,), stdin=sys.stdin.buffer))
    if not inputs.nodes:
        raise InputError(f"{path}: expected an object of kind Node for --add-node, got none")
    return [targets.target_of_node(node) for node in inputs.nodes]
