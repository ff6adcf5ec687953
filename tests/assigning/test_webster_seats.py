"""Webster's method with many seats, against the reference implementation, which assigns them one by one."""

from hypothesis import example, given
from hypothesis import strategies as st

from bayplan.assigning import divide_replicas
from reference.fleet import webster

VOTES = st.one_of(st.integers(0, 12), st.integers(-3, 3), st.integers(0, 2**31 - 1), st.integers(2**53, 2**63 - 1))


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), VOTES, max_size=8),
    st.integers(0, 400),
    st.sampled_from(["", "a", "b"]),
)
@example({"a": 0, "b": 0, "c": -1}, 101, "a")
@example({"a": -2, "b": -2, "c": -7}, 100, "b")
@example({"a": 1, "b": 2**63 - 1}, 400, "")
def test_seats_are_those_won_one_by_one(votes, number, uid):
    assert divide_replicas.webster_seats(number, votes, uid) == webster.seats(number, votes, uid)


def test_the_largest_number_of_replicas_is_divided_like_a_small_one():
    """Won one by one, this takes minutes."""
    seats = divide_replicas.webster_seats(2**31 - 1, {"a": 3, "b": 2, "c": 0, "d": 1}, "")
    assert seats == {"a": 1073741824, "b": 715827882, "c": 0, "d": 357913941}
