"""A rule is one class in a table: it filters, scores, explains, proposes, requeues, preempts and is configured."""

import importlib
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bayplan import schedule_pod
from bayplan.cli import main
from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.errors import InputError
from bayplan.explaining import explanation, fit_error
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.library import reason_pages
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.model.targets import Target, TargetName
from bayplan.model.volumes import Volume
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.preempting import dry_run, preemption
from bayplan.queueing.nominations import Nominations
from bayplan.queueing.pending_pod import PendingPod
from bayplan.queueing.unschedulable_pods import UnschedulablePods
from bayplan.reading import scheduler_config
from bayplan.rules import profiles
from bayplan.rules.rule import Failure
from rules.shorthand import check_evidence, checked
from rules.toy_rule import LICENCE, RACK, CountedRackLicences, RackLicences

NAME = RackLicences.name


def pod(name, *, licences=1, priority=0):
    requests = Requests(amounts=((LICENCE, licences),)) if licences else Requests()
    return Workload(namespace="d", name=name, labels={}, needs=Needs(requests=requests), priority=priority)


@pytest.fixture(params=[RackLicences])
def in_table(request, monkeypatch):
    """The rule is the last of the table, and what is derived from the table is derived again."""
    with monkeypatch.context() as patched:
        patched.setattr(profiles, "POD_PLUGINS", (*profiles.POD_PLUGINS, request.param))
        patched.setitem(profiles.DEFAULT_WEIGHTS, NAME, request.param.default_weight)
        importlib.reload(scheduler_config)
        reason_pages.all_pages.cache_clear()
        yield request.param
    importlib.reload(scheduler_config)
    reason_pages.all_pages.cache_clear()


@pytest.fixture(params=[UPSTREAM])
def index(request):
    """Two nodes in rack a, where one of two licences is left, and one in rack b, where none is."""
    index = PlacementIndex(request.param)
    for name in ("a1", "a2", "b1"):
        allocatable = (("pods", 10), (LICENCE, 10))
        index.add_target(Target(name=TargetName(name), labels={RACK: name[0]}, allocatable=allocatable))
    index.add(pod("on-a", priority=5), "a1")
    index.add(pod("on-b", priority=5), "b1")
    index.add(pod("also-on-b"), "b1")
    return index


@pytest.fixture
def engine(index, in_table):
    return Engine(index, profiles.pod_rules())


@pytest.fixture
def full(engine):
    engine.index.add(pod("also-on-a"), "a1")
    return engine


def verdict_on(explained, name):
    return next(verdict for verdict in explained.targets if verdict.name == name)


def feasible(workload, engine):
    found = filtering.run(workload, engine).feasible
    return [name for name, slot in sorted(engine.index.slots.by_name.items()) if found[slot]]


# Filter and score


@pytest.mark.parametrize("licences, names", [(0, ["a1", "a2", "b1"]), (1, ["a1", "a2"]), (2, [])])
def test_it_filters(engine, licences, names):
    assert feasible(pod("new", licences=licences), engine) == names


def test_nodes_outside_of_racks_are_not_limited(engine):
    for name in ("x", "y"):
        engine.index.add_target(Target(name=TargetName(name), labels={}, allocatable=(("pods", 10), (LICENCE, 10))))
    engine.index.add(pod("on-x", licences=9), "x")
    assert feasible(pod("new"), engine) == ["a1", "a2", "x", "y"]
    assert feasible(pod("new", licences=5), engine) == ["y"]
    assert verdict_on(explanation.explain(pod("new"), engine), "x").scores[NAME] == 10


def test_its_reason_is_counted_in_the_message(full):
    message = fit_error.sentence(filtering.run(pod("new"), full), full.index)
    assert message == "0/3 nodes are available: 3 node(s) were in racks with too few licences left."


def test_it_scores(engine):
    engine.index.remove("d/on-b")
    engine.index.remove("d/also-on-b")
    explained = explanation.explain(pod("new"), engine)
    assert [verdict_on(explained, name).scores[NAME] for name in ("a1", "a2", "b1")] == [5, 5, 10]


def test_its_evaluation_follows_the_changes_of_the_index(engine):
    index = engine.index
    chosen = []
    for change in (
        lambda: None,
        lambda: index.add(pod("third"), "a2"),
        lambda: index.remove("d/on-b"),
        lambda: index.add(pod("fourth"), "b1"),
    ):
        change()
        slot, _ = schedule_pod.choose(pod("new"), engine)
        chosen.append(index.slots.at(slot).name[0] if slot >= 0 else "")
    assert chosen == ["a", "", "b", ""]


def test_its_evaluation_is_the_same_after_every_change_that_is_undone(index):
    found = checked(RackLicences(), pod("new"), index)
    check_evidence(RackLicences, found)
    assert found.rejected == {"b1": "U node(s) were in racks with too few licences left"}
    assert found.raw == {"a1": 1, "a2": 1, "b1": 0}


# Explaining


def fixes_of(workload, engine):
    return {fix.change: fix.fits_on for fix in explanation.explain(workload, engine).fixes}


def test_an_explanation_shows_its_evidence_and_proposes_its_remedy(full):
    new = pod("new", priority=5)
    explained = explanation.explain(new, full)
    assert verdict_on(explained, "a2").failures == [
        Failure(
            "rack-licences",
            "node(s) were in racks with too few licences left",
            detail="requests 1, 0 of 2 are left",
            term=LICENCE,
            domain="rack=a",
            peers=("d/also-on-a", "d/on-a"),
        )
    ]
    assert not any("move" in fix.change for fix in explained.fixes), "what is moved would have no licence either"
    full.index.add_target(Target(name=TargetName("c1"), labels={RACK: "c"}, allocatable=(("pods", 1), (LICENCE, 10))))
    full.index.add(pod("takes no licence", licences=0), "c1")
    assert fixes_of(new, full)["move d/takes no licence away"] == ["c1"]
    assert schedule_pod.choose(pod("new"), full) == (-1, 0), "the remedies are only tried"


@pytest.mark.usefixtures("in_table")
def test_its_reason_has_a_page():
    assert CliRunner().invoke(main.cli, ["explain-rule", NAME], prog_name="bayplan").stdout == (
        "licences\n  rule    rack-licences\n  plugin  RackLicences\n"
        "  text    node(s) were in racks with too few licences left\n\n"
        "What it means\n  Pods of the rack use its licences.\n\nWhat to do\n  Buy more.\n"
    )


def test_without_the_table_nobody_knows_it():
    assert NAME not in scheduler_config.PLUGINS
    assert NAME not in [rule.name for rule in profiles.pod_rules()]
    assert "licences" not in [page.id for page in reason_pages.all_pages()]


# Requeueing


@pytest.mark.parametrize(
    "change, is_lifted",
    [
        (lambda index: index.remove("d/on-b"), True),
        (lambda index: index.remove("d/plain"), False),
        (lambda index: index.add(pod("another"), "a2"), False),
        (lambda index: index.add(pod("other", licences=0), "a2"), False),
        (lambda index: index.set_volume("v", Volume(name="v")), False),
    ],
    ids=["a licence is returned", "another pod leaves", "a licence is taken", "another pod comes", "a volume comes"],
)
def test_an_unschedulable_pod_is_evaluated_after_the_changes_that_may_lift_it(full, change, is_lifted):
    full.index.add(pod("plain", licences=0), "b1")
    evaluator = SimpleNamespace(
        fits=lambda workload, _nominations: schedule_pod.choose(workload, full)[0] >= 0,
        is_outdated=lambda _pending: False,
        verdicts=lambda workload: filtering.run(workload, full),
        pod_helped_by_preemption=lambda _equivalent, _nominations: None,
    )
    unschedulable = UnschedulablePods(full.index, evaluator, Nominations())
    unschedulable.add(PendingPod(None, pod("new")))
    change(full.index)
    assert [pending.key for pending in unschedulable.pop_schedulable()] == (["d/new"] if is_lifted else [])
    assert unschedulable.n_evaluations == is_lifted


# Preemption


@pytest.mark.parametrize("in_table", [RackLicences, CountedRackLicences], indirect=True)
def test_it_takes_part_in_preemption(full, in_table, monkeypatch):
    """Without a word by dry runs of the two nodes with victims, with its capacity constraint by sums."""
    calls, run = [], dry_run.dry_run
    monkeypatch.setattr(dry_run, "dry_run", lambda *given: calls.append(given) or run(*given))
    full.index.remove("d/also-on-b")
    full.index.add(pod("least-on-b", priority=-1), "b1")
    found = preemption.preempt(pod("new", priority=1), full)
    assert (found.target, found.victims) == ("b1", ("d/least-on-b",))
    assert len(calls) == (2 if in_table is RackLicences else 0)
    nominated = [(pod("nominated", priority=1), "b1")]
    found = preemption.preempt(pod("new", priority=1), full, nominated=nominated)
    assert (found.target, found.victims) == ("a1", ("d/also-on-a",))
    assert not preemption.preempt(pod("new", priority=-1), full).target


@pytest.mark.parametrize("in_table", [RackLicences, CountedRackLicences], indirect=True)
def test_outside_of_racks_only_other_rules_decide_on_victims(full, in_table):
    full.index.add_target(Target(name=TargetName("x"), labels={}, allocatable=(("pods", 2), (LICENCE, 10))))
    full.index.add(pod("on-x", priority=-2), "x")
    nominated = [(pod("nominated", licences=3, priority=1), "x")]
    found = preemption.preempt(pod("new", licences=5, priority=1), full, nominated=nominated)
    assert (found.target, found.victims) == ("x", ("d/on-x",))


@pytest.mark.parametrize("index", [DESIGN], indirect=True)
@pytest.mark.parametrize("in_table, victims", [
    (RackLicences, ()),
    (CountedRackLicences, ("d/on-a", "d/on-a2")),
], indirect=["in_table"])  # fmt: skip
def test_only_a_constraint_of_the_rack_names_victims_on_its_other_nodes(engine, victims):
    engine.index.remove_target("b1")
    engine.index.add(pod("on-a2"), "a2")
    assert preemption.preempt(pod("new", licences=2, priority=6), engine).victims == victims


# Configuration


def configured(index, profile):
    """An engine whose rules one profile of a scheduler configuration configures."""
    return Engine(index, profiles.pod_rules(scheduler_config.profile_of({"profiles": [profile]})))


def with_arguments(**arguments):
    return {"pluginConfig": [{"name": NAME, "args": arguments}]}


def scores(engine):
    """Of a node where two licences are left."""
    engine.index.add_target(Target(name=TargetName("c1"), labels={RACK: "c"}, allocatable=(("pods", 9), (LICENCE, 9))))
    return verdict_on(explanation.explain(pod("new"), engine), "c1").scores


@pytest.mark.usefixtures("in_table")
@pytest.mark.parametrize("profile, score", [
    ({}, 10),
    ({"plugins": {"score": {"enabled": [{"name": NAME, "weight": 7}]}}}, 14),
    ({"plugins": {"multiPoint": {"enabled": [{"name": NAME}]}}}, 2),
    (with_arguments(), 10),
    (with_arguments(licencesPerRack=None), 10),
    (with_arguments(licencesPerRack=4), 20),
])  # fmt: skip
def test_a_profile_sets_its_weight_and_its_arguments(index, profile, score):
    assert scores(configured(index, profile))[NAME] == score


@pytest.mark.usefixtures("in_table")
@pytest.mark.parametrize("point", ["multiPoint", "filter", "score"])
@pytest.mark.parametrize("name", [NAME, "*"])
def test_a_profile_disables_it_or_one_half_of_it(index, point, name):
    engine = configured(index, {"plugins": {point: {"disabled": [{"name": name}]}}})
    assert ("b1" in feasible(pod("new"), engine)) is (point != "score")
    assert scores(engine).get(NAME, 0) == (10 if point == "filter" else 0)
    assert (NAME in [rule.name for rule in engine.rules]) is (point != "multiPoint")


@pytest.mark.usefixtures("in_table")
def test_without_its_filter_a_rack_with_more_pods_than_licences_scores_nothing(index):
    index.add(pod("third-on-b"), "b1")
    engine = configured(index, {"plugins": {"filter": {"disabled": [{"name": NAME}]}}})
    assert verdict_on(explanation.explain(pod("new"), engine), "b1").scores[NAME] == 0


@pytest.mark.usefixtures("in_table")
@pytest.mark.parametrize("per_rack, names", [(0, []), (2, ["a1", "a2"]), (3, ["a1", "a2", "b1"])])
def test_its_arguments_reach_its_filter(index, per_rack, names):
    assert feasible(pod("new"), configured(index, with_arguments(licencesPerRack=per_rack))) == names


@pytest.mark.usefixtures("in_table")
@pytest.mark.parametrize("value, wrong", [
    ("three", 'expected a whole number, got the string "three"'),
    (-1, "Invalid value: -1: not in valid range [0, 100]"),
    (101, "Invalid value: 101: not in valid range [0, 100]"),
])  # fmt: skip
def test_mistyped_and_invalid_arguments_are_named(value, wrong):
    with pytest.raises(InputError) as found:
        scheduler_config.profile_of({"profiles": [with_arguments(licencesPerRack=value)]})
    path = "profiles[0].pluginConfig[0].args.licencesPerRack"
    assert str(found.value) == f"KubeSchedulerConfiguration: {path}: {wrong}"
