"""Whole numbers as Go keeps them."""

MAX_INT32 = 2**31 - 1


def int32(number):
    """Wrapped around, as a conversion or an overflowing sum is."""
    return (number + 2**31) % 2**32 - 2**31


def sum_int32(numbers):
    return int32(sum(numbers))
