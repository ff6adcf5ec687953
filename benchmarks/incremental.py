"""
The cost of a single change of a large cluster, compared with building the whole index again.

As a program, `python benchmarks/incremental.py NODES PODS` measures one cluster. After each change one pod of each of a
hundred templates is decided, so that the work that caches defer is counted too.
"""

import gc
import json
import pathlib
import statistics
import sys
import time

import msgspec
from measuring import last_line

TITLE = "Cost of one change"
HEAD = ("times faster than a rebuild", "ms each", "µs for the next decision", "change")
TEMPLATES = 2000
ASKED = 100  # templates with a decision after each change
REPEATS = 5
DELETED = 10_000


def rows(scale):
    _, nodes, pods = scale("incremental.py 15000 300000")
    measured = last_line(pathlib.Path(__file__), nodes, pods)
    for change, (seconds, decision) in measured["changes"].items():
        yield {
            "change": f"{change} among {int(nodes):,} nodes and {int(pods):,} pods",
            "seconds": seconds,
            "decision": decision,
            "rebuild": measured["rebuild"],
        }


def cells(row):
    ratio = row["rebuild"] / row["seconds"]
    return f"{ratio:,.0f}", f"{row['seconds'] * 1e3:,.3f}", f"{row['decision'] * 1e6:,.0f}", row["change"]


def main():
    n_nodes, n_pods = map(int, sys.argv[1:3])
    cluster = LargeCluster(n_nodes, n_pods)
    start = time.perf_counter()
    cluster.build()
    rebuild = time.perf_counter() - start
    gc.collect()
    gc.freeze()
    gc.disable()
    cluster.ask()
    cluster.ask()
    changes = {
        "adding a node": cluster.add_node,
        "removing a node with its pods": cluster.remove_node,
        "changing a node's labels": cluster.relabel_node,
        "relabelling a namespace": cluster.relabel_namespace,
        f"deleting {cluster.n_deleted:,} pods": cluster.delete_pods,
    }
    print(
        json.dumps(
            {"rebuild": rebuild, "changes": {name: cluster.measured(change) for name, change in changes.items()}}
        )
    )


class LargeCluster:
    """Pods of many templates over many nodes, in an index that has made decisions for some of them."""

    def __init__(self, n_nodes, n_pods):
        from gen_templates import node, pod

        from bayplan.mapping import pods, targets
        from bayplan.rules import profiles
        from bayplan.wire.nodes import Node
        from bayplan.wire.pods import Pod

        def target(i):
            return targets.target_of_node(msgspec.convert(node(i), Node))

        def workload(i):
            found = pods.workload_of(msgspec.convert(pod(i, i % TEMPLATES, TEMPLATES), Pod))
            return msgspec.structs.replace(found, namespace=f"team-{i % TEMPLATES % 40}")

        self.target, self.n_nodes, self.rules = target, n_nodes, profiles.pod_rules()
        self.targets = [target(i) for i in range(n_nodes)]
        self.running = [(workload(i), f"node-{i * 7 % n_nodes:05d}") for i in range(n_pods)]
        self.asking = [workload(n_pods + i) for i in range(ASKED)]
        self.next_node, self.next_deleted, self.n_relabelled = n_nodes, 0, 0
        self.n_deleted = min(DELETED, n_pods // (2 * REPEATS))
        self.index = self.engine = None

    def build(self):
        from bayplan.engine.engine import Engine
        from bayplan.indexing.placement_index import PlacementIndex

        self.index = PlacementIndex()
        self.engine = Engine(self.index, self.rules)
        for target in self.targets:
            self.index.add_target(target)
        for i in range(40):
            self.index.set_namespace(f"team-{i}", {"team": f"team-{i}"})
        for workload, name in self.running:
            self.index.add(workload, name)

    def ask(self):
        from bayplan import schedule_pod

        for workload in self.asking:
            schedule_pod.choose(workload, self.engine)

    def measured(self, change):
        """The median seconds of the change, and of one decision after it."""
        changing, deciding = [], []
        for _ in range(REPEATS):
            start = time.perf_counter()
            change()
            changing.append(time.perf_counter() - start)
            start = time.perf_counter()
            self.ask()
            deciding.append((time.perf_counter() - start) / ASKED)
        return statistics.median(changing), statistics.median(deciding)

    def add_node(self):
        self.index.add_target(self.target(self.next_node))
        self.next_node += 1

    def remove_node(self):
        self.next_node -= 1
        self.index.remove_target(f"node-{self.next_node - REPEATS:05d}")

    def relabel_node(self):
        self.n_relabelled += 1
        target = self.index.slots.at(self.n_relabelled)
        self.index.update_target(msgspec.structs.replace(target, labels={**target.labels, "disk": "fast"}))

    def relabel_namespace(self):
        self.n_relabelled += 1
        self.index.set_namespace("team-0", {"team": "team-0", "version": str(self.n_relabelled)})

    def delete_pods(self):
        first = self.next_deleted
        self.next_deleted += self.n_deleted
        for workload, _ in self.running[first : self.next_deleted]:
            if workload.key in self.index.records:
                self.index.remove(workload.key)


if __name__ == "__main__":
    main()
