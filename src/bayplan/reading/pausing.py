"""Reading without Python's collector of cycles: it would walk all that was read, again and again, and find none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 500_000  # objects that would be walked once more as soon as the collector is back


@contextmanager
def collector_paused() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_count()[0] > MANY:
                gc.freeze()
            gc.enable()
