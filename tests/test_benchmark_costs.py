"""
The cost of the benchmark's decisions, counted in full evaluations and built rankings, never in seconds.

Each count would be in the hundreds if a fast path were no longer taken, although no placement would differ.
"""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bayplan import schedule_pod
from bayplan.engine.engine import Engine
from bayplan.engine.node_partitions import NodeKeys
from bayplan.engine.ranking import ClassRanking
from bayplan.indexing.peer_index import PeerIndex
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.model.labels import equals
from bayplan.model.terms import PeerTerm, TermPart
from bayplan.rules import profiles
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

GENERATORS = Path(__file__).parents[1] / "benchmarks"
NODES, EXISTING, PENDING = 200, 40, 100
# The number of equivalence classes in each input.
SHAPES = {"anti": 1, "aff": 1, "pref": 1, "prefanti": 1, "mixed": 5, "spread": 1, "plain": 1}


class Counted:
    """How often a method is called."""

    def __init__(self, monkeypatch, owner, name):
        self.n = 0
        method = getattr(owner, name)

        def counting(*arguments):
            self.n += 1
            return method(*arguments)

        monkeypatch.setattr(owner, name, counting)


class Bench:
    """One benchmark input with its existing pods in the index."""

    def __init__(self, shape):
        command = [sys.executable, GENERATORS / "gen_pods.py", shape, *map(str, (NODES, EXISTING, PENDING))]
        given = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        self.index = PlacementIndex()
        self.engine = Engine(self.index, profiles.pod_rules())
        self.targets = [targets.target_of_node(msgspec.convert(node, Node)) for node in given["nodes"]]
        for target in self.targets:
            self.index.add_target(target)
        for pod in given["init"]:
            self.index.add(workload_of(pod), pod["spec"]["nodeName"])
        self.pending = [workload_of(pod) for pod in given["pods"]]

    def place(self, n):
        for _ in range(n):
            workload = self.pending.pop(0)
            slot, _ = schedule_pod.choose(workload, self.engine)
            self.index.add(workload, self.index.slots.at(slot).name)

    def choose(self, n_classes):
        for workload in self.pending[:n_classes]:
            schedule_pod.choose(workload, self.engine)


def workload_of(pod):
    return pods.workload_of(msgspec.convert(pod, Pod))


@pytest.mark.parametrize(("shape", "n_classes"), SHAPES.items())
def test_all_pods_of_an_equivalence_class_share_one_full_evaluation(shape, n_classes, monkeypatch):
    built, key_rebuilds = Counted(monkeypatch, ClassRanking, "_build"), Counted(monkeypatch, NodeKeys, "rebuild")
    bench = Bench(shape)
    bench.place(PENDING)
    n_applicable_rules = 8
    assert bench.engine.evaluations.n_full <= n_classes * n_applicable_rules
    assert built.n == n_classes
    assert key_rebuilds.n <= 2 * n_classes  # one of the ranking, one of the order that templates share


@pytest.mark.parametrize(("shape", "n_classes"), SHAPES.items())
def test_only_an_added_or_removed_node_is_evaluated_again(shape, n_classes):
    bench = Bench(shape)
    bench.place(20)
    bench.choose(n_classes)
    n_full = bench.engine.evaluations.n_full
    newcomer = msgspec.structs.replace(
        bench.targets[0], name="new", labels={**bench.targets[0].labels, "kubernetes.io/hostname": "new"}
    )
    bench.index.add_target(newcomer)
    bench.choose(n_classes)
    assert bench.engine.evaluations.n_full == n_full
    bench.index.remove_target("new")
    bench.choose(n_classes)
    # Its pods were counted in domains that are gone: rules about peers evaluate all nodes again, once for each class.
    assert bench.engine.evaluations.n_full <= n_full + n_classes


@pytest.mark.parametrize(("shape", "n_classes"), SHAPES.items())
def test_removed_pods_are_subtracted_one_by_one(shape, n_classes):
    bench = Bench(shape)
    bench.place(20)
    bench.choose(n_classes)
    n_full = bench.engine.evaluations.n_full
    for key in list(bench.index.records)[:20]:
        bench.index.remove(key)
    bench.choose(n_classes)
    assert bench.engine.evaluations.n_full == n_full


def test_relabelling_a_namespace_that_no_term_selects_evaluates_nothing(monkeypatch):
    bench = Bench("aff")
    bench.place(5)
    bench.choose(1)
    n_full, recounted = bench.engine.evaluations.n_full, Counted(monkeypatch, PeerIndex, "_matched_by")
    bench.index.set_namespace("default", {"team": "other"})
    bench.choose(1)
    assert bench.engine.evaluations.n_full == n_full
    assert not recounted.n


@pytest.mark.parametrize("shape", SHAPES)
def test_a_label_that_is_first_selected_moves_no_pod_without_it(shape):
    bench, moved = Bench(shape), []
    n_classes = len(bench.index.peer_index.classes)
    bench.index.peer_index.moved = lambda rows, class_id: moved.extend(rows)
    bench.index.peer_index.hold(PeerTerm((TermPart(equals({"unused": "x"}), None),)))
    assert not moved
    assert len(bench.index.peer_index.classes) == n_classes
