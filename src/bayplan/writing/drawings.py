"""
Nested boxes as SVG: regions, zones, racks and nodes with the workloads on them, for reports that people print.

The same picture as that of the page (`web/assets/layout.js`), without scripts: every box and workload has its name as a
title, and is drawn in the colours of the report. It does not know what is reported.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bayplan.model.terms import REGION, ZONE
from bayplan.writing import tables

MAX_TARGETS = 600  # of more, domains are drawn with their numbers alone
MAX_ITEMS_OF_A_TARGET = 60
MAX_ARROWS = 200
N_COLOURS = 8
_WIDTH, _HEIGHT, _HEAD = 132.0, 84.0, 18.0
_GAP, _PADDING, _DOMAIN_HEAD = 8.0, 10.0, 22.0
_ASPECT = 1.7
_MAX_TRIED = 40
_MAX_NAME = 60
_CHARACTER = 6.2  # the width of one, about
_Area = tuple[float, float, float, float]  # left, top, width, height

STYLE = """
svg.drawing { width: 100%; height: auto; font: 11px system-ui, sans-serif; margin: 1rem 0; }
svg.drawing text { fill: currentColor; }
svg.drawing .domain { fill: #8881; stroke: #888; }
svg.drawing .target { fill: var(--page); stroke: #888; }
svg.drawing .chosen, svg.drawing .added { stroke: var(--good); stroke-width: 3; }
svg.drawing .rejected { stroke: var(--bad); stroke-dasharray: 4 2; }
svg.drawing .lost, svg.drawing .waiting { stroke: var(--bad); stroke-width: 2; }
svg.drawing .item { stroke: none; }
svg.drawing .item.moved { stroke: var(--text); stroke-width: 2; }
svg.drawing .item.left { fill: none; stroke: var(--text); stroke-dasharray: 2 2; }
svg.drawing .item.violated { stroke: var(--bad); stroke-width: 2.5; }
svg.drawing .arrow { fill: none; stroke: var(--move); stroke-width: 1.6; }
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1rem; }
ul.legend svg.drawing { width: 14px; height: 14px; margin: 0; vertical-align: -2px; }
.c0 { fill: #2f6fd0; } .c1 { fill: #c4512d; } .c2 { fill: #2c8a57; } .c3 { fill: #8a4fc0; }
.c4 { fill: #b98900; } .c5 { fill: #00838f; } .c6 { fill: #c2397e; } .c7 { fill: #6b7d1f; } .c8 { fill: #8a939c; }
"""


class DrawnItem(msgspec.Struct, frozen=True):
    """
    A workload, or what else is on a target. `group` says what it is part of, which has a colour.

    `mark` is "" or one of moved, left (where it was), violated.
    """

    name: str
    group: str = ""
    mark: str = ""


class DrawnTarget(msgspec.Struct, frozen=True):
    """
    A node or a cluster in its domains, the outermost first, each as it is titled; `note` is a line below the name.

    `mark` is "" or one of chosen, fits, rejected, added, lost.
    """

    name: str
    domains: tuple[str, ...] = ()
    mark: str = ""
    note: str = ""
    items: tuple[DrawnItem, ...] = ()


class Picture(msgspec.Struct, frozen=True):
    """What is drawn. `arrows` lead from targets to targets, as from, to and title. `noun` is node or cluster."""

    title: str
    targets: tuple[DrawnTarget, ...] = ()
    waiting: tuple[DrawnItem, ...] = ()
    arrows: tuple[tuple[str, str, str], ...] = ()
    noun: str = "node"
    marks: tuple[tuple[str, str], ...] = ()  # what the marks of this picture mean: mark and text


class _Box(msgspec.Struct):
    """A domain with boxes in it, or a target; the place is set by the layout."""

    title: str = ""
    target: DrawnTarget | None = None
    children: list[_Box] = []
    x: float = 0.0
    y: float = 0.0
    w: float = _WIDTH
    h: float = _HEIGHT


def domains_of(labels: Sequence[Mapping[str, str]]) -> list[tuple[str, ...]]:
    """The region and the zone of each node, as far as any node has them."""
    keys = [key for key in (REGION, ZONE) if any(key in one for one in labels)]
    return [tuple(_titled(key, one.get(key)) for key in keys) for one in labels]


def _titled(key: str, value: str | None) -> str:
    short = key.rpartition("/")[2]
    if value is None:
        return f"no {short}"
    return value if value.startswith(short) else f"{short} {value}"


def drawn(picture: Picture) -> str:
    """The picture with its legend, as a part of a page; empty if there is nothing to draw."""
    if not picture.targets and not picture.waiting:
        return ""
    colours = _colours(picture)
    root = _tree(picture.targets)
    if len(picture.targets) > MAX_TARGETS:
        _summarise(root)
    _place(root)
    top = _tray_height(picture.waiting, root.w)
    shapes = [*_tray(picture.waiting, colours, root.w), *_shapes(root, colours, 0.0, top), *_arrows(picture, root, top)]
    width, height = max(root.w, 240.0), root.h + top
    title = _safe(picture.title)
    return (
        f'<svg class="drawing" role="img" aria-label="{title}" viewBox="-2 -2 {width + 4:.0f} {height + 4:.0f}" '
        f'style="max-width:{max(width, 320):.0f}px"><title>{title}</title>\n{"".join(shapes)}</svg>\n'
        f"{_legend(picture, colours)}"
    )


def _colours(picture: Picture) -> dict[str, int]:
    """The number of the colour of each group: the most frequent first, the others share grey."""
    count: dict[str, int] = {}
    for one in (*picture.waiting, *(item for target in picture.targets for item in target.items)):
        count[one.group] = count.get(one.group, 0) + 1
    ranked = sorted(count, key=lambda group: (-count[group], group))
    return {group: min(position, N_COLOURS) for position, group in enumerate(ranked)}


# Boxes


def _tree(targets: Iterable[DrawnTarget]) -> _Box:
    root = _Box()
    known: dict[tuple[str, ...], _Box] = {(): root}
    for target in targets:
        for depth in range(1, len(target.domains) + 1):
            path = target.domains[:depth]
            if path not in known:
                known[path] = _Box(path[-1], children=[])
                known[path[:-1]].children.append(known[path])
        known[target.domains].children.append(_Box(target=target))
    return root


def _summarise(box: _Box) -> None:
    """Instead of targets, one box that counts them in each innermost domain."""
    for child in box.children:
        if child.target is None:
            _summarise(child)
    leaves = [child.target for child in box.children if child.target is not None]
    if not leaves:
        return
    n_items = sum(len(one.items) for one in leaves)
    marks = {one.mark for one in leaves if one.mark}
    noted = [f"{sum(one.mark == mark for one in leaves)} {mark}" for mark in sorted(marks)]
    total = DrawnTarget(f"{len(leaves)} in all", note=", ".join([f"{n_items} on them", *noted]))
    box.children = [child for child in box.children if child.target is None] + [_Box(target=total)]


def _place(box: _Box) -> None:
    """Set the size of a box, and the place of all that it holds relative to it."""
    if box.target is not None:
        return
    for child in box.children:
        _place(child)
    head, padding = (_DOMAIN_HEAD, _PADDING) if box.title else (0.0, 0.0)
    w, h = _shelves(box.children)
    for child in box.children:
        child.x, child.y = child.x + padding, child.y + head
    box.w = max(w + 2 * padding, len(box.title[:_MAX_NAME]) * _CHARACTER + 2 * padding)
    box.h = h + head + padding


def _shelves(children: Sequence[_Box]) -> tuple[float, float]:
    """Put boxes into rows, so that the whole has about the aspect of a page; returns its size."""
    if not children:
        return _WIDTH, _HEAD
    widest = max(one.w for one in children)
    area = sum((one.w + _GAP) * (one.h + _GAP) for one in children)
    widths = [max(widest, math.sqrt(area * _ASPECT))]
    if len(children) <= _MAX_TRIED:
        sums = [sum(one.w + _GAP for one in children[: n + 1]) for n in range(len(children))]
        widths += [total for total in sums if total >= widest]
    width = min(widths, key=lambda width: _waste(*_rows(children, width)))
    return _rows(children, width)


def _waste(w: float, h: float) -> float:
    return max(w, h * _ASPECT)


def _rows(children: Sequence[_Box], width: float) -> tuple[float, float]:
    x = y = row = w = 0.0
    for child in children:
        if x and x + child.w > width + 1:
            x, y, row = 0.0, y + row + _GAP, 0.0
        child.x, child.y = x, y
        x += child.w + _GAP
        row, w = max(row, child.h), max(w, x - _GAP)
    return w, y + row


# Shapes


def _shapes(box: _Box, colours: Mapping[str, int], x: float, y: float) -> list[str]:
    x, y = x + box.x, y + box.y
    if box.target is not None:
        return _target(box.target, colours, x, y)
    found = []
    if box.title:
        found = [_rect("domain", (x, y, box.w, box.h), box.title), _text(box.title, x + 8, y + 15, box.w - 16, "bold")]
    return [*found, *(shape for child in box.children for shape in _shapes(child, colours, x, y))]


def _target(target: DrawnTarget, colours: Mapping[str, int], x: float, y: float) -> list[str]:
    title = ", ".join(filter(None, (target.name, target.mark, target.note)))
    found = [
        _rect(f"target {target.mark}", (x, y, _WIDTH, _HEIGHT), title),
        _text(target.name, x + 6, y + 13, _WIDTH - 12),
    ]
    if target.note:
        found.append(_text(target.note, x + 6, y + 27, _WIDTH - 12))
    if target.mark == "lost":
        found.append(f'<path class="lost" d="M{x:.1f} {y:.1f}l{_WIDTH} {_HEIGHT}m0 -{_HEIGHT}l-{_WIDTH} {_HEIGHT}"/>\n')
    top = 34.0 if target.note else 20.0
    return found + _items(target.items, colours, (x + 6, y + top, _WIDTH - 12, _HEIGHT - top - 6))


def _items(items: Sequence[DrawnItem], colours: Mapping[str, int], area: _Area) -> list[str]:
    """Squares in a grid, as large as fit; of many, those with a mark first."""
    x, y, w, h = area
    ranked = sorted(items, key=lambda one: (not one.mark, colours[one.group], one.name))[:MAX_ITEMS_OF_A_TARGET]
    if not ranked:
        return []
    size = _size(len(ranked), w, h)
    columns = max(1, int(w / size))
    found = []
    for position, one in enumerate(ranked):
        left, top = x + position % columns * size, y + position // columns * size
        style = f"item {one.mark} c{colours[one.group]}"
        title = ", ".join(filter(None, (one.name, one.group, one.mark)))
        found.append(_rect(style, (left + 1, top + 1, size - 2, size - 2), title))
    if len(items) > len(ranked):
        found.append(_text(f"and {len(items) - len(ranked)} more", x, y + h + 4, w))
    return found


def _size(n: int, w: float, h: float) -> float:
    """The largest square of which so many fit."""
    columns = max(1, math.ceil(math.sqrt(n * w / h)))
    while math.ceil(n / columns) * (w / columns) > h:
        columns += 1
    return min(w / columns, 20.0)


def _tray_height(waiting: Sequence[DrawnItem], width: float) -> float:
    if not waiting:
        return 0.0
    columns = max(1, int((max(width, 240.0) - 16) / 18))
    return 30.0 + math.ceil(min(len(waiting), MAX_TARGETS) / columns) * 18 + 14


def _tray(waiting: Sequence[DrawnItem], colours: Mapping[str, int], width: float) -> list[str]:
    """The box of what has no target, on top."""
    if not waiting:
        return []
    width = max(width, 240.0)
    columns = max(1, int((width - 16) / 18))
    shown = sorted(waiting, key=lambda one: (colours[one.group], one.name))[:MAX_TARGETS]
    found = [_rect("waiting", (0, 0, width, _tray_height(waiting, width) - 10), "pending", 'fill="none"')]
    found.append(_text(f"pending: {len(waiting)}", 8, 16, width - 16, "bold"))
    for position, one in enumerate(shown):
        x, y = 8 + position % columns * 18, 24 + position // columns * 18
        title = ", ".join(filter(None, (one.name, one.group)))
        found.append(_rect(f"item c{colours[one.group]}", (x, y, 16, 16), title))
    return found


def _arrows(picture: Picture, root: _Box, top: float) -> list[str]:
    centres: dict[str, tuple[float, float]] = {}
    _find_centres(root, 0.0, top, centres)
    found = []
    for start, end, title in picture.arrows[:MAX_ARROWS]:
        if start not in centres or end not in centres or start == end:
            continue
        (x1, y1), (x2, y2) = centres[start], centres[end]
        bend = (x1 + x2) / 2 - (y2 - y1) * 0.12, (y1 + y2) / 2 + (x2 - x1) * 0.12
        angle = math.atan2(y2 - bend[1], x2 - bend[0])
        tips = [(x2 + 9 * math.cos(angle + side), y2 + 9 * math.sin(angle + side)) for side in (2.7, -2.7)]
        path = f"M{x1:.1f} {y1:.1f}Q{bend[0]:.1f} {bend[1]:.1f} {x2:.1f} {y2:.1f}"
        head = "".join(f"M{x2:.1f} {y2:.1f}L{x:.1f} {y:.1f}" for x, y in tips)
        found.append(f'<path class="arrow" d="{path}{head}"><title>{_safe(title)}</title></path>\n')
    return found


def _find_centres(box: _Box, x: float, y: float, centres: dict[str, tuple[float, float]]) -> None:
    x, y = x + box.x, y + box.y
    if box.target is not None:
        centres[box.target.name] = x + box.w / 2, y + box.h / 2
    for child in box.children:
        _find_centres(child, x, y, centres)


def _rect(style: str, area: _Area, title: str, more: str = "") -> str:
    x, y, w, h = area
    place = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    return f'<rect class="{style.strip()}" {place} {more}><title>{_safe(title)}</title></rect>\n'


def _text(text: str, x: float, y: float, room: float, weight: str = "normal") -> str:
    shown = tables.printable(text)
    most = max(1, int(room / _CHARACTER))
    cut = shown if len(shown) <= most else f"{shown[: most - 1]}…"
    return f'<text x="{x:.1f}" y="{y:.1f}" font-weight="{weight}">{html.escape(cut)}</text>\n'


def _legend(picture: Picture, colours: Mapping[str, int]) -> str:
    def sample(style: str) -> str:
        shape = f'<rect class="{style}" x="2" y="2" width="10" height="10"/>'
        return f'<svg viewBox="0 0 14 14" class="drawing" aria-hidden="true">{shape}</svg>'

    named = [group for group, number in colours.items() if number < N_COLOURS and group]
    entries = [f"<li>{sample(f'item c{colours[group]}')} {_safe(group)}</li>" for group in named]
    n_grey = sum(number == N_COLOURS for number in colours.values())
    entries += [f"<li>{sample(f'item c{N_COLOURS}')} {n_grey} others</li>"] if n_grey else []
    entries += [f"<li>{sample(_sample_of(mark))} {_safe(text)}</li>" for mark, text in picture.marks]
    if len(picture.targets) > MAX_TARGETS:
        entries.append(
            f"<li>{len(picture.targets)} {picture.noun}s are too many to draw each: domains have their numbers</li>"
        )
    return f'<ul class="legend">{"".join(entries)}</ul>\n' if entries else ""


def _sample_of(mark: str) -> str:
    is_item = mark in ("moved", "left", "violated")
    return f"item c{N_COLOURS} {mark}" if is_item else f"target {mark}"


def _safe(text: str) -> str:
    return html.escape(tables.shortened(tables.printable(text), 200))
