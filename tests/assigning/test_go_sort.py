"""
The order of equal amounts is that of Go's `sort.Sort`, recorded from Go 1.26.

`go_sort_orders.jsonl` has lists of amounts, the order that they got, and for some the number of bad pivots that were
allowed: few lists of this size make the algorithm fall back to a heap by themselves.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.assigning import go_sort

RECORDED = [json.loads(line) for line in Path(__file__).with_name("go_sort_orders.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("recorded", RECORDED, ids=range(len(RECORDED)))
def test_equal_amounts_are_where_go_leaves_them(recorded):
    amounts, allowed = recorded["amounts"], recorded["badPivotsLeft"]
    if allowed is None:
        assert go_sort.descending_order(amounts) == recorded["order"]
        return
    sorting = go_sort.PatternDefeatingSort(amounts)
    sorting.sort(0, len(amounts), allowed)
    assert sorting.places == recorded["order"]


def test_the_recorded_orders_are_not_those_of_a_stable_sort():
    stable = [sorted(range(len(one["amounts"])), key=lambda i: -one["amounts"][i]) for one in RECORDED]
    assert sum(order != one["order"] for order, one in zip(stable, RECORDED, strict=True)) > len(RECORDED) // 3


@given(st.lists(st.integers(0, 30), max_size=200))
def test_every_list_is_sorted(amounts):
    order = go_sort.descending_order(amounts)
    assert sorted(order) == list(range(len(amounts)))
    assert [amounts[place] for place in order] == sorted(amounts, reverse=True)


@given(st.lists(st.integers(0, 5), max_size=go_sort.MAX_INSERTION_SORT))
def test_up_to_twelve_equal_amounts_keep_their_order(amounts):
    assert go_sort.descending_order(amounts) == sorted(range(len(amounts)), key=lambda place: -amounts[place])
