"""
The result of a simulation as tables, JUnit and HTML; and two results side by side.

Does not know how they were made.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.simulating.results import SimulationResult
from bayplan.simulating.timeline_fields import written_duration
from bayplan.writing import audit_formats, html_report, tables
from bayplan.writing.tables import Table

_MET, _NOT_MET = "met", "NOT MET"
FIRST, SECOND = "first", "second"


def text(result: SimulationResult, width: int | None, *, headers: bool) -> str:
    """Events, states, expectations and totals, one table after another."""
    shown = [one for one in sections(result) if one[1].rows]
    return "\n".join(tables.rendered(table, width, headers=headers) for _, table in shown)


def sections(result: SimulationResult) -> list[tuple[str, Table]]:
    """The tables with their titles."""
    return [
        ("Events", _events(result)),
        *((f"State at {written_duration(at)}", _state(state)) for at, state in result.states),
        ("Totals", _totals(result)),
        ("Workloads", _workloads(result)),
        ("Expectations", _expectations(result)),
    ]


def _events(result: SimulationResult) -> Table:
    rows = [[written_duration(one.at), one.subject, one.reason, one.note] for one in result.events]
    return Table(("TIME", "OBJECT", "REASON", "NOTE"), rows)


def _state(state: object) -> Table:
    assert isinstance(state, dict), "a snapshot is a mapping"
    rows = [
        [name, "Ready" if node["ready"] else "NotReady", str(len(node["pods"])), ", ".join(node["pods"])]
        for name, node in state["nodes"].items()
    ]
    if state["pending"]:
        rows.append(["", "Pending", str(len(state["pending"])), ", ".join(state["pending"])])
    return Table(("NODE", "STATUS", "PODS", "NAMES"), rows)


def _totals(result: SimulationResult) -> Table:
    return Table(("TOTAL", "VALUE"), [list(row) for row in total_rows(result).items()])


def total_rows(result: SimulationResult) -> dict[str, str]:
    """Every total with its name."""
    totals = result.totals
    found = {"pending pod-minutes": f"{totals.pending:g}"}
    for rule, minutes in totals.violations.items():
        found[f"violation-minutes of {rule}"] = f"{minutes:g}"
    for cause, n in totals.evictions.items():
        found[f"evictions by {cause}"] = str(n)
    found["evictions"] = str(sum(totals.evictions.values()))
    missing = sum(one.missing for one in totals.workloads)
    found["unavailable replica-minutes"] = f"{missing:g}"
    return found


def _workloads(result: SimulationResult) -> Table:
    rows = [
        [
            one.kind,
            f"{one.namespace}/{one.name}",
            *_numbers(one.pending, one.missing, one.without_any),
            str(one.evictions),
        ]
        for one in result.totals.workloads
    ]
    columns = ("KIND", "WORKLOAD", "PENDING", "UNAVAILABLE", "WITHOUT REPLICA", "EVICTIONS")
    return Table(columns, rows)


def _numbers(*minutes: float) -> list[str]:
    return [f"{one:g} min" for one in minutes]


def _expectations(result: SimulationResult) -> Table:
    rows = [
        [written_duration(one.at), _MET if one.met else _NOT_MET, one.text, one.found, str(one.line)]
        for one in result.verdicts
    ]
    styles = ["" if one.met else "red" for one in result.verdicts]
    return Table(("TIME", "RESULT", "EXPECTED", "FOUND", "LINE"), rows, styles)


def summary(result: SimulationResult) -> str:
    """How many expectations are met, in a line."""
    lasted = f"{written_duration(result.seconds)} simulated"
    if not result.verdicts:
        return f"{lasted}; the timeline expects nothing"
    n_failed = sum(not one.met for one in result.verdicts)
    counted = tables.counted(len(result.verdicts), "expectation")
    return f"{lasted}; {counted}, {'all met' if not n_failed else f'{n_failed} not met'}"


def junit(results: Sequence[tuple[str, SimulationResult]]) -> str:
    """One suite for each result, one testcase for each expectation."""
    suites = []
    for name, result in results:
        n_failed = sum(not one.met for one in result.verdicts)
        found = [
            audit_formats.testcase(
                f"{written_duration(one.at)} (line {one.line}): {one.text}",
                "simulation",
                "" if one.met else f"expected {one.text}, got {one.found}",
            )
            for one in result.verdicts
        ]
        suites.append(audit_formats.suite(f"bayplan simulate {name}".strip(), found, n_failed))
    return audit_formats.junit(suites)


def html(title: str, found: Sequence[tuple[str, Table]]) -> str:
    """The tables as one page."""
    return html_report.tables_page(title, found)


def comparison(first: SimulationResult, second: SimulationResult) -> list[tuple[str, Table]]:
    """The totals, the workloads and the expectations of two results side by side."""
    one, other = total_rows(first), total_rows(second)
    totals = [[name, one.get(name, "0"), other.get(name, "0")] for name in {**one, **other}]
    mine, theirs = ({(w.kind, w.namespace, w.name): w for w in r.totals.workloads} for r in (first, second))
    workloads = []
    for key in sorted({**mine, **theirs}):
        pair = [f"{found.missing:g} min" if found else "" for found in (mine.get(key), theirs.get(key))]
        workloads.append([key[0], f"{key[1]}/{key[2]}", *pair])
    return [
        ("Totals", Table(("TOTAL", "FIRST", "SECOND"), totals)),
        ("Unavailable replicas", Table(("KIND", "WORKLOAD", "FIRST", "SECOND"), workloads)),
        ("Expectations", _compared_expectations(first, second)),
    ]


def _compared_expectations(first: SimulationResult, second: SimulationResult) -> Table:
    """Expectations of both by their texts; each may be judged several times."""
    rows: dict[str, list[str]] = {}
    for place, result in enumerate((first, second)):
        for verdict in result.verdicts:
            row = rows.setdefault(verdict.text, ["", ""])
            known = row[place]
            failed = f"{_NOT_MET} at {written_duration(verdict.at)}: {verdict.found}"
            row[place] = known if known.startswith(_NOT_MET) else _MET if verdict.met else failed
    return Table(("EXPECTED", "FIRST", "SECOND"), [[name, *row] for name, row in rows.items()])
