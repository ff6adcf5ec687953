"""The pictures of reports: boxes in boxes, everything named, nothing on top of anything else."""

import re
import xml.etree.ElementTree as ET

import pytest

from bayplan.writing import drawings
from bayplan.writing.drawings import DrawnItem, DrawnTarget, Picture

NASTY = '<script>alert("x")</script>\u202e'


def shapes(text):
    """The rectangles of a drawing: their class, place and title; the legend is left out."""
    root = ET.fromstring(f"<all>{text}</all>")
    svg = root.find("svg")
    return [
        (rect.get("class"), *(float(rect.get(name)) for name in ("x", "y", "width", "height")), rect.find("title").text)
        for rect in svg.iter("rect")
    ]


def picture(n_zones, n_nodes, n_items, **fields):
    targets = tuple(
        DrawnTarget(
            f"n{zone}-{node}",
            (f"zone {zone}",),
            items=tuple(DrawnItem(f"p{i}", f"app {i % 3}") for i in range(n_items)),
        )
        for zone in range(n_zones)
        for node in range(n_nodes)
    )
    return Picture("Nodes", targets, **fields)


@pytest.mark.parametrize("n_zones, n_nodes, n_items", [(1, 1, 0), (3, 1, 5), (2, 7, 40), (5, 30, 1), (1, 60, 61)])
def test_boxes_are_inside_their_domain_and_do_not_overlap(n_zones, n_nodes, n_items):
    found = shapes(drawings.drawn(picture(n_zones, n_nodes, n_items)))
    domains = [one for one in found if one[0] == "domain"]
    targets = [one for one in found if one[0].startswith("target")]
    items = [one for one in found if one[0].startswith("item")]
    assert (len(domains), len(targets)) == (n_zones, n_zones * n_nodes)
    assert len(items) == n_zones * n_nodes * min(n_items, drawings.MAX_ITEMS_OF_A_TARGET)
    for inner, outer in ((targets, domains), (items, targets)):
        for one in inner:
            assert sum(_inside(one, other) for other in outer) == 1
    for group in (domains, targets):
        assert not any(_overlap(a, b) for i, a in enumerate(group) for b in group[:i])


def _inside(a, b):
    return a[1] >= b[1] and a[2] >= b[2] and a[1] + a[3] <= b[1] + b[3] + 0.2 and a[2] + a[4] <= b[2] + b[4] + 0.2


def _overlap(a, b):
    return a[1] < b[1] + b[3] and b[1] < a[1] + a[3] and a[2] < b[2] + b[4] and b[2] < a[2] + a[4]


def test_every_workload_and_target_has_its_name_as_title():
    found = drawings.drawn(picture(1, 2, 2, waiting=(DrawnItem("w", "app 1"),)))
    titles = [one[5] for one in shapes(found)]
    assert {"n0-0", "n0-1", "p0, app 0", "p1, app 1", "w, app 1"} <= set(titles)
    assert "pending: 1" in found


def test_names_are_text():
    found = drawings.drawn(
        Picture(
            NASTY, (DrawnTarget(NASTY, (NASTY,), note=NASTY, items=(DrawnItem(NASTY, NASTY),)),), (DrawnItem(NASTY),)
        )
    )
    assert "<script" not in found
    assert "\u202e" not in found
    ET.fromstring(f"<all>{found}</all>")


def test_too_many_targets_are_counted_by_domain():
    found = drawings.drawn(picture(4, 200, 2))
    assert "800 nodes are too many to draw each" in found
    assert len([one for one in shapes(found) if one[0].startswith("target")]) == 4
    assert "200 in all, 400 on them" in [one[5] for one in shapes(found)]


def test_an_arrow_leads_from_target_to_target():
    found = drawings.drawn(
        picture(1, 2, 0, arrows=(("n0-0", "n0-1", "shop/a"), ("n0-0", "gone", "x"), ("n0-0", "n0-0", "y")))
    )
    assert len(re.findall('class="arrow"', found)) == 1
    assert "<title>shop/a</title>" in found


def test_nothing_is_drawn_of_nothing():
    assert drawings.drawn(Picture("x")) == ""


def test_many_groups_share_grey():
    items = tuple(DrawnItem(f"p{i}", f"app {i}") for i in range(20))
    found = drawings.drawn(Picture("x", (DrawnTarget("n", items=items),)))
    assert "12 others" in found
