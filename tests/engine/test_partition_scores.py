"""A grade is on the scale of those in the running, however they came to be in it."""

import numpy as np

from bayplan.engine.ranking import PartitionScores
from bayplan.rules.inter_pod_affinity import InterPodAffinity

ALL, NONE = np.ones(3, np.bool_), np.zeros(3, np.bool_)


def grade_of(raw):
    rule = InterPodAffinity()
    rule.weight = 2
    return PartitionScores(rule, np.array(raw, np.int64), np.arange(3))


def test_the_scale_is_that_of_those_in_the_running():
    assert grade_of([-2, -1, 0]).look(ALL).tolist() == [0, 100, 200]


def test_a_scale_is_not_kept_from_when_there_were_others():
    grade = grade_of([-2, -1, 0])
    grade.look(ALL)
    grade.look(NONE)  # every target is refused for a while
    grade.move(2, was=False, now=True)
    grade.rescale()
    assert grade.weighted(2) == 0  # alone, it is as good as the worst
