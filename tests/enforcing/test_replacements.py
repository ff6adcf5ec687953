from bayplan.enforcing import move_execution
from bayplan.enforcing.move_execution import SeenPod

OLD = SeenPod("shop/old", "1", "set", "a")
OTHER = SeenPod("shop/other", "2", "set", "b")  # a sister that was there before
BEFORE = frozenset({"1", "2"})


def became(*seen, evicted=(OLD,)):
    return move_execution.find_replacements(evicted, BEFORE, seen)


def test_a_new_pod_of_the_same_controller_with_a_node_is_the_replacement():
    new = SeenPod("shop/new", "3", "set", "c")
    (found,) = became(OTHER, new)
    assert (found.new, found.is_over, found.missing) == (new, True, "")


def test_it_is_not_over_while_something_is_missing():
    cases = [
        ((OTHER,), "no replacement was created"),
        ((OTHER, SeenPod("shop/x", "3", "another", "c")), "no replacement was created"),
        ((OTHER, SeenPod("shop/x", "3", "set", "c", inactive=True)), "no replacement was created"),
        ((OTHER, SeenPod("shop/x", "3", "set")), "its replacement shop/x has no node"),
        ((OLD, SeenPod("shop/x", "3", "set", "c")), "it has not terminated"),
    ]
    for seen, missing in cases:
        (found,) = became(*seen)
        assert (found.missing, found.is_over) == (missing, False)


def test_a_pod_made_anew_under_the_same_name_is_another():
    (found,) = became(SeenPod("shop/old", "3", "set", "c"))
    assert found.is_over


def test_each_of_several_needs_one_of_its_own():
    second = SeenPod("shop/second", "2", "set", "a")
    one = SeenPod("shop/one", "3", "set", "c")
    found = became(one, evicted=(OLD, second))
    assert [replacement.is_over for replacement in found] == [True, False]
    two = SeenPod("shop/two", "4", "set", "b")
    assert all(replacement.is_over for replacement in became(one, two, evicted=(OLD, second)))
