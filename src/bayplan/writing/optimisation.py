"""How good the best plan is that was found, and the steps that carry it out: as a sentence, a table and a document."""

from __future__ import annotations

from typing import Any

from bayplan.placing.place_cluster import Optimisation
from bayplan.writing import tables
from bayplan.writing.tables import Table


def sentence(found: Optimisation) -> str:
    """How many pods a better plan could place at most, and with how many moves."""
    left_out = f"; {tables.counted(found.n_left_out, 'pod')} with volumes not optimized" if found.n_left_out else ""
    return _merit(found) + left_out


def _merit(found: Optimisation) -> str:
    if found.undecided:
        return f"no better plan is known: {found.undecided}; placed one after the other instead"
    more = [level for level in found.levels if level.most > level.n_placed]
    if more:
        level = more[0]
        of_priority = f" of priority {level.priority}" if len(found.levels) > 1 else ""
        text = f"a better plan would place at most {level.most} instead of {level.n_placed} pods{of_priority}"
    else:
        text = "proven: no plan that keeps all rules places more pods" + (
            ", by priority" if len(found.levels) > 1 else ""
        )
    if not found.n_moves:
        return text
    moved = tables.counted(found.n_moves, "pod moves") if found.n_moves == 1 else f"{found.n_moves} pods move"
    if found.least_moves == found.n_moves:
        return f"{text}; {moved}, and no plan for as many pods needs fewer moves"
    return f"{text}; {moved}, and {found.least_moves} are needed at least"


def steps_table(found: Optimisation) -> Table:
    """One row for each pod, in the order in which the steps are safe."""
    rows = [
        (str(number), pod.namespace, pod.name, step.before, node)
        for number, step in enumerate(found.steps, 1)
        for pod, node in zip(step.pods, step.nodes, strict=True)
    ]
    return Table(("STEP", "NAMESPACE", "NAME", "FROM", "TO"), rows)


def document(found: Optimisation) -> dict[str, Any]:
    """The content of `optimization`."""
    levels = [
        {"priority": one.priority, "pods": one.n_pods, "placed": one.n_placed, "atMost": one.most}
        for one in found.levels
    ]
    steps = [
        {
            "pods": [
                {"namespace": pod.namespace, "name": pod.name, "from": step.before, "to": node}
                for pod, node in zip(step.pods, step.nodes, strict=True)
            ]
        }
        for step in found.steps
    ]
    content: dict[str, Any] = {"levels": levels, "moves": found.n_moves, "leastMoves": found.least_moves}
    return {**content, "steps": steps} | ({"undecided": found.undecided} if found.undecided else {})
