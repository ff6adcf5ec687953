"""A repair plan as a value: which nodes go where, in which order. Knows nothing of how it was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

ADD_FIRST, REMOVE_FIRST, LEARNER, NOT_YET = "add-first", "remove-first", "as a learner", "not yet"

Spot = tuple[str, ...]  # the domain at each demanded level, the smallest first


class NodeMove(msgspec.Struct, frozen=True):
    """
    One node goes elsewhere: `source` and `target` are the domains by level, `new` the levels at which it is a new one.

    `how` says whether its successor joins before it leaves or after. A node that does not exist yet has no source, and
    `components` are what it is to run.
    """

    node: str
    source: Mapping[str, str]
    target: Mapping[str, str]
    new: tuple[str, ...] = ()
    how: str = ADD_FIRST
    components: tuple[str, ...] = ()


class RepairPlan(msgspec.Struct, frozen=True, kw_only=True):
    """
    `starts` are components to start on nodes that lack them, `adds` new nodes, `moves` the rest, in a safe order.

    `further` counts the new domains by level: at the host level, machines. `unknown` are nodes to be labelled before
    anything can be planned. Not `exact`: a shorter plan may exist. Not `safe`: some step would cost the majority.
    """

    starts: tuple[tuple[str, str], ...] = ()
    adds: tuple[NodeMove, ...] = ()
    moves: tuple[NodeMove, ...] = ()
    further: Mapping[str, int] = msgspec.field(default_factory=dict)
    passes: bool = False
    exact: bool = True
    safe: bool = True
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: Mapping[str, int] = msgspec.field(default_factory=dict)
    after: Mapping[str, int] = msgspec.field(default_factory=dict)

    @property
    def n_changes(self) -> int:
        return len(self.starts) + len(self.adds) + len(self.moves)


def new_name(level: str, taken: Iterable[str]) -> str:
    """A name that no label can have: it holds spaces."""
    return f"new {level} {1 + sum(map(is_new, taken))}"


def is_new(domain: str) -> bool:
    return domain.startswith("new ")
