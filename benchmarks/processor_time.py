"""Processor time of other processes, from the kernel's counters: exact to one tick, ten milliseconds on Linux."""

import os
import pathlib

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def seconds(pid):
    """User and system time of a process, of all its threads and of the children it has waited for."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    # The name of the program comes before and may have blanks, so fields are counted from its closing bracket.
    fields = text.rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS_PER_SECOND
