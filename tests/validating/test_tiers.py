"""The forms of tiers that Karmada lacks, as typed fields of a placement."""

import pytest

from validating import objects

ONE_FORM = "Forbidden: one form of tiers per placement: spec.placement"
OVERFLOW = "overflowAffinities: [{affinityName: c}]"
AGGREGATED = "replicaScheduling: {replicaDivisionPreference: Aggregated}"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
ALONE = "supplements can only be used together with the inline ClusterAffinity"
FIRST = "the first tier must select clusters by label, field or name"


def term(more="", name="a"):
    return f"{{affinityName: {name}, clusterNames: [m1]{more}}}"


@pytest.mark.parametrize("placement, wrong", [
    # the four forms
    ("clusterAffinity: {clusterNames: [m1], supplements: [{clusterNames: [m2]}, {clusterNames: [m3]}]}", []),
    (f"clusterAffinities: [{term(', supplements: [{clusterNames: [m2]}]')}, {term(name='b')}]", []),
    (f"clusterAffinities: [{term()}, {term(name='b')}], affinityStrategy: {{mode: Inherited}}", []),
    (f"preferredClusterAffinities: [{term()}, {term(name='b')}]", []),
    (f"clusterAffinities: [{term()}], affinityStrategy: {{mode: Exclusive}}", []),
    # under any strategy
    ("clusterAffinity: {clusterNames: [m1], supplements: [{}]}, replicaScheduling: {replicaSchedulingType: Duplicated}", []),
    # two forms
    (f"clusterAffinities: [{term(f', supplements: [{{}}], {OVERFLOW}')}], {AGGREGATED}", [f".clusterAffinities[0].overflowAffinities: {ONE_FORM}.clusterAffinities[0].supplements is one already"]),
    (f"clusterAffinities: [{term(f', {OVERFLOW}')}], affinityStrategy: {{mode: Inherited}}, {AGGREGATED}", [f".affinityStrategy.mode: {ONE_FORM}.clusterAffinities[0].overflowAffinities is one already"]),
    (f"clusterAffinities: [{term(', supplements: [{}]')}], affinityStrategy: {{mode: Inherited}}", [f".affinityStrategy.mode: {ONE_FORM}.clusterAffinities[0].supplements is one already"]),
    (f"preferredClusterAffinities: [{term(', supplements: [{}]')}]", [f".preferredClusterAffinities[0].supplements: {ONE_FORM}.preferredClusterAffinities is one already"]),
    # nested and misplaced
    ("clusterAffinity: {clusterNames: [m1], supplements: [{supplements: []}]}", [".clusterAffinity.supplements[0].supplements: Forbidden: a supplement cannot have supplements of its own"]),
    (f"clusterAffinities: [{term(', overflowAffinities: [{affinityName: c, supplements: []}]')}], {AGGREGATED}", [".clusterAffinities[0].overflowAffinities[0].supplements: Forbidden: may be set on clusterAffinity and on a term of clusterAffinities only"]),
    ("replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {supplements: []}, weight: 1}]}}", [".replicaScheduling.weightPreference.staticWeightList[0].targetCluster.supplements: Forbidden: may be set on clusterAffinity and on a term of clusterAffinities only"]),
    # without a primary group
    ("clusterAffinity: {supplements: [{clusterNames: [m2]}]}", [f".clusterAffinity: Required value: {ALONE}"]),
    ("clusterAffinities: [{affinityName: a, supplements: [{clusterNames: [m2]}]}]", [f".clusterAffinities[0]: Required value: {ALONE}"]),
    ("affinityStrategy: {mode: Inherited}", ['.affinityStrategy.mode: Invalid value: "Inherited": can only be used together with clusterAffinities']),
    ("clusterAffinities: [{affinityName: a}], affinityStrategy: {mode: Inherited}", [f'.affinityStrategy.mode: Invalid value: "Inherited": {FIRST}']),
    ("preferredClusterAffinities: [{affinityName: a}]", [f".preferredClusterAffinities[0]: Required value: {FIRST}"]),
    (f"clusterAffinities: [], preferredClusterAffinities: [{term()}]", [".preferredClusterAffinities: Forbidden: preferredClusterAffinities cannot co-exist with clusterAffinity or clusterAffinities"]),
    # values
    ("affinityStrategy: {mode: inherited}", ['.affinityStrategy.mode: Unsupported value: "inherited": supported values: "Exclusive", "Inherited"']),
    ("clusterAffinity: {clusterNames: [m1], supplements: [{labelSelector: {matchLabels: {a: -x}}}]}", [f'.clusterAffinity.supplements[0].labelSelector.matchLabels: Invalid value: "-x": {VALUE}']),
    ("clusterAffinity: {clusterNames: [m1], supplements: [{fieldSelector: {matchExpressions: [{key: rack}]}}]}", ['.clusterAffinity.supplements[0].fieldSelector: Invalid value: {"matchExpressions":[{"key":"rack","operator":""}]}: unsupported key "rack", must be provider, region, or zone']),
    (f"preferredClusterAffinities: [{term(name='y' * 33)}]", [".preferredClusterAffinities[0].affinityName: Too long: may not be more than 32 bytes"]),
    (f"preferredClusterAffinities: [{term()}, {{affinityName: a}}]", ['.preferredClusterAffinities: Invalid value: [{"affinityName":"a","clusterNames":["m1"]},{"affinityName":"a"}]: each affinity term in a policy must have a unique name']),
])  # fmt: skip
def test_tiers(placement, wrong):
    assert objects.causes_of(objects.policy(f"{{{placement}}}"), "spec.placement") == wrong


def test_forms_in_placement_and_annotation_count_together():
    obj = objects.policy(
        f"{{clusterAffinities: [{term(f', {OVERFLOW}')}], {AGGREGATED}}}",
        annotation="affinityStrategy: {mode: Inherited}",
    )
    path = "metadata.annotations[bayplan.io/placement].affinityStrategy.mode"
    assert objects.causes_of(obj) == [f"{path}: {ONE_FORM}.clusterAffinities[0].overflowAffinities is one already"]
