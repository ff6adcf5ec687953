"""How the rollouts of a change end, as tables and documents. It does not know how they were stepped through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bayplan.placing.rollout_history import PodOnNode, RolloutResult, RolloutStep
from bayplan.writing import tables
from bayplan.writing.tables import Table

_STUCK_STYLE = "red"


def table(results: Sequence[RolloutResult], *, wide: bool = False) -> Table:
    """One row per workload: whether its rollout completes, how many pods change their node, and what it waits for."""
    rows = []
    for one in results:
        n_moves = sum(move.changes_node for move in one.moves)
        middle = (str(len(one.steps)),) if wide else ()
        rows.append((workload_name(one), result_text(one), *middle, str(n_moves), one.why or one.note or "-"))
    middle = ("STEPS",) if wide else ()
    styles = ["" if one.is_complete else _STUCK_STYLE for one in results]
    return Table(("WORKLOAD", "RESULT", *middle, "MOVES", "WHY"), rows, styles)


def moves_table(results: Sequence[RolloutResult]) -> Table:
    """One row per pod that leaves or comes, for wide tables and pages."""
    rows = []
    for one in results:
        for move in one.moves:
            left, came = move.left or PodOnNode(""), move.came or PodOnNode("")
            rows.append((workload_name(one), left.pod, left.node, came.pod, came.node))
    return Table(("WORKLOAD", "POD", "FROM", "NEW POD", "TO"), rows)


def text(results: Sequence[RolloutResult], width: int | None, *, wide: bool = False) -> str:
    """The tables as text, to be printed after the placements; empty without rollouts."""
    if not results:
        return ""
    parts = [table(results, wide=wide)]
    if wide and any(one.moves for one in results):
        parts.append(moves_table(results))
    return "".join(f"\n{tables.rendered(part, width)}" for part in parts)


def documents(results: Sequence[RolloutResult]) -> list[dict[str, Any]]:
    """The value of `rollouts` in a document."""
    return [_document(one) for one in results]


def summaries(results: Sequence[RolloutResult]) -> Iterator[str]:
    """Lines that count them: `2 of 3 rollouts complete`, and those that do not try the new template."""
    if not results:
        return
    n_complete = sum(one.is_complete for one in results)
    yield f"{n_complete} of {tables.counted(len(results), 'rollout')} complete"
    n_held_back = sum(one.is_held_back for one in results)
    if n_held_back:
        templates = "template" if n_held_back == 1 else "templates"
        yield f"not judged: {n_held_back} new {templates}, which no pod gets yet; with --strict that is a no"


def workload_name(result: RolloutResult) -> str:
    """The workload as `namespace/kind/name`, as kubectl names objects."""
    kind, namespace, name = result.workload
    return f"{namespace}/{kind.lower()}/{name}"


def result_text(result: RolloutResult) -> str:
    """`complete`, `held back`, `not judged`, or `stuck at step 2`."""
    return result.result if not result.is_stuck else f"{result.result} at step {result.stuck_at}"


def _document(one: RolloutResult) -> dict[str, Any]:
    kind, namespace, name = one.workload
    return {
        "workload": {"kind": kind, "namespace": namespace, "name": name},
        "result": one.result,
        "stuckAt": one.stuck_at or None,
        "why": one.why,
        "note": one.note,
        "pending": _pending(one.pending),
        "moves": [{"from": _on_node(move.left), "to": _on_node(move.came)} for move in one.moves],
        "steps": [_step(step) for step in one.steps],
    }


def _step(step: RolloutStep) -> dict[str, Any]:
    return {
        "step": step.number,
        "created": step.created,
        "deleted": [_on_node(pod) for pod in step.deleted],
        "placed": [_on_node(pod) for pod in step.placed],
        "pending": _pending(step.pending),
        "refused": step.refused,
    }


def _pending(pods: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"pod": name, "message": message} for name, message in pods]


def _on_node(pod: PodOnNode | None) -> dict[str, str] | None:
    return None if pod is None else {"pod": pod.pod, "node": pod.node}
