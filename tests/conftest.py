"""Settings for all tests."""

import gc

from hypothesis import HealthCheck, settings

# The result of a test run must not depend on chance: the same cases each time, and new ones with `make fuzz`;
# nor on how busy the machine is.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, database=None, **UNTIMED)
settings.register_profile("exploring", print_blob=True, **UNTIMED)
settings.load_profile("repeatable")


def pytest_collection_finish():
    """Exclude modules and thousands of cases, which stay anyway, from garbage collection: it took a third of the time."""
    gc.set_threshold(100_000, 50, 1000)
    gc.collect()
    gc.freeze()
