"""How rollouts end, as tables and documents."""

from bayplan.controllers.desired_state import ObjectKey
from bayplan.placing.rollout_history import Move, PodOnNode, RolloutResult, RolloutStep
from bayplan.writing import html_report, rollouts

STEP = RolloutStep(1, ["web-n-1"], [PodOnNode("web-o-1", "a")], [PodOnNode("web-n-1", "b")], [("web-n-2", "no room")])
DONE = RolloutResult(
    ObjectKey("Deployment", "shop", "web"), "complete", 0, "", (),
    (Move(PodOnNode("web-o-1", "a"), PodOnNode("web-n-1", "b")), Move(PodOnNode("web-o-2", "c"), PodOnNode("x", "c")),
     Move(None, PodOnNode("web-n-3", "d"))),
    (STEP,),
)  # fmt: skip
STUCK = RolloutResult(
    ObjectKey("StatefulSet", "shop", "db"), "stuck", 2, "db-2: no <room>", (("db-2", "no <room>"),), (), ()
)
PAUSED = RolloutResult(ObjectKey("Deployment", "shop", "p"), "held back", 0, "", (), (), (), "paused")


def test_one_row_per_workload():
    assert rollouts.text([DONE, STUCK, PAUSED], None) == (
        "\n"
        "WORKLOAD             RESULT           MOVES  WHY\n"
        "shop/deployment/web  complete         1      -\n"
        "shop/statefulset/db  stuck at step 2  0      db-2: no <room>\n"
        "shop/deployment/p    held back        0      paused\n"
    )


def test_wide_tables_have_the_steps_and_each_move():
    assert rollouts.text([DONE], None, wide=True) == (
        "\n"
        "WORKLOAD             RESULT    STEPS  MOVES  WHY\n"
        "shop/deployment/web  complete  1      1      -\n"
        "\n"
        "WORKLOAD             POD      FROM    NEW POD  TO\n"
        "shop/deployment/web  web-o-1  a       web-n-1  b\n"
        "shop/deployment/web  web-o-2  c       x        c\n"
        "shop/deployment/web  <none>   <none>  web-n-3  d\n"
    )


def test_without_rollouts_nothing_is_printed():
    assert (rollouts.text([], None), list(rollouts.summaries([])), rollouts.documents([])) == ("", [], [])


def test_the_line_counts_them():
    assert list(rollouts.summaries([DONE])) == ["1 of 1 rollout complete"]
    assert list(rollouts.summaries([DONE, STUCK, PAUSED])) == [
        "1 of 3 rollouts complete",
        "not judged: 1 new template, which no pod gets yet; with --strict that is a no",
    ]
    assert list(rollouts.summaries([PAUSED, PAUSED]))[1].startswith("not judged: 2 new templates, which")


def test_the_document_has_every_step():
    done, stuck = rollouts.documents([DONE, STUCK])
    assert done == {
        "workload": {"kind": "Deployment", "namespace": "shop", "name": "web"},
        "result": "complete",
        "stuckAt": None,
        "why": "",
        "note": "",
        "pending": [],
        "moves": [
            {"from": {"pod": "web-o-1", "node": "a"}, "to": {"pod": "web-n-1", "node": "b"}},
            {"from": {"pod": "web-o-2", "node": "c"}, "to": {"pod": "x", "node": "c"}},
            {"from": None, "to": {"pod": "web-n-3", "node": "d"}},
        ],
        "steps": [
            {
                "step": 1,
                "created": ["web-n-1"],
                "deleted": [{"pod": "web-o-1", "node": "a"}],
                "placed": [{"pod": "web-n-1", "node": "b"}],
                "pending": [{"pod": "web-n-2", "message": "no room"}],
                "refused": "",
            }
        ],
    }
    assert (stuck["stuckAt"], stuck["why"]) == (2, "db-2: no <room>")
    assert stuck["pending"] == [{"pod": "db-2", "message": "no <room>"}]


def test_a_page_has_them_escaped():
    section = html_report.section("Rollouts", rollouts.table([STUCK]))
    assert "<h2>Rollouts</h2>" in section
    assert "no &lt;room&gt;" in section
