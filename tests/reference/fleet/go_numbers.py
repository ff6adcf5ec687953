"""Integers of Go's widths."""

MAX_INT32 = 2**31 - 1


def int32(number):
    """Wrapped to 32 bits, as by a conversion or an overflowing sum."""
    return (number + 2**31) % 2**32 - 2**31


def sum_int32(numbers):
    return int32(sum(numbers))
