import pytest

import document_schemas
from bayplan.enforcing.move_execution import (
    EvictionRejected,
    EvictionStarted,
    MoveCompleted,
    MoveDropped,
    MovesOutcome,
    MoveWaiting,
    Replacement,
    SeenPod,
)
from bayplan.enforcing.rebalancing import Rebalancing, WorkloadMove
from bayplan.writing import rebalance_report

MOVE = WorkloadMove("shop/web-1", (("a", 1),), (("b", 1),), {"InterPodAffinity": 200, "NodeAffinity": -50})
PLAN = Rebalancing((MOVE,), exact=True, n_tried=1)
OLD = SeenPod("shop/web-1", "1", "set", "a")


def made(target=None, *, gone=True, gain=0):
    """`target` is the node of the replacement; empty if it waits for one, None if there is no replacement."""
    new = None if target is None else SeenPod("shop/web-2", "2", "set", target)
    return MoveCompleted(MOVE, Replacement(OLD, new, gone), gain)


@pytest.mark.parametrize(
    "event, line",
    [
        (EvictionStarted(MOVE, 1, 2), "move 1 of 2: evicting shop/web-1 from a to b, +150 points"),
        (EvictionRejected("shop/web-1", "no"), "shop/web-1 is not evicted now: no"),
        (MoveWaiting("too many", 29.6), "too many; trying again in 30 s"),
        (MoveDropped("shop/web-1", "it is gone"), "shop/web-1 is not moved: it is gone"),
        (made("b", gain=150), "shop/web-1 was replaced by shop/web-2 on b: +150 points"),
        (made("c", gain=-5), "shop/web-1 was replaced by shop/web-2 on c, not on b as planned: -5 points"),
        (made("b", gone=False), "shop/web-1 was replaced by shop/web-2 on b: +0 points; it has not terminated"),
        (made(""), "shop/web-1 was evicted; its replacement shop/web-2 has no node"),
        (made(), "shop/web-1 was evicted; no replacement was created"),
    ],
)
def test_each_event_is_one_sentence(event, line):
    assert rebalance_report.event_line(event) == line


@pytest.mark.parametrize(
    "outcome, summary",
    [
        (MovesOutcome(plan=PLAN, made=[made("b", gain=150)]), "1 of 1 move made, 150 of 150 points gained"),
        (
            MovesOutcome(plan=PLAN, dropped=[MoveDropped("shop/web-1", "")]),
            "0 of 1 move made, 0 of 150 points gained; 1 dropped",
        ),
        (
            MovesOutcome(plan=PLAN, left=("shop/web-1",), stopped="no"),
            "stopped: 0 of 1 move made, 0 of 150 points gained; no",
        ),
        (
            MovesOutcome(plan=PLAN, left=("shop/web-1",), interrupted=True),
            "interrupted: 0 of 1 move made, 0 of 150 points gained",
        ),
    ],
)
def test_the_summary_compares_the_moves_with_the_plan(outcome, summary):
    assert rebalance_report.applied_summary(outcome) == summary


def test_the_document_has_the_plan_and_its_outcome():
    outcome = MovesOutcome(plan=PLAN, made=[made("c", gain=-5)], stopped="elsewhere")
    document = rebalance_report.applied_document(outcome)
    assert document["kind"] == "RebalancePlan"
    document_schemas.check(document)
    assert document["summary"]["gain"] == 150
    assert document["applied"] == {
        "summary": {"moves": 1, "gain": -5, "complete": False, "interrupted": False, "stopped": "elsewhere"},
        "made": [
            {
                "workload": "shop/web-1",
                "from": "a",
                "replacement": "shop/web-2",
                "to": "c",
                "asPlanned": False,
                "gain": -5,
                "missing": "",
            }
        ],
        "dropped": [],
        "left": [],
    }
