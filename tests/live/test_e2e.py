"""How the report of the end-to-end tests is read and compared; `make e2e` runs the tests themselves."""

from live import e2e


def spec(name, state="passed", why="", kind="It"):
    """A test as Ginkgo reports it."""
    failure = {"Failure": {"Message": why}} if why else {}
    return {
        "LeafNodeType": kind,
        "ContainerHierarchyTexts": ["[sig-scheduling] SchedulerPredicates [Serial]"],
        "LeafNodeText": name,
        "State": state,
        "RunTime": 1_500_000_000,
        **failure,
    }


def outcomes(*specs):
    return dict(e2e._outcomes_of(specs))


def test_tests_that_are_not_selected_and_suite_nodes_are_left_out():
    found = outcomes(spec("a"), spec("b", "skipped"), spec("c", "skipped", "one zone"), spec("", kind="BeforeSuite"))
    assert {name.split()[-1]: (one.state, one.seconds, one.why) for name, one in found.items()} == {
        "a": ("passed", 1.5, ""),
        "c": ("skipped", 1.5, "one zone"),
    }


def test_bayplan_must_pass_what_kube_scheduler_passes():
    theirs = outcomes(spec("both"), spec("ours-fails"), spec("ours-skips"), spec("neither", "failed", "no containers"))
    ours = outcomes(
        spec("both"), spec("ours-fails", "failed", "x"), spec("ours-skips", "skipped", "y"), spec("neither", "failed")
    )
    found = e2e.worse({e2e.THEIRS: theirs, e2e.OURS: ours})
    assert [name.split()[-1] for name in found] == ["ours-fails", "ours-skips"]


def test_a_test_that_was_not_run_is_not_passed():
    assert len(e2e.worse({e2e.THEIRS: outcomes(spec("a")), e2e.OURS: {}})) == 1


def test_the_table_has_both_columns_and_the_reasons():
    by_scheduler = {e2e.THEIRS: outcomes(spec("a")), e2e.OURS: outcomes(spec("a", "failed", "pod is Pending"))}
    assert e2e.table(by_scheduler).splitlines() == [
        "| Test | kube-scheduler | bayplan |",
        "|---|---|---|",
        "| SchedulerPredicates [Serial] a | passed | failed |",
        "",
        "bayplan: [sig-scheduling] SchedulerPredicates [Serial] a: failed: pod is Pending",
    ]
