"""
The interface of a rule: one rule is one subclass, which overrides what it needs.

`part` picks the hashable piece of the workload that the rule reads, so that workloads with an equal part share one
evaluation. `prepare` turns a part into a state (kube-scheduler: the preFilter state): counters and columns of the
index, looked up once. Every later method works on the state.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import msgspec

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import At, ValueColumn
from bayplan.model.reasons import Codes, DocumentedReason, Mask, Reason, Scores
from bayplan.model.terms import PeerTerm
from bayplan.model.workloads import Workload
from bayplan.rules.arguments import Arguments
from bayplan.rules.evictions import EvictionEffect, Preemptor
from bayplan.rules.remedies import Alternatives

MAX_SCORE = 100  # of a normalised score (kube-scheduler: MaxNodeScore)
MAX_REMEMBERED_CLASSES = 1024  # of which a state keeps the effects; classes change while it exists


class Failure(msgspec.Struct, frozen=True):
    """Why a rule rejects one target, with names: evidence for people."""

    rule: str
    reason: str
    detail: str = ""
    term: str = ""
    domain: str = ""
    peers: tuple[str, ...] = ()


class Scaling(enum.Enum):
    """What the normalised score of a target depends on beside its raw score."""

    NONE = enum.auto()  # nothing: raw scores are in range already
    BY_EXTREMES = enum.auto()  # the lowest and the highest raw score of the feasible targets
    BY_ALL = enum.auto()  # more than the extremes: the rule overrides `normalise`


class LiftedBy(enum.Enum):
    """
    Which changes of placed workloads can lift the rejection of a target by a rule.

    A change of a target, of a namespace or of storage may lift any rejection.
    """

    TARGET = enum.auto()  # none
    RESOURCES = enum.auto()  # a workload that leaves the target
    NEIGHBOURS = enum.auto()  # a workload that comes to the target or leaves it
    PEERS = enum.auto()  # a workload that comes or leaves, there or elsewhere

    @property
    def changes(self) -> tuple[ChangeType, ...]:
        match self:
            case LiftedBy.TARGET:
                return ()
            case LiftedBy.RESOURCES:
                return (ChangeType.WORKLOAD_REMOVED,)
            case _:
                return (ChangeType.WORKLOAD_REMOVED, ChangeType.WORKLOAD_ADDED)


class SharedDomains(msgspec.Struct, frozen=True):
    """Every target that shares a domain of one of these keys with one of these slots."""

    keys: tuple[str, ...]
    slots: tuple[int, ...]


class DomainEffects(msgspec.Struct, eq=False):
    """
    The rejected domains of one column, and the raw scores of those whose score is not 0.

    `only`, if it is given, are the domains that the rule leaves: it rejects all others. Targets without the label are
    in the domain `ABSENT`.
    """

    column: ValueColumn
    rejected: set[int] = msgspec.field(default_factory=set)
    only: set[int] | None = None
    raw: dict[int, int] = {}

    def leave(self, domains: set[int]) -> None:
        """Reject all other domains."""
        self.only = domains if self.only is None else self.only & domains

    def rejects(self, domain: int) -> bool:
        return domain in self.rejected or (self.only is not None and domain not in self.only)


Touched = slice | tuple[int, ...] | SharedDomains | None  # the targets that a change concerns; None: no target
Part = TypeVar("Part", bound=Hashable)
State = TypeVar("State")
Raw = TypeVar("Raw", int, Scores)  # one raw score, or an array of them


class Rule(ABC, Generic[Part, State]):
    """
    `name` is kube-scheduler's, `id` ours. `weight` multiplies the normalised score; `filters` enables `reject` and
    `pre_filters` what is decided before.
    `default_weight` and the defaults of `arguments_type` apply unless a scheduler configuration says otherwise.

    `reasons_by_code` holds the reason for each code from 1 on, where a code always means the same. `documented` holds
    the page of every reason that the rule gives; a reason that several rules give has its page at one of them.
    `lifted_by` has no default: a rule that rejects declares it.
    """

    name: ClassVar[str]
    id: ClassVar[str]
    default_weight: ClassVar[int] = 0
    arguments_type: ClassVar[type[Arguments]] = Arguments
    arguments: Arguments
    weight: int = 0
    filters: bool = True
    pre_filters: bool = True
    pre_filter_order: int = 0  # among the rules that decide before any target is evaluated
    pre_scores: bool = True  # False: kube-scheduler's PreScore, which skips what there is nothing to score by, is off
    # Whether kube-scheduler fails at every pod where the plugin filters, or scores, without the point before it.
    filter_needs_pre_filter: ClassVar[bool] = False
    score_needs_pre_score: ClassVar[bool] = False
    # The extension points of the plugin, of those that decide
    extends: ClassVar[tuple[str, ...]] = ("preFilter", "filter", "preScore", "score")
    scaling: ClassVar[Scaling] = Scaling.NONE
    reasons_by_code: ClassVar[tuple[Reason, ...]] = ()
    documented: ClassVar[tuple[DocumentedReason, ...]] = ()
    lifted_by: ClassVar[LiftedBy]
    follows_workloads: ClassVar[bool] = True  # False: placed workloads do not matter, only targets do
    prepared_for_targets: ClassVar[bool] = False  # True: the state is prepared again when a target changes
    prepared_for_owners: ClassVar[bool] = False  # True: the same when a term of placed workloads `concerns` it
    follows_requests: ClassVar[bool] = False  # True: a workload matters on its own targets; it has `evaluate_one`
    # True: the part is made of the pod template alone, and a placed workload matters on its own targets at most.
    reads_template_only: ClassVar[bool] = False
    exempts_assigned: ClassVar[bool] = False  # True: clusters that hold the workload already are not rejected
    silent: ClassVar[bool] = False  # left out of the message that counts reasons

    def __init__(self, arguments: Arguments | None = None) -> None:
        """The arguments are of the rule's `arguments_type`, by default the default ones."""
        self.arguments = self.arguments_type() if arguments is None else arguments

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        rejects = cls.reject is not Rule.reject or cls.pre_filter is not Rule.pre_filter
        if rejects and not hasattr(cls, "lifted_by"):
            raise TypeError(f"{cls.__name__} rejects targets: it must declare `lifted_by`")

    @abstractmethod
    def part(self, workload: Workload, index: PlacementIndex) -> Part | None:
        """
        The piece of the workload that this rule reads; None if the rule does not apply to the workload.

        It is made of what the signature of the workload has (`engine/equivalence.py`): of its labels only those that a
        term selects by. Workloads that differ in another label share the results of all rules.
        """

    @abstractmethod
    def prepare(self, part: Part, index: PlacementIndex) -> State:
        """The state: the part with everything looked up that does not differ between targets."""

    def prepare_scores(self, state: State, index: PlacementIndex) -> None:
        """
        Look up what `score` reads and nothing else does, unless that was done before.

        Called before any target is scored, not for workloads that no target is left for (kube-scheduler: PreScore).
        """
        del state, index

    def release(self, state: State, index: PlacementIndex) -> None:
        """Release the terms that `prepare` holds."""
        del state, index

    def pre_filter(self, state: State, index: PlacementIndex) -> Reason | frozenset[str] | None:
        """
        What is decided before any target is evaluated: a reason to reject all, or the only targets to evaluate.

        They are named, whether they exist or not; None leaves all (kube-scheduler: PreFilter and its PreFilterResult).
        """
        del state, index
        return None

    def is_outdated(self, state: State, index: PlacementIndex) -> bool:
        """Whether the state must be prepared again after changes of targets."""
        del state, index
        return self.prepared_for_targets

    def concerns(self, state: State, term: PeerTerm, index: PlacementIndex) -> bool:
        """Whether the state depends on a term that came to the placed workloads, or left them."""
        del state, term, index
        return True

    def has_domain_effects(self, state: State) -> bool:
        """Whether `domain_effects` may be enough to decide, so that there is no need to evaluate all targets yet."""
        del state
        return False

    def domain_effects(self, state: State) -> list[DomainEffects] | None:
        """What `reject` says, by domain and only where it says something; None if that is a lot."""
        del state
        return None

    def domain_scores(self, state: State, index: PlacementIndex) -> dict[ValueColumn, dict[int, int]] | None:
        """What `score` says, by column and domain, where it is not 0; None if that is a lot."""
        del state, index
        return {}

    def domain_column(self, state: State, index: PlacementIndex) -> ValueColumn | None:
        """The column whose domains have one code and one score each; None if targets of a domain may differ."""
        del state, index
        return None

    def reject(self, state: State, index: PlacementIndex, at: At) -> Codes | None:
        """A code per target, 0 where the rule accepts it; None if with this state it never rejects any."""
        del state, index, at
        return None

    def reasons(self, state: State, code: int) -> tuple[Reason, ...]:
        """The reasons that a code given by `reject` means."""
        del state
        return (self.reasons_by_code[code - 1],)

    def score(self, state: State, index: PlacementIndex, at: At) -> Scores | None:
        """The raw score per target, shape (..., n); None if the rule does not score this workload."""
        del state, index, at
        return None

    def has_scores(self, state: State) -> bool:
        """Whether a score is shown where `score` gives one; False if it is zero for want of anything to score by."""
        del state
        return True

    def scaled(self, raw: Raw, lowest: int, highest: int) -> Raw:
        """A raw score, or an array of them, brought to 0..100; called only if the rule is scaled `BY_EXTREMES`."""
        del lowest, highest
        return raw

    def normalise(self, state: State, raw: Scores, feasible: Mask, index: PlacementIndex) -> Scores:
        """Raw scores brought to 0..100 over the feasible targets; the result is undefined for the others."""
        del state, index
        if self.scaling is Scaling.NONE:
            return raw
        values = raw[feasible]
        return self.scaled(raw, int(values.min()), int(values.max()))

    def touched(self, state: State, change: Change, index: PlacementIndex) -> Touched:
        """Where a change may alter codes or raw scores. The default: on the changed target only."""
        del state, index
        if change.type in (ChangeType.WORKLOAD_ADDED, ChangeType.WORKLOAD_REMOVED):
            return change.slots if self.follows_requests else None
        if change.type in (ChangeType.TARGET_ADDED, ChangeType.TARGET_REMOVED, ChangeType.TARGET_CHANGED):
            return change.slots
        return None

    def may_lift(self, state: State, rejected: Workload, change: Change, index: PlacementIndex) -> bool:
        """
        Whether a change may lift the rejection of this workload, or let preemption do so.

        Only asked of the changes that `lifted_by` names, with the slots where the rejection matters, and of changes of
        storage. The default: if the change touches a target (kube-scheduler: QueueingHintFn).
        """
        del rejected
        return bool(self.touched(state, change, index))

    def evaluate_one(self, state: State, index: PlacementIndex, slot: int) -> tuple[int, int] | None:
        """Code and raw score of one target as `reject` and `score` give them; None to have those called instead."""
        del state, index, slot
        return None

    def evidence(self, state: State, workload: Workload, slot: int, index: PlacementIndex) -> list[Failure]:
        """Why this target is rejected, one entry per obstacle; only called where `reject` gave a code."""
        del state, workload, slot, index
        raise AssertionError(f"{self.name} rejects no target")

    def remedies(self, state: State, workload: Workload, slot: int, index: PlacementIndex) -> list[Alternatives]:
        """
        What would lift the rejection of this target: one list of alternative remedies per obstacle.

        Only called where `reject` gave a code. An obstacle without alternatives, or no obstacle at all: none is known.
        """
        del state, workload, slot, index
        return []

    def eviction_effect(self, state: State, codes: Codes | None, preemptor: Preemptor) -> EvictionEffect:
        """
        What evictions change about `codes`, those of `reject` for all targets; only called if the rule filters.

        The default is right for every rule: they change nothing if the rule does not follow workloads, and otherwise
        may change any target, each of which then takes a dry run with the workloads on it as potential victims.
        """
        del state
        changes_any = self.follows_workloads and codes is not None
        return EvictionEffect(codes, needs_dry_run=preemptor.index.slots.alive if changes_any else None)


AnyRule: TypeAlias = Rule[Any, Any]  # in a table of rules, each of which has its own part and state


class PartRule(Rule[Part, Part]):
    """A rule that looks nothing up beforehand: its state is the part."""

    def prepare(self, part: Part, index: PlacementIndex) -> Part:
        del index
        return part


def common_column(columns: Iterable[ValueColumn], index: PlacementIndex) -> ValueColumn | None:
    """The one column that a rule depends on, if evaluating its domains is less work than evaluating targets."""
    first, *others = {id(column): column for column in columns}.values() or (None,)
    if first is None or others or first.further or first.n_domains > len(index.slots):
        return None
    return first
