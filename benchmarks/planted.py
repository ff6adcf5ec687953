"""
Solve the planted problems of gen_planted.py with the exact model, beside placing their pods one by one.

usage: planted.py [--seeds N] [--first SEED] [FAMILY …]   writes planted.json and the table in README.md
       planted.py --dry …                                 writes nothing

Both are measured in processor time of one thread, from the workloads to the answer; reading is not timed. A problem is
solved if `gen_planted.violations` finds nothing wrong with the plan and it took at most 10 s.
"""

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import gen_planted
import msgspec

from bayplan.engine.engine import Engine
from bayplan.grouping import exact, pending_groups
from bayplan.grouping.problem import GroupPlan, GroupProblem, ProvenImpossible, Solved
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.model.groups import MEMBER_OF
from bayplan.placing.pod_scheduler import PodScheduler
from bayplan.rules.profiles import pod_rules
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

HERE = Path(__file__).parent
SECONDS = 10
FAMILIES = tuple(gen_planted.FAMILIES)


def problem_of(planted):
    """A planted problem as the product has it."""
    index = PlacementIndex()
    for node in planted["nodes"]:
        index.add_target(targets.target_of_node(msgspec.convert(node, Node)))
    engine = Engine(index, pod_rules())
    workloads = [pods.workload_of(msgspec.convert(pod, Pod)) for pod in planted["pods"]]
    members = defaultdict(list)
    for workload in workloads:
        if workload.group is not None:
            members[workload.labels[MEMBER_OF]].append(workload)
    groups = tuple(pending_groups.pending_group(key, some, (), {}).to_place() for key, some in members.items())
    return GroupProblem(pods=tuple(workloads), groups=groups, index=index, engine_of=lambda _: engine)


def solve_exactly(planted):
    """What became of it, and how long it took."""
    problem = problem_of(planted)
    start = time.process_time()
    answer = exact.solve(problem, GroupPlan())
    seconds = time.process_time() - start
    assert not isinstance(answer, ProvenImpossible), planted["name"]
    if not isinstance(answer, Solved):
        return "undecided", seconds
    assert gen_planted.violations(planted, answer.plan.nodes) == [], planted["name"]
    return "solved" if seconds <= SECONDS else "late", seconds


def place_one_by_one(planted):
    """The same for the scheduling queue, which places one pod after another and tries again what did not fit."""
    problem = problem_of(planted)
    start = time.process_time()
    scheduler = PodScheduler(problem.engine_of, problem.index, (), lambda _: None, preempts=False)
    for workload in problem.pods:
        scheduler.add(workload)
    scheduler.schedule()
    plan = {key: placement.target for key, placement in scheduler.placements.items() if placement.target}
    is_solved = gen_planted.violations(planted, plan) == []
    return "solved" if is_solved else "unsolved", time.process_time() - start


def measure(family, seeds):
    rows = [(gen_planted.planted(family, seed), seed) for seed in seeds]
    exactly = [solve_exactly(planted) for planted, _ in rows]
    one_by_one = [place_one_by_one(planted) for planted, _ in rows]
    seconds = [taken for _, taken in exactly]
    return {
        "family": family,
        "problems": len(rows),
        "seeds": [seeds[0], seeds[-1]],
        "solved": sum(what == "solved" for what, _ in exactly),
        "unsolvedSeeds": [seed for (_, seed), (what, _) in zip(rows, exactly, strict=True) if what != "solved"],
        "oneByOne": sum(what == "solved" for what, _ in one_by_one),
        "medianSeconds": round(statistics.median(seconds), 2),
        "p90Seconds": round(sorted(seconds)[len(seconds) * 9 // 10], 2),
        "mostSeconds": round(max(seconds), 2),
    }


def _cell(row, key):
    of = f" of {row['podGroupCycleProblems']}" if key == "podGroupCycle" and key in row else ""
    return f"{row.get(key, '–')}{of}"


def table(results):
    lines = [
        "| family | problems | solved | kube-scheduler's pod-group cycle | one by one | median s | 90 % s | most s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results:
        keys = (
            "family",
            "problems",
            "solved",
            "podGroupCycle",
            "oneByOne",
            "medianSeconds",
            "p90Seconds",
            "mostSeconds",
        )
        lines.append("| " + " | ".join(_cell(row, key) for key in keys) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--dry", action="store_true")
    chosen = parser.parse_args()
    results = []
    for family in chosen.families:
        results.append(measure(family, range(chosen.first, chosen.first + chosen.seeds)))
        print(results[-1], file=sys.stderr, flush=True)
        if not chosen.dry:
            write(results)
    print(table(results))


def write(results):
    """Write the results of some families; the others, and what planted_peer.py found, are kept."""
    known = {row["family"]: row for row in json.loads((HERE / "planted.json").read_text(encoding="utf-8"))}
    for row in results:
        known[row["family"]] = known.get(row["family"], {}) | row
    results = [known[family] for family in FAMILIES if family in known]
    (HERE / "planted.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    readme = HERE / "README.md"
    head, _, rest = readme.read_text(encoding="utf-8").partition("<!-- planted: written by planted.py -->\n")
    _, _, tail = rest.partition("<!-- end of planted -->")
    written = f"{head}<!-- planted: written by planted.py -->\n{table(results)}\n<!-- end of planted -->{tail}"
    readme.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
