"""Reasons with placeholders."""

from bayplan.model.reasons import Reason, StatusCode


def reason(name, text):
    return Reason(name, text, StatusCode.UNSCHEDULABLE)


def test_filling_inserts_each_value_where_its_placeholder_stands():
    found = reason("lost-<name>", 'claim "<name>" of <volume>').filled(name="a", volume="b")
    assert found == reason("lost-a", 'claim "a" of b')


def test_a_value_is_inserted_as_it_is():
    found = reason("a", "<name> <volume>").filled(name="<volume>", volume=r"\1")
    assert found == reason("a", r"<volume> \1")


def test_a_reason_without_placeholders_stays_as_it_is():
    assert reason("a", "2 < 3 > 1").filled() == reason("a", "2 < 3 > 1")
