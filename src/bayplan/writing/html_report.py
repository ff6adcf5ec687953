"""
Answers as self-contained HTML pages without scripts and external resources: pictures, tables, what they were made from.

All text of objects is escaped. It does not know how an answer was found.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from bayplan.explaining.explanation import Explanation, TargetVerdict
from bayplan.placing.place_cluster import ClusterPlacement
from bayplan.placing.place_pods import PodPlacement
from bayplan.writing import drawings, placements, rollouts, tables
from bayplan.writing.drawings import Picture
from bayplan.writing.tables import Table

_STYLE = """
:root {
  color-scheme: light dark; --line: #8884; --bad: #c62828; --good: #2e7d32; --move: #0a58ca; --page: #fff;
  --text: #1c2128;
}
@media (prefers-color-scheme: dark) {
  :root { --bad: #ef9a9a; --good: #a5d6a7; --move: #6ea8fe; --page: #14181d; --text: #e6ebf1; }
}
body {
  background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem;
}
table { border-collapse: collapse; width: 100%; margin: 1rem 0 2rem; }
th, td { text-align: left; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: break-word; }
.number { text-align: right; }
.unschedulable { color: var(--bad); }
.placed { color: var(--good); }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); }
.matrix td, .matrix th { text-align: center; }
.matrix th:first-child, .matrix th:last-child, .matrix td:last-child { text-align: left; }
.matrix th[scope=row] { white-space: nowrap; }
.scroll { overflow-x: auto; margin: 1rem 0 2rem; } .scroll table { margin: 0; }
footer { border-top: 1px solid var(--line); font-size: .85em; overflow-wrap: anywhere; }
@media print {
  body { margin: 0; max-width: none; } .scroll { overflow: visible; } pre { white-space: pre-wrap; }
  h2 { break-after: avoid; } tr, svg { break-inside: avoid; }
}
"""
# The page may not load or run anything, whatever the names of objects contain.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


_PROVENANCE = "<!-- provenance -->"
_PRE = '<pre tabindex="0">'  # it may be wider than the page, and is moved by keys then


def with_provenance(text: str, lines: Sequence[str]) -> str:
    """The page with what it was made from, a line for each."""
    items = "".join(f"<li>{_safe(line)}</li>" for line in lines)
    head, _, rest = text.rpartition(_PROVENANCE)
    return f"{head}<footer><h2>Made from</h2><ul>{items}</ul></footer>{rest}"


def page(answer: ClusterPlacement, explanations: Mapping[str, str], picture: Picture | None = None) -> str:
    """The page of a plan for pods; `explanations` are texts by workload, shown below the table."""
    n_placed = sum(bool(one.target) for one in answer.placements)
    rows = "".join(_row(one, explained=one.workload.key in explanations) for one in answer.placements)
    body = (
        f"<h1>Placement plan</h1><p>{n_placed} of {len(answer.placements)} placed.</p>"
        + _drawn(picture)
        + _table(("Namespace", "Name", "Node", "Priority", "Score", "Why"), rows)
        + (section("Rollouts", rollouts.table(answer.rollouts, wide=True)) if answer.rollouts else "")
        + (section("Moves", rollouts.moves_table(answer.rollouts)) if answer.rollouts else "")
        + _reasons(answer.placements)
        + "".join(_explanation(key, text) for key, text in explanations.items())
    )
    return _document("Placement plan", body)


def rows_page(
    title: str, content: Table, explanations: Mapping[str, str] | None = None, picture: Picture | None = None
) -> str:
    """Any other table as a page, with a picture above it and explanations by workload below it."""
    rows = "".join(f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>\n" for row in content.rows)
    texts = "".join(_explanation(key, text) for key, text in (explanations or {}).items())
    return _document(title, f"<h1>{_safe(title)}</h1>{_drawn(picture)}{_table(content.columns, rows)}{texts}")


def explanation_page(found: Explanation, text: str, picture: Picture) -> str:
    """The page of an explanation: the result, the picture, every target with every rule, and the fixes in the text."""
    title = f"Explanation of {found.workload.removeprefix('/')}"
    result = f"placed on {found.target}" if found.target else found.message
    rules = sorted({each.rule for one in found.targets for each in one.failures})
    ranked = sorted(found.targets, key=lambda one: (not one.chosen, not one.fits, -one.score, one.name))
    rows = "".join(_verdict_row(one, rules) for one in ranked)
    head = (found.noun.capitalize(), "Verdict", "Score", *rules, "Scores by rule, or why not")
    body = (
        f'<h1>{_safe(title)}</h1><p class="{"placed" if found.target else "unschedulable"}">{_safe(result)}</p>'
        f"{_drawn(picture)}{_PRE}{html.escape(tables.printable_lines(text))}</pre>"
        f'<h2>Every {found.noun}, every rule</h2><div class="matrix">{_table(head, rows)}</div>'
    )
    return _document(title, body)


def _verdict_row(one: TargetVerdict, rules: Sequence[str]) -> str:
    rejecting = {each.rule for each in one.failures}
    cells = ["✗" if rule in rejecting else "" for rule in rules]
    scores = ", ".join(f"{rule} {score}" for rule, score in one.scores.items() if score)
    why = "; ".join(each.detail or each.reason for each in one.failures) or scores
    verdict = "chosen" if one.chosen else "fits" if one.fits else "rejected"
    texts = (verdict, str(one.score) if one.fits else "", *cells, why)
    return f'<tr><th scope="row">{_safe(one.name)}</th>{"".join(f"<td>{_safe(text)}</td>" for text in texts)}</tr>\n'


def sections_page(title: str, parts: Sequence[tuple[str, Table | str | Picture]]) -> str:
    """A page of several parts, each with its heading: a table, a text, a picture."""
    body = [f"<h1>{_safe(title)}</h1>"]
    for heading, content in parts:
        if isinstance(content, Table):
            body.append(section(heading, content))
        elif isinstance(content, Picture):
            body.append(f"<h2>{_safe(heading)}</h2>{_drawn(content)}")
        elif "\n" not in content:
            body.append(f"<h2>{_safe(heading)}</h2><p>{_safe(content)}</p>")
        else:
            body.append(f"<h2>{_safe(heading)}</h2>{_PRE}{html.escape(tables.printable_lines(content))}</pre>")
    return _document(title, "".join(body))


def _drawn(picture: Picture | None) -> str:
    return "" if picture is None else drawings.drawn(picture)


def tables_page(title: str, found: Sequence[tuple[str, Table]]) -> str:
    """Several tables with their headings; one without rows is left out."""
    return _document(title, f"<h1>{_safe(title)}</h1>" + "".join(section(*one) for one in found if one[1].rows))


def section(title: str, content: Table) -> str:
    """A further table of a page, with its heading."""
    rows = "".join(f"<tr>{''.join(f'<td>{_safe(cell)}</td>' for cell in row)}</tr>\n" for row in content.rows)
    return f"<h2>{_safe(title)}</h2>{_table(content.columns, rows)}"


def _row(placement: PodPlacement, *, explained: bool) -> str:
    workload = placement.workload
    name = _safe(workload.name)
    if explained:
        name = f'<a href="#{_anchor(workload.key)}">{name}</a>'
    where = f'<td class="unschedulable">{_verdict(placement)}</td>'
    if placement.target:
        where = f'<td class="placed">✓ {_safe(placement.target)}</td>'
    score = placement.total if placement.target else ""
    return (
        f"<tr><td>{_safe(workload.namespace)}</td><td>{name}</td>{where}"
        f'<td class="number">{workload.priority}</td><td class="number">{score}</td>'
        f"<td>{_safe(placements.message_of(placement))}</td></tr>\n"
    )


def _verdict(placement: PodPlacement) -> str:
    """What became of a pod that has no node."""
    if placement.not_judged:
        return "? not judged"
    return "✗ lost" if placement.lost else "✗ refused" if placement.refused else "✗ unschedulable"


def _reasons(placements: Sequence[PodPlacement]) -> str:
    """A table with the number of rejected workloads per reason; empty if everything was placed."""
    n_workloads: dict[str, int] = {}
    for placement in placements:
        for reason in placement.reasons:
            n_workloads[reason] = n_workloads.get(reason, 0) + 1
    if not n_workloads:
        return ""
    counted = sorted(n_workloads.items(), key=lambda entry: (-entry[1], entry[0]))
    rows = "".join(f'<tr><td>{_safe(text)}</td><td class="number">{n}</td></tr>\n' for text, n in counted)
    return f"<h2>Reasons</h2>{_table(('Reason', 'Workloads'), rows)}"


def _explanation(key: str, text: str) -> str:
    safe = html.escape(tables.printable_lines(text))
    return f'<h2 id="{_anchor(key)}">{_safe(key)}</h2>{_PRE}{safe}</pre>'


def _table(columns: Sequence[str], rows: str) -> str:
    head = "".join(f'<th scope="col">{_safe(column)}</th>' for column in columns)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>"
    name = _safe(", ".join(columns[:2]))
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">{table}</div>\n'


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_safe(title)}</title><style>{_STYLE}{drawings.STYLE}</style></head>\n"
        f"<body>\n<main>\n{body}\n</main>{_PROVENANCE}\n</body></html>\n"
    )


def _anchor(key: str) -> str:
    return _safe(f"why-{key}")


def _safe(text: str) -> str:
    return html.escape(tables.printable(text))
