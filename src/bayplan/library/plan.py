"""Where everything is once it is placed: the pods, the rollouts, and whether the answer is yes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bayplan.errors import Fault
from bayplan.library import arguments
from bayplan.library.answers import DOCUMENT_FORMATS, Answer, Unchanging, Values, frozen
from bayplan.library.explanation import Explanation, explanation_of, without_revisions

if TYPE_CHECKING:
    from bayplan.controllers.desired_state import ObjectKey
    from bayplan.engine.engine import EngineOf
    from bayplan.explaining.explanation import Explanation as Explained
    from bayplan.library.place_run import PlaceRun
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_cluster import ClusterPlacement
    from bayplan.placing.place_pods import PodPlacement
    from bayplan.placing.rollout_history import RolloutResult
    from bayplan.writing.chosen_output import Arrangement
    from bayplan.writing.drawings import Picture
    from bayplan.writing.placements import FillResult


class PlannedPod(Unchanging, msgspec.Struct, frozen=True, eq=False):
    """
    Where one pod is in the end.

    `node` is empty if it has none: `message` says why in the scheduler's words, and `reasons` how many nodes each
    reason rejects. `victims` are the pods that it preempts, `preempted_by` the pod that preempts it, `displaced_from`
    the node that was supposed to go. A pod is `refused` by an API server, `lost` if no controller creates it again,
    `not_judged` for the reason given. `of_change` is true of what the change or a what-if has brought about.
    """

    namespace: str
    name: str
    owner: str
    node: str
    priority: int
    score: int | None
    message: str
    reasons: Mapping[str, int]
    victims: tuple[str, ...]
    preempted_by: str
    displaced_from: str
    refused: bool
    lost: bool
    not_judged: str
    of_change: bool
    _placement: PodPlacement
    _run: PlaceRun

    @property
    def placed(self) -> bool:
        """Whether it has a node."""
        return bool(self.node)

    def explain(self) -> Explanation:
        """Why it is there, or why it fits nowhere, in the cluster as it is in the end."""
        with self._run.reading.asked():
            found, notes = self._run.explain(self._placement), self._run.notes
            return explanation_of(found, manifests=self._run.manifests(), notes=notes)

    def __repr__(self) -> str:
        where = f"on {self.node}" if self.node else self.message or "not placed"
        return f"<PlannedPod: {self.namespace}/{self.name} {where}>"


class PlannedRollout(msgspec.Struct, frozen=True):
    """
    How the rollout of one workload ends: "complete", "stuck", "not judged" or "held back".

    `workload` is kind, namespace and name. `stuck_at` is the last step in which anything happened, 0 if it is not
    stuck. `why` says what it waits for. `moves` are the pods that leave with those that come, each as pod and node.
    """

    workload: tuple[str, str, str]
    result: str
    stuck_at: int
    why: str
    note: str
    n_steps: int
    moves: tuple[tuple[tuple[str, str] | None, tuple[str, str] | None], ...]

    @property
    def complete(self) -> bool:
        """Whether it completes."""
        return self.result == "complete"


class Plan(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `Cluster.place`: where every pod is in the end.

    `pods` has them by NAMESPACE/NAME in the order of placement; iterating over the plan gives the same pods. `notes`
    say what was read, created and left out, `warnings` which rules have no effect, `summary` counts what is what.
    """

    pods: Mapping[str, PlannedPod]
    rollouts: Mapping[str, PlannedRollout]
    notes: tuple[str, ...]
    warnings: tuple[Fault, ...]
    summary: tuple[str, ...]
    _found: ClusterPlacement
    _explained: Mapping[str, Explained]
    _not_judged_objects: Sequence[tuple[ObjectKey, str]]
    _n_unknown: int  # of what could not be judged, but for rollouts
    _run: PlaceRun
    _formats = (
        "table", "wide", *DOCUMENT_FORMATS, "name", "html", "csv", "jsonpath=", "custom-columns="
    )  # fmt: skip

    def __iter__(self) -> Iterator[PlannedPod]:
        return iter(self.pods.values())

    def __len__(self) -> int:
        return len(self.pods)

    @property
    def ok(self) -> bool:
        """Whether everything of the change is placed and its rollouts complete; the exit code is 0 then."""
        return self.passes()

    def passes(self, *, gate: Literal["change", "all"] = "change", strict: bool = False) -> bool:
        """
        Whether the answer is yes, as --gate and --strict ask for it.

        With the gate "all", what was pending before counts too. If `strict`, what could not be judged is a no.
        """
        arguments.check_choice("gate", gate, ("change", "all"))
        from bayplan.placing.rollout_history import HELD_BACK, STUCK
        from bayplan.writing import placements

        found = self._found
        counted = placements.counts(found)
        ends = [one.result for one in found.rollouts]
        is_gated = found.change is not None and gate == "change"
        n_bad = counted.change.n_bad if is_gated else counted.change.n_bad + counted.others.n_bad
        n_unknown = counted.n_not_judged + self._n_unknown + ends.count(HELD_BACK)
        return not n_bad and not found.blocked and STUCK not in ends and not (strict and n_unknown)

    @property
    def unschedulable(self) -> tuple[PlannedPod, ...]:
        """The pods that fit nowhere."""
        return tuple(pod for pod in self.pods.values() if pod._placement.is_unschedulable)  # noqa: SLF001

    @property
    def blocked_evictions(self) -> tuple[tuple[str, str, str], ...]:
        """The pods that keep nodes from being drained: pod, node and reason."""
        return tuple((one.pod, one.node, one.why) for one in self._found.blocked)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import explanations, placements

        contents = {key: explanations.content(found) for key, found in self._explained.items()}
        return placements.document(self._found, contents, self._not_judged_objects)

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        from bayplan.writing import chosen_output, placements, rollouts, tables

        found = self._found
        if output == "name":
            return tables.name_lines(placement.workload for placement in found.placements)
        if output == chosen_output.CSV:
            return chosen_output.table(placements.table(found.placements, wide=True), None, output, arrangement)
        # A shared explanation is printed once, under the workload that it was made for.
        texts: dict[str, str] = {}
        if self._explained:
            from bayplan.writing import explanations

            distinct = {one.workload: one for one in self._explained.values()}
            texts = {key: explanations.text(one) for key, one in distinct.items()}
        if output == "html":
            from bayplan.writing import html_report

            return html_report.page(found, texts, self._picture())
        drawn = placements.tables_of(found, wide=output == "wide")
        parts = [chosen_output.table(part, width, arrangement=arrangement) for part in drawn]
        if found.blocked:
            from bayplan.writing import what_if

            parts.append(what_if.text(found.blocked))
        if found.optimisation is not None and found.optimisation.n_moves:
            from bayplan.writing import optimisation

            steps = optimisation.steps_table(found.optimisation)
            parts.append(chosen_output.table(steps, width, arrangement=chosen_output.AS_IT_IS))
        parts.append(rollouts.text(found.rollouts, width, wide=output == "wide").lstrip("\n"))
        return "\n".join(filter(None, parts)) + "".join(f"\n{key}: {text}" for key, text in texts.items())

    def _picture(self) -> Picture:
        """The nodes at the end, which is found again if the state has been asked anything since."""
        from bayplan.library import drawn
        from bayplan.library.inputs import shows_nothing

        run = self._run
        with run.reading.asked():
            if not run.reading.is_at(run):
                run.place(run.begin(shows_nothing), shows_nothing)
            return drawn.of_placement(run.cluster.index, self._found.placements)

    def _summary(self) -> str:
        return ", ".join(self.summary) + ("" if self.ok else "; not ok")

    def __reduce__(self) -> tuple[Any, ...]:
        values = msgspec.structs.asdict(self)
        explained = {key: without_revisions(found) for key, found in self._explained.items()}
        return _restored, ({**values, "_explained": explained},)


def _restored(values: dict[str, Any]) -> Plan:
    return Plan(**values)


def plan_of(run: PlaceRun, found: ClusterPlacement, explained: Mapping[str, Explained]) -> Plan:
    """The value of an answer."""
    from bayplan.writing import placements, rollouts

    counted, cluster = placements.counts(found), run.cluster
    not_judged = tuple(cluster.not_judged_objects)
    lines = [*counted.notes(len(not_judged)), *rollouts.summaries(found.rollouts)]
    if found.optimisation is not None:
        from bayplan.writing import optimisation

        lines.append(optimisation.sentence(found.optimisation))
    return Plan(
        pods=Values({one.workload.key: one for one in found.placements}, functools.partial(_pod, found=found, run=run)),
        rollouts=Values({rollouts.workload_name(one): one for one in found.rollouts}, _rollout),
        notes=run.notes,
        warnings=tuple(run.warnings),
        summary=tuple(filter(None, lines)),
        _found=found,
        _explained=explained,
        _not_judged_objects=not_judged,
        _n_unknown=len(not_judged) + cluster.n_set_aside + run.n_left_out + cluster.n_unread,
        _run=run,
    )


def _pod(one: PodPlacement, found: ClusterPlacement, run: PlaceRun) -> PlannedPod:
    from bayplan.writing import placements

    workload = one.workload
    return PlannedPod(
        namespace=workload.namespace,
        name=workload.name,
        owner=placements.owner_of(workload),
        node=one.target,
        priority=workload.priority,
        score=one.total if one.target else None,
        message=one.message,
        reasons=frozen(one.reasons),
        victims=tuple(one.victims),
        preempted_by=one.preemptor,
        displaced_from=one.displaced_from,
        refused=one.refused,
        lost=one.lost,
        not_judged=one.not_judged,
        of_change=found.change is None or workload.key in found.change,
        _placement=one,
        _run=run,
    )


def _rollout(one: RolloutResult) -> PlannedRollout:
    moves = tuple(
        (
            None if move.left is None else (move.left.pod, move.left.node),
            None if move.came is None else (move.came.pod, move.came.node),
        )
        for move in one.moves
    )
    kind, namespace, name = one.workload
    return PlannedRollout((kind, namespace, name), one.result, one.stuck_at, one.why, one.note, len(one.steps), moves)


class RoomForPod(msgspec.Struct, frozen=True):
    """
    How many replicas of one workload fit, and on which nodes; `message` says why there are not more.

    `asked` is the number that was asked for, None for as many as fit. It is `enough` if they all fit, or at least one.
    """

    workload: str
    asked: int | None
    nodes: tuple[str, ...]
    message: str

    @property
    def fit(self) -> int:
        """How many fit."""
        return len(self.nodes)

    @property
    def enough(self) -> bool:
        """Whether as many fit as were asked for, or at least one."""
        return self.fit >= (1 if self.asked is None else self.asked)


class Room(Answer, msgspec.Struct, frozen=True, eq=False):
    """The answer of `Cluster.how_many_more`: how many replicas of each pending workload fit, by NAMESPACE/NAME."""

    workloads: Mapping[str, RoomForPod]
    notes: tuple[str, ...]
    _fills: tuple[FillResult, ...]
    _formats = (
        "table", "wide", *DOCUMENT_FORMATS, "name", "html", "csv", "jsonpath=", "custom-columns="
    )  # fmt: skip

    def __iter__(self) -> Iterator[RoomForPod]:
        return iter(self.workloads.values())

    def __len__(self) -> int:
        return len(self.workloads)

    @property
    def ok(self) -> bool:
        """Whether as many of each fit as were asked for, or at least one."""
        return all(one.enough for one in self)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import placements

        return placements.fill_document(self._fills)

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        from bayplan.writing import chosen_output, placements

        fills = self._fills
        if output == "name":
            return placements.fill_names(fills)
        table = placements.fill_table(fills)
        if output == "html":
            from bayplan.writing import html_report

            return html_report.rows_page("How many more fit", table)
        return chosen_output.table(table, width, output, arrangement)

    def _summary(self) -> str:
        return ", ".join(f"{one.workload} {one.fit}" for one in self)


def room_of(pending: Sequence[Workload], engine_of: EngineOf, limit: int | None, notes: tuple[str, ...]) -> Room:
    """How many replicas of each pending workload fit if nothing else is placed; equal replicas are one."""
    from bayplan.placing import place_pods
    from bayplan.writing.placements import FillResult

    found = place_pods.how_many_more_of_each(pending, engine_of, limit)
    fills = tuple(FillResult(workload.key, capacity, limit) for workload, capacity in found)
    workloads = {
        one.workload: RoomForPod(one.workload, one.asked, tuple(one.capacity.placed), one.capacity.message)
        for one in fills
    }
    return Room(frozen(workloads), notes, fills)
