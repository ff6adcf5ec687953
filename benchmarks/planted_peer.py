"""
How many planted problems kube-scheduler's own pod-group cycle solves: the real one on a real API server, gates on.

usage: planted_peer.py [--seeds N] [FAMILY…]   the first N problems of each family, or of some; written by planted.py

A problem without groups is one gang of all its pods. Rules of groups are said as Kubernetes has them: the domain in the
PodGroup, anti-affinity between groups as anti-affinity between pods of different groups. A problem counts as solved if
all pods are bound within 10 s and the plan keeps every rule. It ends early once each pod was found unschedulable and
the scheduler has had three more seconds.
"""

import argparse
import asyncio
import copy
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests"), str(HERE)]

import gen_planted  # noqa: E402
import planted as benchmark  # noqa: E402

from live.admin import Admin  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
SERVER = Options(
    flags=(GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"), high_throughput=True
)  # fmt: skip
GANG = "planted.example.com/gang"  # the label with the group of a pod
SECONDS, MORE_SECONDS, POLL_SECONDS = 10.0, 3.0, 0.2


def translated(problem, namespace):
    """The PodGroups and pods of a problem, in a namespace of its own: kube-scheduler mixes up pods of one name."""
    annotated = {
        pod["metadata"]["name"]: pod["metadata"].get("annotations", {}).get(gen_planted.GROUP)
        for pod in problem["pods"]
    }
    has_groups = any(annotated.values())
    pods, groups = [], {}
    for pod in copy.deepcopy(problem["pods"]):
        annotations = pod["metadata"].pop("annotations", {})
        name = annotated[pod["metadata"]["name"]] if has_groups else "all"
        pod["metadata"]["namespace"] = namespace
        if name:
            key = annotations.get(gen_planted.GROUP_TOPOLOGY)
            groups.setdefault(name, [key, 0])[1] += 1
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}
            pod["metadata"].setdefault("labels", {})[GANG] = name
            _add_rules(pod, name, json.loads(annotations.get(gen_planted.GROUP_AFFINITY, "{}")))
        pods.append(pod)
    return [pod_group(name, namespace, key, n) for name, (key, n) in groups.items()], pods


def _add_rules(pod, group, rules):
    """Anti-affinity between groups as that of their pods."""
    for term in rules.get("groupAntiAffinity", {}).get(gen_planted.REQUIRED, ()):
        selector = copy.deepcopy(term["labelSelector"])
        others = {"key": GANG, "operator": "NotIn", "values": [group]}
        selector.setdefault("matchExpressions", []).extend([{"key": GANG, "operator": "Exists"}, others])
        affinity = pod["spec"].setdefault("affinity", {}).setdefault("podAntiAffinity", {})
        affinity.setdefault(gen_planted.REQUIRED, []).append({**term, "labelSelector": selector})


def pod_group(name, namespace, key, n):
    constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"gang": {"minCount": n}}, **constraints},
    }


async def solve(admin, problem):
    """Whether the problem is solved, and after how many seconds that is known; None if the scheduler says nothing."""
    namespace = problem["name"]
    groups, pods = translated(problem, namespace)
    await admin.create_namespace(namespace)
    await admin.create_all(problem["nodes"])
    await admin.create_all(groups, namespace=namespace)
    await admin.create_all(pods, namespace=namespace)
    began, failed_at = time.monotonic(), None
    while True:
        found = await admin.items("pods", namespace)
        now = time.monotonic()
        plan = {f"default/{one['metadata']['name']}": one["spec"].get("nodeName") for one in found}
        if all(plan.values()) and len(plan) == len(pods):
            broken = gen_planted.violations(problem, plan)
            return not broken, now - began
        if all(_is_unschedulable(one) for one in found if not one["spec"].get("nodeName")):
            failed_at = failed_at or now
            if now - failed_at > MORE_SECONDS:
                return False, now - began
        if now - began > SECONDS:
            is_tried = any(one["spec"].get("nodeName") or _is_unschedulable(one) for one in found)
            return False if is_tried else None, now - began
        await asyncio.sleep(POLL_SECONDS)


def _is_unschedulable(pod):
    conditions = pod.get("status", {}).get("conditions", ())
    return any((one["type"], one["status"]) == ("PodScheduled", "False") for one in conditions)


def easy():
    """A problem with ample room, in which the groups of group-rules are in one domain each."""
    problem = gen_planted.planted("group-rules", 0) | {"name": "easy"}
    for pod in problem["pods"]:
        pod["metadata"].get("annotations", {}).pop(gen_planted.GROUP_AFFINITY, None)
        pod["spec"].pop("affinity", None)
    for node in problem["nodes"]:
        node["status"]["allocatable"] |= {"cpu": "1000000m", "pods": "1000"}
        node["status"]["capacity"] = node["status"]["allocatable"]
    return problem


async def measure(server, admin, family, n):
    found = []
    for seed in range(n):
        solved, seconds = await solve(admin, gen_planted.planted(family, seed))
        server.clear()
        if solved is None:  # it hangs, or the machine is too busy: another one gets the problem again
            server.recover()
            server.start_scheduler(flags=(GATES,))
            solved, seconds = await solve(admin, gen_planted.planted(family, seed))
            server.clear()
        found.append(solved)
        print(family, seed, solved, f"{seconds:.1f} s", file=sys.stderr, flush=True)
        await asyncio.sleep(0.5)  # the scheduler sees what is gone
    assert None not in found, "the scheduler tries no group"
    return {"family": family, "podGroupCycle": found.count(True), "podGroupCycleProblems": n}


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=list(gen_planted.FAMILIES))
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--dry", action="store_true")
    chosen = parser.parse_args()
    with KubeServer(SERVER) as server:
        server.start_scheduler(flags=(GATES,))
        async with Admin.of(server) as admin:
            solved, _ = await solve(admin, easy())
            assert solved, "groups are not scheduled at all"
            server.clear()
            for family in chosen.families:
                row = await measure(server, admin, family, chosen.seeds)
                print(row, flush=True)
                if not chosen.dry:
                    benchmark.write([row])


if __name__ == "__main__":
    asyncio.run(main())
