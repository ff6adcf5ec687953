"""
What is to be placed together, and the three answers: a plan, proven impossible, or not decided.

Every hard rule that a plan must keep is a rule of the pods themselves. What the annotations of groups say is among the
terms of each member (`Needs.affinity`): one domain of a required topology key, and affinity to other groups, are
`group_required`; anti-affinity between groups is `anti_required`. These terms select by `model.groups.MEMBER_OF`, a
label that every member has. So nothing but the number of members is left that only a group has.

A plan keeps the rules if each pod is feasible on its node in the presence of all others, placed and planned. Only for
required affinity that differs from an order of placements: two pods may require each other. A pod whose required terms
select itself, and no other pod that is placed or planned, needs no peer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from bayplan.engine.engine import EngineOf
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.workloads import Workload, WorkloadKey


class GroupToPlace(msgspec.Struct, frozen=True, kw_only=True):
    """
    One group with members in the problem. `key` is the value of `MEMBER_OF` of its members.

    With the `n_placed` members that run already, a plan has at least `min_members`, or the group is not placed. All
    members are in one domain of `topology_key`, if there is one, and of the first of `preferred_keys` that can be. If
    `is_optional`, a plan may do without the group; only `optimum` knows such groups, and optional pods.
    """

    key: str
    pods: tuple[WorkloadKey, ...]
    min_members: int
    n_placed: int = 0
    topology_key: str = ""
    preferred_keys: tuple[str, ...] = ()
    is_optional: bool = False


class GroupProblem(msgspec.Struct, frozen=True, kw_only=True):
    """
    Pods to be placed together on an index that has none of them.

    A pod in no group must be placed, unless it is `optional`. Of each group at least `min_members` must run in the end,
    more if they fit. An attempt may change the index between `mark()` and `undo_to()`, and leaves it as it was.
    """

    pods: tuple[Workload, ...]
    groups: tuple[GroupToPlace, ...] = ()
    index: PlacementIndex
    engine_of: EngineOf
    optional: frozenset[WorkloadKey] = frozenset()


class GroupPlan(msgspec.Struct, frozen=True):
    """The name of the node of each pod; a pod that is left out has none."""

    nodes: Mapping[WorkloadKey, str] = {}


class ConflictingRule(msgspec.Struct, frozen=True):
    """
    One rule of a set that cannot be met at once: without any one of them, the others can.

    `rule` is the id of the rule, `term` the path of the term in the manifests of the `pods`, `detail` a text.
    """

    rule: str
    pods: tuple[WorkloadKey, ...] = ()
    term: str = ""
    detail: str = ""


class Solved(msgspec.Struct, frozen=True):
    """A plan that keeps every rule. `stage` found it, in `n_steps` attempts to place one pod."""

    plan: GroupPlan
    stage: str = ""
    n_steps: int = 0


class ProvenImpossible(msgspec.Struct, frozen=True):
    """
    No plan keeps all rules, because no plan keeps these.

    Not `is_minimal`: the search for fewer of them ended early, so that some may be dropped without effect.
    """

    conflict: tuple[ConflictingRule, ...]
    is_minimal: bool = True


class Undecided(msgspec.Struct, frozen=True):
    """
    No plan was found. `best` is the largest part of a plan that was; `reason` says what ended the search.

    Without a reason, there is no plan: counting shows that pods lack room, but not by which rules.
    """

    best: GroupPlan = GroupPlan()
    reason: str = ""
    n_steps: int = 0


Answer: TypeAlias = Solved | ProvenImpossible | Undecided
# An exact solver, with the best part of a plan so far as a hint. It needs an optional package: None without it.
ExactSolver: TypeAlias = Callable[[GroupProblem, GroupPlan], Answer]
