"""The search for plans: what it finds keeps every rule, and what it excludes by counting cannot be."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.grouping import search
from bayplan.grouping.problem import GroupPlan, ProvenImpossible, Solved, Undecided
from bayplan.grouping.search import SearchLimits
from reference import groups as reference_implementation

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import gen_planted  # noqa: E402
import groups as benchmark  # noqa: E402

HOST, RACK, ZONE = "kubernetes.io/hostname", "rack", "zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FAMILIES_AND_SEEDS = [(family, seed) for family in gen_planted.FAMILIES for seed in range(5)]


@pytest.mark.parametrize("family, seed", FAMILIES_AND_SEEDS)
def test_plans_of_planted_problems_keep_every_rule_and_none_is_said_to_be_impossible(family, seed):
    planted = gen_planted.planted(family, seed)
    problem = benchmark.problem_of(planted)
    found = search.solve(problem, SearchLimits(steps_per_pod=20, min_steps=600))
    assert not problem.index.records, "the search leaves no trace"
    if isinstance(found, Solved):
        assert gen_planted.violations(planted, dict(found.plan.nodes)) == []
    else:
        assert isinstance(found, Undecided)
        assert found.reason, "counting does not exclude a plan that exists"
        best = dict(found.best.nodes)
        assert len(best) < len(planted["pods"])


def test_the_same_problem_has_the_same_plan():
    planted = gen_planted.planted("mutual-anti-affinity", 2)
    plans = [search.solve(benchmark.problem_of(planted)) for _ in range(2)]
    assert plans[0] == plans[1]


def test_a_solver_that_is_given_decides_what_the_search_does_not():
    planted = gen_planted.planted("tight", 0)
    problem, asked = benchmark.problem_of(planted), []

    def exact(given, hint):
        asked.append((given, hint))
        return Solved(GroupPlan(planted["plan"]), "exact")

    found = search.solve(problem, SearchLimits(steps_per_pod=0, min_steps=200), exact)
    assert found.stage == "exact"
    assert asked[0][0] is problem
    assert set(asked[0][1].nodes) < set(planted["plan"])


def test_a_solver_that_is_given_is_not_asked_where_the_search_finds_a_plan():
    planted = gen_planted.planted("tight", 1)

    def exact(_given, _hint):
        raise AssertionError

    assert search.solve(benchmark.problem_of(planted), exact=exact).stage == search.GREEDY


def test_a_proof_is_an_answer():
    planted = gen_planted.planted("tight", 0)
    proof = ProvenImpossible(())
    limits = SearchLimits(steps_per_pod=0, min_steps=200)
    assert search.solve(benchmark.problem_of(planted), limits, lambda _, __: proof) is proof


# Small cases beside trying everything

nodes = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([500, 1000, 2000])), min_size=1, max_size=4)
rules = st.fixed_dictionaries(
    {},
    optional={
        "topology": st.sampled_from([RACK, HOST]),
        "near": st.tuples(st.sampled_from([HOST, RACK]), st.sampled_from("xy")),
        "apart": st.tuples(st.sampled_from([HOST, RACK]), st.sampled_from("xyz"), st.sampled_from([None, ["other"]])),
        "leader": st.just("z"),  # the value of `app` of the first member
        "groups apart": st.tuples(st.sampled_from([HOST, RACK]), st.sampled_from("xy")),
        "groups near": st.tuples(st.sampled_from([HOST, RACK]), st.sampled_from("xy")),
    },
)
gangs = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([400, 500, 900]), st.sampled_from("xy"), rules, st.booleans()),
    min_size=1,
    max_size=2,
)


def scene_of(nodes, gangs):
    manifests = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{i}", "labels": {HOST: f"n{i}", RACK: rack}},
            "status": {"allocatable": {"cpu": f"{cpu}m", "memory": "8Gi", "pods": "9"}},
        }
        for i, (rack, cpu) in enumerate(nodes)
    ]
    found = []
    for number, (times, cpu, app, rule, is_partial) in enumerate(gangs):
        annotations = {"bayplan.io/group": f"g{number}", "bayplan.io/group-min": str(max(1, times - is_partial))}
        if "topology" in rule:
            annotations["bayplan.io/group-topology"] = rule["topology"]
        between = {
            side: {REQUIRED: [term(*rule[name])]}
            for name, side in (("groups apart", "groupAntiAffinity"), ("groups near", "groupAffinity"))
            if name in rule
        }
        if between:
            annotations["bayplan.io/group-affinity"] = json.dumps(between)
        affinity = {
            side: {REQUIRED: [term(*rule[name])]}
            for name, side in (("near", "podAffinity"), ("apart", "podAntiAffinity"))
            if name in rule
        }
        for i in range(times):
            container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{cpu}m"}}}
            own = rule.get("leader", app) if i == 0 else app
            metadata = {"name": f"g{number}-{i}", "namespace": "default", "labels": {"app": own}}
            found.append({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**metadata, "annotations": annotations},
                "spec": {"containers": [container], "affinity": affinity},
            })  # fmt: skip
    return {"nodes": manifests, "pods": found}


def term(key, app, namespaces=None):
    scope = {"namespaces": namespaces} if namespaces else {}
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **scope}


@pytest.mark.parametrize(
    ("leader", "apart"),
    [
        ("z", ("z", None)),  # only the first member is selected, so the others may share a node
        ("x", ("x", ["other"])),  # the namespace of none of them
    ],
)
def test_counting_knows_which_members_repel_each_other(leader, apart):
    rule = {"apart": (HOST, *apart), "leader": leader}
    found = search.solve(benchmark.problem_of(scene_of([("a", 2000), ("a", 500)], [(4, 500, "x", rule, False)])))
    assert isinstance(found, Solved)


@settings(max_examples=60, deadline=None)
@given(nodes, gangs)
def test_plans_keep_all_rules_and_counting_excludes_none_that_exists(nodes, gangs):
    scene = scene_of(nodes, gangs)
    found = search.solve(benchmark.problem_of(scene))
    if isinstance(found, Solved):
        assert reference_implementation.violations(scene, dict(found.plan.nodes)) == []
        return
    assert isinstance(found, Undecided)
    if not found.reason and len(scene["pods"]) <= 4:
        groups = {pod["metadata"]["annotations"]["bayplan.io/group"] for pod in scene["pods"]}
        best = reference_implementation.best_plan(scene)
        assert {name.partition("/")[2].split("-")[0] for name in best} != groups, f"there is a plan: {best}"
