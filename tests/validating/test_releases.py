"""What an API server of one release rejects and one of another does not."""

import pytest

from bayplan.model.kubernetes_versions import V1_36, V1_37
from bayplan.reading import questions
from bayplan.validating import admission
from validating import released


def causes(obj, version):
    return {(one.reason, one.field, one.message) for one in admission.validate_all(obj, version)}


@pytest.mark.parametrize("obj, earlier, later", released.DIFFERENT)
def test_each_release_has_its_own_causes(obj, earlier, later):
    assert causes(obj, V1_36) == earlier
    assert causes(obj, V1_37) == later
    assert causes(obj, V1_36) == {(one.reason, one.field, one.message) for one in admission.validate_all(obj)}


@pytest.mark.parametrize("obj", released.SAME)
def test_the_rest_is_the_same(obj):
    assert {one for one in causes(obj, V1_36) if "minReplicas" not in one[1]} == causes(obj, V1_37)


@pytest.mark.parametrize("obj, earlier, later", released.DIFFERENT)
@pytest.mark.parametrize("version, place", [("1.36", 0), ("1.37", 1)])
def test_questions_are_answered_as_the_release_that_they_name_does(obj, earlier, later, version, place):
    options = questions.QuestionOptions(kubernetes_version=version)
    found = questions.admission_causes(questions.AdmissionQuestion(object=obj, options=options))
    assert {(one.reason, one.field, one.message) for one in found} == (earlier, later)[place]
