"""
A timeline: what happens to a cluster and when, and what is expected of it. Values only; `timeline_reader` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bayplan.controllers.desired_state import ObjectKey
from bayplan.reading.documents import Document
from bayplan.wire.meta import ApiObject
from bayplan.wire.nodes import WireTaint

DEFAULT_START, DEFAULT_STOP = 5.0, 5.0


class PodTimes(msgspec.Struct, frozen=True):
    """
    How long pods take, in seconds: from being bound to being ready, and from being deleted to being gone.

    Pods of a Job succeed when they have run for `run`; without it they run until the end.
    """

    start: float = DEFAULT_START
    stop: float = DEFAULT_STOP
    run: float | None = None


class NodeSelection(msgspec.Struct, frozen=True):
    """One node by its name, or with a key all nodes that have this label."""

    name: str = ""
    key: str = ""
    value: str = ""

    def __str__(self) -> str:
        return f"node/{self.name}" if self.name else f"{self.key}={self.value}"


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One verb of a step, with the path of its field in the timeline."""

    path: str


class NodeAction(Action, frozen=True):
    """`lose`, `recover`, `drain`, `cordon` or `uncordon`."""

    verb: str
    nodes: tuple[tuple[NodeSelection, str], ...]  # each with its path


class Named(msgspec.Struct, frozen=True):
    """An object as a timeline names it, by kind or not, and its path; `key` once it is known which one it is."""

    text: str
    path: str
    kind: str = ""
    namespace: str = ""
    name: str = ""
    key: ObjectKey = ObjectKey("", "", "")


class Scale(Action, frozen=True):
    replicas: tuple[tuple[Named, int], ...]


class Restart(Action, frozen=True):
    workloads: tuple[Named, ...]


class AppliedObject(msgspec.Struct, frozen=True):
    """An object to apply, decoded and as it is written."""

    decoded: ApiObject
    written: Mapping[str, Any]


class Apply(Action, frozen=True):
    objects: tuple[AppliedObject, ...]


class Delete(Action, frozen=True):
    objects: tuple[Named, ...]


class Relabel(Action, frozen=True):
    """New values of labels; None removes one."""

    objects: tuple[tuple[Named, Mapping[str, str | None]], ...]


class TaintChange(msgspec.Struct, frozen=True):
    """A taint to add, or to remove; without an effect all of its key are removed."""

    taint: WireTaint
    removes: bool = False


class TaintNodes(Action, frozen=True):
    nodes: tuple[tuple[NodeSelection, str, tuple[TaintChange, ...]], ...]


class Load(Action, frozen=True):
    """The replicas that the load needs, as points at equal distances over some time; one point is a level."""

    curves: tuple[tuple[Named, tuple[float, ...]], ...]
    over: float


class Rebalance(Action, frozen=True):
    max_moves: int


class Bound(msgspec.Struct, frozen=True):
    """How a number is limited: `exactly`, `atLeast`, `atMost`, `fewerThan` or `moreThan`."""

    word: str
    limit: float

    def holds(self, number: float) -> bool:
        match self.word:
            case "exactly":
                return number == self.limit
            case "atLeast":
                return number >= self.limit
            case "atMost":
                return number <= self.limit
            case "fewerThan":
                return number < self.limit
            case _:
                return number > self.limit


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """
    One expectation. `subject` is what is counted, `of` the workload it is counted for, if any.

    `longer_than` counts only what lasted longer, `domain_key` counts in every domain of this label, `cause` counts
    evictions of one cause.
    """

    subject: str
    path: str
    text: str
    bound: Bound
    of: Named | None = None
    longer_than: float | None = None
    domain_key: str = ""
    cause: str = ""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """
    What happens at one time, or repeatedly.

    Actions are carried out in order, and expectations are judged when everything has settled at that time; with `until`
    and without `every` at all times until then.
    """

    at: float
    path: str
    every: float | None = None
    until: float | None = None
    actions: tuple[Action, ...] = ()
    expectations: tuple[Expectation, ...] = ()


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that fail at random, `rate` of them in a second, each for a time between two bounds."""

    path: str
    nodes: tuple[tuple[NodeSelection, str], ...]  # none stands for all
    rate: float
    shortest: float
    longest: float
    since: float = 0.0
    until: float | None = None


class TimelineEnforcement(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the enforcement of execution-time rules that a timeline asks for; None is the default."""

    affinity_grace: float | None = None
    anti_affinity_grace: float | None = None
    per_minute: int | None = None
    at_once: int | None = None
    only_if_placeable: bool | None = None
    granted: tuple[str, ...] = ()


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The whole, with the document for the lines of its fields."""

    document: Document
    steps: Sequence[Step]
    lasts: float
    about: str = ""
    seed: str = ""
    namespace: str = ""
    times: PodTimes = PodTimes()
    times_of: Sequence[tuple[Named, PodTimes]] = ()
    failures: Sequence[Failures] = ()
    enforcement: TimelineEnforcement | None = None
