"""
Memory over many rollouts: each replaces the pods of every template by those of a new version, one at a time.

As a program, `python benchmarks/rollouts.py ROLLOUTS TEMPLATES NODES` runs them and prints the memory during the run.
"""

import gc
import json
import pathlib
import sys

import msgspec
from gen_templates import HOST, node, pod
from loading import own_memory
from measuring import last_line

TITLE = "Memory over rollouts"
HEAD = ("last over first", "MB after 40, 70 and 100 % of the rollouts", "input")
REPLICAS = 3
LOOKS = (0.4, 0.7, 1.0)  # caches have reached their full size by then
VERSION = "pod-template-hash"


def rows(scale):
    words = scale("rollouts.py 50 1000 1000")
    found = last_line(pathlib.Path(__file__), *words[1:])
    yield {"input": " ".join(words), **found}


def cells(row):
    each = " · ".join(f"{megabytes:,.0f}" for megabytes in row["megabytes"])
    return f"{row['megabytes'][-1] / row['megabytes'][0]:.3f}", each, f"`{row['input']}`"


def main():
    from bayplan import schedule_pod
    from bayplan.engine.engine import Engine
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.mapping import targets
    from bayplan.rules import profiles
    from bayplan.wire.nodes import Node

    n_rollouts, n_templates, n_nodes = map(int, sys.argv[1:4])
    index = PlacementIndex()
    engine = Engine(index, profiles.pod_rules())
    for i in range(n_nodes):
        index.add_target(targets.target_of_node(msgspec.convert(node(i), Node)))
    looks = {max(1, int(share * n_rollouts)) for share in LOOKS}
    megabytes = []
    for rollout in range(1, n_rollouts + 1):
        for template in range(n_templates):
            for replica in range(REPLICAS):
                workload = replica_of(template, n_templates, rollout, replica)
                slot, _ = schedule_pod.choose(workload, engine)
                index.add(workload, index.slots.at(slot).name)
                if rollout > 1:
                    index.remove(f"default/{name(template, rollout - 1, replica)}")
        if rollout in looks:
            gc.collect()
            megabytes.append(own_memory())
    print(json.dumps({"megabytes": megabytes}))


def name(template, rollout, replica):
    return f"app-{template}-v{rollout}-{replica}"


def replica_of(template, n_templates, rollout, replica):
    """One pod of a template's version, with a term that only this version has."""
    from bayplan.mapping import pods
    from bayplan.wire.pods import Pod

    text = pod(replica, template, n_templates)
    text["metadata"]["name"] = name(template, rollout, replica)
    text["metadata"]["labels"][VERSION] = f"{template}-v{rollout}"
    own = {"labelSelector": {}, "topologyKey": HOST, "matchLabelKeys": [VERSION]}
    text["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].append(own)
    return pods.workload_of(msgspec.convert(text, Pod))


if __name__ == "__main__":
    main()
