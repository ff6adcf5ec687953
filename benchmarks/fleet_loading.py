"""
Loading a large fleet: from the output of `kubectl get` as `bayplan place -f` reads it, and from a benchmark input.

As a program, `python benchmarks/fleet_loading.py dump|bench FILE` loads one fleet and prints processor time and memory.
"""

import json
import pathlib
import resource
import sys
import tempfile
import time

from gen_dump import as_json
from measuring import best, generated, last_line

TITLE = "Loading a fleet"
HEAD = ("goal over seconds", "seconds", "goal", "bindings/s", "peak MB", "read as", "input")
GOAL_SECONDS = 30
TURNS = 2
# Bindings of the second input have terms and labels in annotations, which are YAML or JSON text.
INPUTS = ("gen_fleet.py mixed 5000 200000 0", "shapes.py generate flink 5000 200000 0")


def rows(scale):
    for text in INPUTS:
        words = scale(text)
        with generated(*words) as path, tempfile.NamedTemporaryFile("w", suffix=".json") as dump:
            fleet = json.loads(pathlib.Path(path).read_bytes())
            write_dump(fleet, dump)
            sizes = {"bindings": len(fleet["bindings"])}
            for form, file in (("dump", dump.name), ("bench", path)):
                found = best([last_line(pathlib.Path(__file__), form, file) for _ in range(TURNS)])
                yield {"input": " ".join(words), "form": form, "goal": GOAL_SECONDS, **sizes, **found}


def cells(row):
    return (
        f"{row['goal'] / row['seconds']:.1f}",
        f"{row['seconds']:.1f}",
        row["goal"],
        f"{row['bindings'] / row['seconds']:,.0f}",
        f"{row['peak_mb']:,.0f}",
        {"dump": "`kubectl get` in JSON", "bench": "input of `bench fleet`"}[row["form"]],
        f"`{row['input']}`",
    )


def write_dump(fleet, out):
    """Write a fleet as `kubectl get clusters,resourcebindings -A -o json` prints it."""
    out.write('{\n    "apiVersion": "v1",\n    "items": [\n        ')
    for i, item in enumerate((*fleet["clusters"], *fleet["bindings"])):
        out.write((",\n        " if i else "") + as_json(item))
    out.write('\n    ],\n    "kind": "List",\n    "metadata": {"resourceVersion": ""}\n}\n')
    out.flush()


def main():
    form, file = sys.argv[1:]
    start = time.process_time()
    {"dump": load_dump, "bench": load_benchmark}[form](file)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak}))


def load_dump(file):
    from bayplan.reading import cluster, fleet
    from bayplan.reading.files import ReadOptions

    inputs, sink = cluster.read(ReadOptions([file]))
    fleet.fleet_of(inputs, pods=sink.pending)


def load_benchmark(file):
    from bayplan.cli import benchmarks

    benchmarks.of_fleet(pathlib.Path(file).read_bytes(), ())()  # nothing is pending, so it only fills the index


if __name__ == "__main__":
    main()
