"""
Reading a dump as a state, which is not validated: objects per second of processor time.

As a program, `python benchmarks/state_reading.py READER FILE SMALL` reads one dump and prints the time; the small dump
is read before it. The validated reader is given the same pods without their status, as people write them.
"""

import gc
import json
import pathlib
import sys
import time

from measuring import best, generated, last_line

TITLE = "Reading a state"
HEAD = (
    "times validated",
    "times one by one",
    "objects/s",
    "goal",
    "objects/s into an index",
    "validated, one by one",
    "input",
)
GOAL = 60_000


def rows(scale):
    words = scale("gen_dump.py 1000 20000 500")
    with (
        generated(*words) as dump,
        generated(*words, "written") as written,
        generated("gen_dump.py", 5, 50, 5) as small,
    ):
        rates = {name: rate(name, dump, small) for name in ("state", "one_by_one", "index")}
        rates["validated"] = rate("validated", written, small)
    yield {"input": " ".join(words), "goal": GOAL, **rates}


def rate(reader, path, small):
    """Objects per second, the best of three runs."""
    found = best([last_line(pathlib.Path(__file__), reader, path, small) for _ in range(3)])
    return found["objects"] / found["seconds"]


def cells(row):
    return (
        f"{row['state'] / row['validated']:.0f}",
        f"{row['state'] / row['one_by_one']:.1f}",
        f"{row['state']:,.0f}",
        f"{row['goal']:,}",
        f"{row['index']:,.0f}",
        f"{row['validated']:,.0f} · {row['one_by_one']:,.0f}",
        f"`{row['input']}`",
    )


def state(path):
    return counted(cluster_module().read(options(state=[path])))


def one_by_one(path):
    """The reference implementation: each pod is found, decoded and stored on its own."""
    from bayplan.reading import collecting

    collecting.Collector.add_pods = lambda *_: False
    return state(path)


def validated(path):
    return counted(cluster_module().read(options(paths=[path])))


def index(path):
    found = cluster_module().load(options(state=[path])).index
    return len(found.records) + len(found.slots)


def counted(found):
    inputs, sink = found
    return len(inputs.nodes) + len(sink.running)


def cluster_module():
    from bayplan.reading import cluster

    return cluster


def options(**given):
    from bayplan.reading.files import ReadOptions

    return ReadOptions(**given)


READERS = {reader.__name__: reader for reader in (state, one_by_one, validated, index)}


def main():
    reader, path, small = sys.argv[1:]
    gc.disable()
    READERS[reader](small)  # imports are not part of the measurement
    start = time.process_time()
    n_objects = READERS[reader](path)
    print(json.dumps({"seconds": time.process_time() - start, "objects": n_objects}))


if __name__ == "__main__":
    main()
