"""
The benchmark's decisions cost what they should: counted in looks at all targets and rankings begun, never in seconds.

Each count would be hundreds if a fast path stopped being taken, and no placement would differ.
"""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bayplan import schedule_pod
from bayplan.engine.ranking import ClassRanking, NodeKeys
from bayplan.indexing.peer_index import PeerIndex
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import nodes, pods
from bayplan.model.labels import equals
from bayplan.model.terms import PeerTerm, TermPart
from bayplan.rules import profiles
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

GENERATORS = Path(__file__).parents[1] / "benchmarks"
NODES, EXISTING, PENDING = 200, 40, 100
KINDS = {"anti": 1, "aff": 1, "pref": 1, "prefanti": 1, "mixed": 5, "spread": 1, "plain": 1}  # of pods in each input


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
    """One input of the benchmark, its existing pods in the index."""

    def __init__(self, kind):
        command = [sys.executable, GENERATORS / "gen_pods.py", kind, *map(str, (NODES, EXISTING, PENDING))]
        given = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        self.index, self.rules = PlacementIndex(), profiles.pod_rules()
        self.targets = [nodes.target_of(msgspec.convert(node, Node)) for node in given["nodes"]]
        for target in self.targets:
            self.index.add_target(target)
        for pod in given["init"]:
            self.index.add(workload(pod), pod["spec"]["nodeName"])
        self.waiting = [workload(pod) for pod in given["pods"]]

    def place(self, n):
        for _ in range(n):
            asked = self.waiting.pop(0)
            slot, _ = schedule_pod.choose(asked, self.index, self.rules)
            self.index.add(asked, self.index.slots.at(slot).name)

    def ask(self, n_kinds):
        for asked in self.waiting[:n_kinds]:
            schedule_pod.choose(asked, self.index, self.rules)


def workload(pod):
    return pods.workload_of(msgspec.convert(pod, Pod))


@pytest.mark.parametrize(("kind", "n_kinds"), KINDS.items())
def test_all_pods_of_a_kind_share_one_look_at_all_nodes(kind, n_kinds, monkeypatch):
    begun, looks = Counted(monkeypatch, ClassRanking, "_begin"), Counted(monkeypatch, NodeKeys, "look")
    bench = Bench(kind)
    bench.place(PENDING)
    rules_with_something_to_say = 8
    assert bench.index.evaluations.n_full <= n_kinds * rules_with_something_to_say
    assert begun.n == n_kinds
    assert looks.n == n_kinds


@pytest.mark.parametrize(("kind", "n_kinds"), KINDS.items())
def test_a_node_that_comes_or_goes_is_looked_at_alone(kind, n_kinds):
    bench = Bench(kind)
    bench.place(20)
    bench.ask(n_kinds)
    n_full = bench.index.evaluations.n_full
    newcomer = msgspec.structs.replace(
        bench.targets[0], name="new", labels={**bench.targets[0].labels, "kubernetes.io/hostname": "new"}
    )
    bench.index.add_target(newcomer)
    bench.ask(n_kinds)
    assert bench.index.evaluations.n_full == n_full
    bench.index.remove_target("new")
    bench.ask(n_kinds)
    # Who came and went on it before did so in domains that are gone: rules about peers look again, once for each kind.
    assert bench.index.evaluations.n_full <= n_full + n_kinds


@pytest.mark.parametrize(("kind", "n_kinds"), KINDS.items())
def test_pods_that_go_are_taken_off_one_by_one(kind, n_kinds):
    bench = Bench(kind)
    bench.place(20)
    bench.ask(n_kinds)
    n_full = bench.index.evaluations.n_full
    for key in list(bench.index.records)[:20]:
        bench.index.remove(key)
    bench.ask(n_kinds)
    assert bench.index.evaluations.n_full == n_full


def test_relabelling_a_namespace_nobody_asks_about_costs_no_look(monkeypatch):
    bench = Bench("aff")
    bench.place(5)
    bench.ask(1)
    n_full, recounted = bench.index.evaluations.n_full, Counted(monkeypatch, PeerIndex, "_matched_by")
    bench.index.set_namespace("default", {"team": "other"})
    bench.ask(1)
    assert bench.index.evaluations.n_full == n_full
    assert not recounted.n


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_that_somebody_names_for_the_first_time_moves_no_pod_without_it(kind):
    bench, moved = Bench(kind), []
    n_classes = len(bench.index.peer_index.classes)
    bench.index.peer_index.moved = lambda rows, class_id: moved.extend(rows)
    bench.index.peer_index.hold(PeerTerm((TermPart(equals({"unheard-of": "x"}), None),)))
    assert not moved
    assert len(bench.index.peer_index.classes) == n_classes
