"""The random questions are answerable, varied, and make the presets matter."""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from reference import fleet
from reference.fleet import strategies
from reference.fleet.objects import AGGREGATED, DUPLICATED, Binding

RULES = (
    "ClusterAffinity",
    "APIEnablement",
    "TaintToleration",
    "SpreadConstraint",
    "ClusterEviction",
    "WorkloadAffinity",
    "WorkloadAntiAffinity",
    "ClusterDeletion",
)


def outcome(question, **options):
    answer = fleet.answer({**question, "options": {**question["options"], **options}})
    clusters = sorted((target["name"], target["replicas"]) for target in answer["clusters"])
    return clusters, answer["observedAffinityName"], answer["reason"], answer["verdicts"]


def seen(questions):
    """How often each outcome came up."""
    counts = Counter()
    for question in questions:
        answer = fleet.answer(question)
        counts[answer["reason"] or "placed"] += 1
        counts["later term"] += bool(answer["errors"] and not answer["reason"])
        for verdict in answer["verdicts"].values():
            counts.update({failure["rule"] for failure in verdict["failures"]})
            counts["preferred"] += verdict.get("score", 0) not in (0, 100)
        presets = [outcome(question, semantics=name, switches={}) for name in ("upstream", "design")]
        counts["presets differ"] += presets[0] != presets[1]
        strategy = Binding(question["binding"]).strategy
        counts[strategy] += not answer["reason"]
    return counts


def test_random_questions_reach_every_rule():
    counts = seen(strategies.seeded(seed) for seed in range(600))
    assert not [rule for rule in RULES if counts[rule] < 10]
    assert min(counts[reason] for reason in ("placed", "NoClusterFit", "SchedulerError")) > 50
    assert min(counts[name] for name in ("Unschedulable", "later term", "preferred")) > 5
    assert min(counts[strategy] for strategy in (DUPLICATED, "StaticWeight", "DynamicWeight", AGGREGATED)) > 20
    assert counts["presets differ"] > 20


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.questions())
def test_the_order_of_clusters_changes_nothing(question):
    turned = {**question, "clusters": question["clusters"][::-1]}
    assert outcome(question) == outcome(turned)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.questions())
def test_the_order_of_bindings_changes_no_place(question):
    turned = {**question, "bindings": question["bindings"][::-1]}
    assert outcome(question)[:3] == outcome(turned)[:3]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.questions())
def test_divided_replicas_add_up_and_fit(question):
    binding, answer = Binding(question["binding"]), fleet.answer(question)
    if answer["reason"] or not binding.is_divisible or binding.strategy == DUPLICATED:
        return
    if question["binding"]["spec"]["placement"].get("clusterAffinities") == []:
        return
    assert sum(target["replicas"] for target in answer["clusters"]) == binding.replicas
    for target in answer["clusters"]:
        verdict = answer["verdicts"][target["name"]]
        assert verdict["fits"]
        assert binding.strategy == "StaticWeight" or target["replicas"] <= verdict["available"]
