"""
How many of the planted problems each stage of the search for groups solves: see gen_planted.py.

usage: groups.py N [FAMILY…]   N problems of each family, or of some; writes groups.json
       groups.py check         groups.json as a table

All pods of a problem are placed together. One by one: in the order of the scheduling queue, each retried as long as
others are placed, with the rules of groups as terms of pods. The plain loops of gen_planted.py check every plan.
"""

import json
import sys
import time
from pathlib import Path

import gen_planted
import msgspec

from bayplan.engine.engine import Engine
from bayplan.grouping import search
from bayplan.grouping.problem import GroupProblem, GroupToPlace, Solved
from bayplan.grouping.search import SearchLimits
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.model.groups import MEMBER_OF
from bayplan.placing.pod_scheduler import PodScheduler
from bayplan.rules import profiles
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

RESULTS = Path(__file__).with_name("groups.json")
ONE_BY_ONE, GREEDY, REPAIR = "one by one", search.GREEDY, search.REPAIR


def problem_of(planted):
    """A planted problem as a GroupProblem: all pods together, those with the annotation in their groups."""
    index = PlacementIndex()
    for node in planted["nodes"]:
        index.add_target(targets.target_of_node(msgspec.convert(node, Node)))
    engine = Engine(index, profiles.pod_rules())
    pending = tuple(pods.waiting(msgspec.convert(pod, Pod)) for pod in planted["pods"])
    members = {}
    for pod in pending:
        if pod.group is not None:
            members.setdefault(pod.labels[MEMBER_OF], []).append(pod)
    groups = tuple(
        GroupToPlace(
            key=key,
            pods=tuple(pod.key for pod in some),
            min_members=some[0].group.min_members or len(some),
            topology_key=some[0].group.topology.required,
        )
        for key, some in members.items()
    )
    return GroupProblem(pods=pending, groups=groups, index=index, engine_of=lambda _: engine)


def one_by_one(problem):
    scheduler = PodScheduler(problem.engine_of, problem.index, (), lambda _: None)
    for pod in problem.pods:
        scheduler.add(pod)
    scheduler.schedule()
    return {key: placement.target for key, placement in scheduler.placements.items() if placement.target}


def solve(family, seed):
    """The first stage that solves a problem, "" if none does, with the seconds of processor time of the search."""
    planted = gen_planted.planted(family, seed)
    if not gen_planted.violations(planted, one_by_one(problem_of(planted))):
        return ONE_BY_ONE, 0.0
    began = time.process_time()
    found = search.solve(problem_of(planted), SearchLimits())
    seconds = time.process_time() - began
    if not isinstance(found, Solved):
        return "", seconds
    wrong = gen_planted.violations(planted, dict(found.plan.nodes))
    assert not wrong, (family, seed, wrong)
    return found.stage, seconds


def main():
    if sys.argv[1:] == ["check"]:
        show(json.loads(RESULTS.read_text()))
        return
    n, families = int(sys.argv[1]), sys.argv[2:] or list(gen_planted.FAMILIES)
    results = {"problems": n, "families": {}}
    for family in families:
        found = [solve(family, seed) for seed in range(n)]
        results["families"][family] = {
            "stages": {stage: sum(one == stage for one, _ in found) for stage in (ONE_BY_ONE, GREEDY, REPAIR, "")},
            "maxSeconds": round(max(seconds for _, seconds in found), 1),
        }
        show({**results, "families": {family: results["families"][family]}})
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


def show(results):
    for family, found in results["families"].items():
        stages = found["stages"]
        print(
            family,
            *(f"{stage or 'unsolved'}: {n}" for stage, n in stages.items()),
            f"{found['maxSeconds']} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
