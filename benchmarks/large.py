"""
Ten times the nodes that Kubernetes supports, in one process: time and memory to load them, and to decide.

As a program, `python benchmarks/large.py FILE TEMPLATES` loads a dump as `bayplan place` does, decides pods one after
another and prints what both took. TEMPLATES is how many templates the dump's pods have.
"""

import gc
import json
import pathlib
import resource
import sys
import time

from loading import own_memory
from measuring import best, generated, last_line

TITLE = "Large clusters"
HEAD = (
    "decisions over those in the small one", "goal", "goal over peak memory", "peak MB", "MB afterwards", "objects/s",
    "seconds", "µs each: known · existing · new classes", "input",
)  # fmt: skip
GOAL_RATIO, GOAL_MB = 3, 8192
SMALL, LARGE = "gen_dump.py 5000 100000 500", "gen_dump.py 50000 1000000 5000"
SORTS = ("known", "existing", "new")
TURNS = 3  # for the small one; the large one takes minutes and is measured once
N_DECISIONS = 300


def rows(scale):
    small = None
    for text, turns in ((SMALL, TURNS), (LARGE, 1)):
        words = scale(text)
        with generated(*words) as path:
            runs = [last_line(pathlib.Path(__file__), path, words[-1]) for _ in range(turns)]
        found = {**best(runs), "us": {sort: min(run["us"][sort] for run in runs) for sort in SORTS}}
        small = small or found
        ratios = {sort: round(found["us"][sort] / small["us"][sort], 2) for sort in SORTS}
        yield {"input": " ".join(words), "goal": GOAL_RATIO, "goal_mb": GOAL_MB, "ratios": ratios, **found}


def cells(row):
    return (
        " · ".join(f"{row['ratios'][sort]:.2f}" for sort in SORTS),
        row["goal"],
        f"{row['goal_mb'] / row['peak_mb']:.1f}",
        f"{row['peak_mb']:,.0f} of {row['goal_mb']:,}",
        f"{row['stays_mb']:,.0f}",
        f"{row['objects_per_s']:,.0f}",
        f"{row['seconds']:.1f}",
        " · ".join(f"{row['us'][sort]:,.0f}" for sort in SORTS),
        f"`{row['input']}`",
    )


def main():
    from bayplan.reading import cluster
    from bayplan.reading.files import ReadOptions

    start = time.process_time()
    index = cluster.load(ReadOptions([sys.argv[1]])).index
    seconds = time.process_time() - start
    n_objects = len(index.records) + len(index.slots)
    found = {"seconds": seconds, "objects": n_objects, "objects_per_s": n_objects / seconds}
    found["us"] = decided(index, int(sys.argv[2]))
    # The highest resident set so far, mapped files included, in KiB: getrusage(2).
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**found, "stays_mb": own_memory()}))


def decided(index, n_templates):
    """
    Processor time of a decision in µs, with its entry in the index.

    A pod is of a known equivalence class if one of its class was decided before, of an existing class if pods of its
    class run but none was decided, and of a new class if none runs.
    """
    from bayplan.engine.engine import Engine
    from bayplan.rules import profiles

    engine = Engine(index, profiles.pod_rules())
    n = min(N_DECISIONS, len(index.slots) // 10)  # so that all of them find a node in a small cluster, too
    few = max(1, n // 10)
    pods_by_sort = {
        "known": [pending(i % few, f"known-{i}") for i in range(n)],
        "existing": [pending(few + i % (n_templates - few), f"existing-{i}") for i in range(n)],
        "new": [pending(n_templates + i, f"new-{i}") for i in range(n)],
    }
    gc.collect()
    gc.freeze()
    gc.disable()
    place([pending(i, f"first-{i}") for i in range(few)], engine)
    return {sort: place(pods, engine) / len(pods) * 1e6 for sort, pods in pods_by_sort.items()}


def pending(template, name):
    """A pod of a template of the dump that waits for a node."""
    import gen_dump
    import msgspec

    from bayplan.mapping import pods
    from bayplan.wire.pods import Pod

    written = json.loads(json.dumps(gen_dump.pod(template)).replace(gen_dump.NAME, name).replace(gen_dump.NUMBER, name))
    written["spec"].pop("nodeName")
    written.pop("status")
    return pods.workload_of(msgspec.convert(written, Pod))


def place(waiting, engine):
    """Seconds of processor time to place all pods one after another; each must find a node."""
    from bayplan import schedule_pod

    index = engine.index
    start = time.process_time()
    for workload in waiting:
        slot, _ = schedule_pod.choose(workload, engine)
        index.add(workload, index.slots.at(slot).name)
    return time.process_time() - start


if __name__ == "__main__":
    main()
