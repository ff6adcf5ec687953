import pytest

from bayplan.model.node_selectors import NodeRequirement

YES, NO = True, False


@pytest.mark.parametrize(
    "operator, values, label, holds",
    [
        ("In", ("ssd", "nvme"), "ssd", YES),
        ("In", ("ssd", "nvme"), None, NO),
        ("NotIn", ("hdd",), None, YES),  # an absent key is not in the set either
        ("NotIn", ("hdd",), "hdd", NO),
        ("Exists", (), "", YES),
        ("DoesNotExist", (), None, YES),
        ("Gt", ("8",), "9", YES),
        ("Gt", ("8",), "8", NO),
        ("Lt", ("8",), "-3", YES),
        ("Gt", ("8",), "many", NO),  # a label that is not an integer never matches
        ("Gt", ("8",), None, NO),
        ("Gt", ("8",), "9.5", NO),
        ("Gt", ("8",), "1_0", NO),  # Python would read it, Go does not
        ("Gt", ("8",), " 9", NO),
        ("Lt", ("9223372036854775808",), "1", NO),  # beyond 64 bits
        ("Gt", ("8", "9"), "10", NO),
        ("in", ("ssd",), "ssd", NO),  # no such operator
    ],
)
def test_requirement(operator, values, label, holds):
    assert NodeRequirement("key", operator, values).matches(label) is holds
