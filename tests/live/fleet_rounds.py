"""
How often each fault of a fleet is injected, and the record of it: once in CI, ten times and recorded by `make fleet-faults`.

BAYPLAN_FLEET_FAULT_ROUNDS and BAYPLAN_FLEET_FAULT_RECORD say so.
"""

import contextlib
import json
import os
import pathlib
import time

import pytest

ROUNDS = int(os.environ.get("BAYPLAN_FLEET_FAULT_ROUNDS", "1"))
RECORD = os.environ.get("BAYPLAN_FLEET_FAULT_RECORD")

rounds = pytest.mark.parametrize("round_", range(ROUNDS))


@contextlib.contextmanager
def recorded(fault, bindings=1):
    """Record that a block with this fault ended as it should."""
    began = time.monotonic()
    yield
    if RECORD:
        line = {
            "fault": fault,
            "bindings": bindings,
            "seconds": round(time.monotonic() - began, 1),
            "outcome": "all placed",
        }
        with pathlib.Path(RECORD).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
