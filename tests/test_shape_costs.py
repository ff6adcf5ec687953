"""
The cost of a decision on every named shape, counted in operations, never in seconds.

Terms compared, arrays filled and rows corrected for the same pending workloads must not grow with the number of existing
ones, whatever labels these have. The first decisions are not counted: a term that is used for the first time reads what
it matches.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import shapes

from bayplan.cli import benchmarks
from bayplan.engine.evaluations import EvaluationCache
from bayplan.engine.node_partitions import NodeKeys
from bayplan.engine.ranking import ClassRanking
from bayplan.indexing.peer_index import PeerIndex
from bayplan.indexing.term_lookup import TermGroup
from bayplan.model.terms import PeerTerm
from bayplan.rules import profiles

# Already the few are of so many apps that what their terms name in common is counted once for all of them.
N_TARGETS, N_FEW, N_MANY, N_PENDING = 60, 240, 1920, 40
COUNTED = {
    "terms compared": [(PeerTerm, "matches")],
    "terms held": [(PeerIndex, "hold")],
    "terms counted": [(PeerIndex, "match_reach")],
    "groups of terms": [(TermGroup, "find")],
    "arrays filled": [(EvaluationCache, "_evaluate"), (NodeKeys, "rebuild"), (ClassRanking, "_build")],
    "rows corrected": [(EvaluationCache, "_correct"), (NodeKeys, "correct")],
    "classes split": [(PeerIndex, "_split")],
    "classes compared": [(PeerIndex, "class_matches")],
}
SLACK = 1.3  # what depends on where workloads happen to be


def operations(shape, n_existing, monkeypatch, counting_from=N_PENDING // 2):
    """How often each operation is done for the second half of the pending workloads, or from an earlier one on."""
    kind = shapes.kind_of(shape)
    given = shapes.generate(shape, N_TARGETS, n_existing, N_PENDING, N_FEW)
    counts, waiting = Counter(), {"n": 0}

    def counted(label, method):
        def counting(*arguments, **named):
            counts[label] += waiting["n"] > counting_from
            return method(*arguments, **named)

        return counting

    with monkeypatch.context() as patch:
        for label, methods in COUNTED.items():
            for owner, name in methods:
                patch.setattr(owner, name, counted(label, getattr(owner, name)))
        module, name = {
            "pods": (benchmarks.schedule_pod, "choose"),
            "fleet": (benchmarks.schedule_binding, "schedule"),
        }[kind]
        decide = getattr(module, name)

        def deciding(*arguments, **named):
            waiting["n"] += 1
            return decide(*arguments, **named)

        patch.setattr(module, name, deciding)
        benchmarks.BENCHMARKS[kind](json.dumps(given).encode(), profiles.pod_rules())()
    assert waiting["n"] == N_PENDING
    return counts


@pytest.mark.parametrize("name", shapes.NAMED)
def test_a_decision_takes_as_many_operations_with_eight_times_as_many_existing_workloads(name, monkeypatch):
    shape = shapes.parse([name])
    few, many = (operations(shape, n_existing, monkeypatch) for n_existing in (N_FEW, N_MANY))
    for label in COUNTED:
        assert many[label] <= SLACK * few[label] + N_PENDING, f"{label}: {few[label]}, then {many[label]}"


def test_what_many_terms_exclude_a_little_from_is_counted_before_the_first_decision(monkeypatch):
    # Each binding has a term of its own: all of its namespace but three groups.
    few, many = (operations(shapes.parse(["alone"]), n, monkeypatch, counting_from=0) for n in (N_FEW, N_MANY))
    assert few["classes compared"], "with few such terms, the first decision counts what they match"
    assert many["classes compared"] <= SLACK * few["classes compared"]


def test_what_fits_nowhere_counts_required_terms_alone(monkeypatch):
    # Of the ten terms of each app eight are preferred, and each looks for five values in two namespaces.
    n_new, found = of_common_values([], monkeypatch)
    assert 0 < found["terms held"] <= 2 * n_new


def test_values_that_all_list_together_are_one_summand(monkeypatch):
    n_new, found = of_common_values(["required=0"], monkeypatch)
    n_terms, n_summands = 8, 2  # in the own namespace and in the common one; each value has one if they are apart
    assert 0 < found["terms held"] <= n_terms * n_summands * n_new


def of_common_values(axes, monkeypatch):
    """The operations for the second half of the pods, and how many of them are of apps of which there is none yet."""
    shape = shapes.parse(["common-5", *axes])
    given = shapes.generate(shape, N_TARGETS, N_MANY, N_PENDING, N_FEW)
    namespaces = [pod["metadata"]["namespace"] for pod in given["pods"]]
    first = N_PENDING // 2
    n_new = len(set(namespaces[first:]) - set(namespaces[:first]))
    return n_new, operations(shape, N_MANY, monkeypatch)
