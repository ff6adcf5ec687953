"""
Reading a dump of a large cluster into an index: objects per second and memory.

As a program, `python benchmarks/loading.py FILE` reads one dump and prints time and memory.
"""

import json
import pathlib
import resource
import sys
import time

from measuring import best, generated, last_line

TITLE = "Reading a dump"
HEAD = ("goal over memory", "objects/s", "goal", "seconds", "peak MB, with the mapped file", "MB afterwards", "input")
GOAL_OBJECTS, GOAL_MB = 20_000, 4096


def rows(scale):
    words = scale("gen_dump.py 15000 300000 2000")
    with generated(*words) as path:
        found = best([last_line(pathlib.Path(__file__), path) for _ in range(3)])
    yield {"input": " ".join(words), "goal": GOAL_OBJECTS, "goal_mb": GOAL_MB, **found}


def cells(row):
    return (
        f"{row['goal_mb'] / row['peak_mb']:.1f}",
        f"{row['objects_per_s']:,.0f}",
        f"{row['goal']:,}",
        f"{row['seconds']:.1f}",
        f"{row['peak_mb']:,.0f} of {row['goal_mb']:,}",
        f"{row['stays_mb']:,.0f}",
        f"`{row['input']}`",
    )


def main():
    from bayplan.reading import cluster
    from bayplan.reading.files import ReadOptions

    start = time.perf_counter()
    index = cluster.load(ReadOptions([sys.argv[1]])).index
    seconds = time.perf_counter() - start
    n_objects = len(index.records) + len(index.slots)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"seconds": seconds, "objects": n_objects, "objects_per_s": n_objects / seconds, "peak_mb": peak / 1024}
    print(json.dumps({**found, "stays_mb": own_memory()}))


def own_memory():
    """Megabytes of the process without mapped files."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
