"""For all tests."""

import gc

from hypothesis import settings

# Whether a change is sound must not depend on luck: the same cases each time, and other ones with `make fuzz`.
settings.register_profile("repeatable", derandomize=True, database=None)
settings.register_profile("exploring", print_blob=True)
settings.load_profile("repeatable")


def pytest_collection_finish():
    """Spare Python's collector the modules and thousands of cases that stay anyway: it took a third of the time."""
    gc.set_threshold(100_000, 50, 1000)
    gc.collect()
    gc.freeze()
