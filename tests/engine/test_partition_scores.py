"""The scores of partitions are on the scale of the feasible ones, in whatever order they became feasible."""

import numpy as np

from bayplan.engine.ranking import PartitionScores
from bayplan.rules.inter_pod_affinity import InterPodAffinity

ALL, NONE = np.ones(3, np.bool_), np.zeros(3, np.bool_)


def scores_of(raw):
    rule = InterPodAffinity()
    rule.weight = 2
    return PartitionScores(rule, np.array(raw, np.int64), np.arange(3))


def test_the_scale_is_that_of_the_feasible_partitions():
    assert scores_of([-2, -1, 0]).rebuild(ALL).tolist() == [0, 100, 200]


def test_a_scale_is_not_kept_once_no_partition_is_feasible():
    scores = scores_of([-2, -1, 0])
    scores.rebuild(ALL)
    scores.rebuild(NONE)  # every target is rejected for a while
    scores.correct(2, was_feasible=False, is_feasible=True)
    scores.rescale()
    assert scores.weighted(2) == 0  # the only feasible partition has the lowest raw score
