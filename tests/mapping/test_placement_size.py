"""How many scheduling constraints a placement has."""

import pytest

from bayplan.mapping import placement_size
from validating import objects


@pytest.mark.parametrize("placement, n", [
    ("{}", 0),
    ("{clusterAffinity: {}}", 0),
    ("{clusterAffinity: {clusterNames: [a, b, c, d, e, f, g, h, i]}}", 0),  # ten names count as one
    ("{clusterAffinity: {clusterNames: [a, b, c, d, e, f, g, h, i, j], exclude: [a, b, c, d, e, f, g, h, i, j]}}", 2),
    ("{clusterAffinity: {labelSelector: {matchLabels: {a: b, c: d}}}}", 2),
    ("{clusterAffinity: {labelSelector: {matchExpressions: [{key: a, operator: In, values: [a, b, c, d, e, f, g, h, i, j]}]}}}", 2),
    ("{clusterAffinity: {fieldSelector: {matchExpressions: [{key: a, operator: Exists}]}}}", 1),
    ("{clusterAffinity: {supplements: [{labelSelector: {matchLabels: {a: b}}}, {}]}}", 3),
    ("{clusterAffinities: [{affinityName: a}, {affinityName: b, labelSelector: {matchLabels: {a: b}}}]}", 21),
    ("{clusterAffinities: [{affinityName: a, overflowAffinities: [{}, {labelSelector: {matchLabels: {a: b}}}]}]}", 13),
    ("{clusterTolerations: [{key: a}, {key: b}]}", 2),
    ("{spreadConstraints: [{spreadByField: cluster}, {spreadByLabel: a}]}", 2),
    ("{replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {labelSelector: {matchLabels: {a: b}}}, weight: 1}]}}}", 1),
    ("{replicaScheduling: {weightPreference: {staticWeightList: [{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}]}}}", 1),
    ("{clusterAffinity: 7, clusterAffinities: {}, clusterTolerations: x, spreadConstraints: null, replicaScheduling: []}", 0),
    ("{clusterAffinity: {labelSelector: [], clusterNames: a, supplements: [x, null]}}", 2),  # not what it should be
])  # fmt: skip
def test_constraints_of_a_placement(placement, n):
    assert placement_size.n_constraints(objects.read(placement)) == n
