"""
Measure shapes, and climb from random ones to worse ones. Does not know what the axes of a shape mean.

Two objectives have climbs of their own. `relative` is our cost of a decision over that of the real code on the same
input; `growth` is our cost with ten times as many existing workloads over the cost before. On the way the inputs are
small and each is measured once; the worst shapes of each objective are measured again at full size, best of three.
"""

import contextlib
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import peers
import shapes
import tables

HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "shapes.json"
# The processor time of the thread: with a limit, Linux counts that of the process in ticks of some milliseconds.
BENCH = "import time; time.perf_counter = time.thread_time; from bayplan.cli.main import main; main()"
OBJECTIVES = ("relative", "growth")
STARTS = 4  # random shapes of which a climb begins with the worst
PATIENCE = 8  # mutations in a row that are no worse; then the climb ends
MAX_MUTATIONS = 24  # of one climb, so that a short search begins several
LONG = 20  # seconds
NOISE = 1.05  # a shape must be worse by this factor to be kept
HEAD = ("times as fast as the real code", "growth", "goal", "µs each: ours", "the real code", "placed", "seed", "shape")
SHARE_AGREED = 0.1  # of the pending workloads: how many more than the real code we may place, or fewer


class Size(NamedTuple):
    """Targets, existing workloads before and after growth, pending ones; runs; processor time until a run is ended."""

    pods: tuple[int, int, int, int]
    fleet: tuple[int, int, int, int]
    runs: int
    limit: float


SMALL = Size((500, 500, 5000, 100), (200, 500, 5000, 100), runs=1, limit=15)
FULL = Size((5000, 5000, 50_000, 300), (1000, 5000, 50_000, 300), runs=3, limit=120)


def measured(shape, size, objectives=OBJECTIVES):
    """
    The numbers of a shape at this size, as JSON.

    Costs are in µs of a decision, `loading` in µs for each existing workload, with reading the input. `ended` are the
    runs that were ended at the limit: what follows from their costs is a bound only, and where even loading took
    longer, nothing is known of the decisions.
    """
    kind = shapes.kind_of(shape)
    n_targets, n_few, n_many, n_pending = getattr(size, kind)
    before = theirs = None
    if "growth" in objectives:
        with _input(shape, n_targets, n_few, n_pending, n_few) as path:
            before = best(size.runs, bayplan_run, kind, path, size.limit)
    # The pending workloads are of the same kinds before and after growth: more kinds would be more work by themselves.
    with _input(shape, n_targets, n_many, n_pending, n_few) as path:
        ours = best(size.runs, bayplan_run, kind, path, size.limit)
        if "relative" in objectives:
            theirs = best(size.runs, peer_run, kind, path, size.limit)
    loaded = ours
    if ours["ok"] is None:
        with _input(shape, n_targets, n_many, 0) as empty:
            loaded = bayplan_run(kind, empty, size.limit)
    found = {"shape": shapes.written(shape)}
    for objective, than in (("relative", theirs), ("growth", before)):
        found[objective] = round(ours["seconds"] / than["seconds"], 3) if than else None
    for name, run in (("before", before), ("ours", ours), ("peer", theirs)):
        found[name] = round(run["seconds"] / n_pending * 1e6, 1) if run else None
    found["loading"] = round(loaded["loading"] / n_many * 1e6, 1)
    found["placed"] = [ours["ok"], theirs["ok"] if theirs else None, n_pending]
    runs = {"before": before, "ours": ours, "peer": theirs, "loading": loaded}
    found["ended"] = [name for name, run in runs.items() if run and run["ok"] is None]
    return found


@contextlib.contextmanager
def _input(shape, *numbers):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(shapes.generate(shape, *numbers), file)
        file.flush()
        yield file.name


def best(n_runs, run, *arguments):
    """The fastest of some runs; a long one is not repeated, since what disturbs short ones matters little to it."""
    found = []
    while len(found) < n_runs and (not found or found[-1]["seconds"] < LONG):
        found.append(run(*arguments))
    return min(found, key=lambda one: one["seconds"])


def bayplan_run(kind, path, limit):
    """Processor time of the decisions, and of everything else."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPATH": str(HERE.parent / "src")}
    found, used = _finished([sys.executable, "-c", BENCH, "bench", kind, path], limit, environment)
    return {**found, "loading": used if found["ok"] is None else max(0.0, used - found["seconds"])}


def peer_run(kind, path, limit):
    """
    The time of the real code's decisions: elapsed time or processor time, whichever is less.

    It decides in several threads, so on a free machine elapsed time is the lesser; on a busy one it is processor time.
    """
    program = peers.program(kind)
    if program is None:
        sys.exit("without the real code there is nothing to compare with")
    found, _ = _finished([str(program), path], limit)
    return {**found, "seconds": min(found["seconds"], found.get("cpu_seconds", found["seconds"]))}


def _finished(words, limit, environment=None):
    """
    The last line that a program prints, and its processor time.

    At the limit of processor time it is ended; then `ok` is None, and its decisions count as long as all of it.
    """

    def restrict():
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))

    before = _processor_time()
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, preexec_fn=restrict)
    used = _processor_time() - before
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"ok": None, "seconds": float(limit)}, used
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1]), used


def _processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# Search


class Search:
    """Every shape that was measured, and the climbs' ends, until a time."""

    def __init__(self, seconds, seed, kind):
        self.seed, self.kind = seed, kind
        self.until = time.monotonic() + seconds
        self.known = {}
        self.ends = {objective: [] for objective in OBJECTIVES}

    def run(self):
        """Climb for each objective in turn. For a seed, the n-th climb always begins with the same shape."""
        climb = 0
        while not self.is_over:
            objective = OBJECTIVES[climb % 2]
            chance = random.Random(f"{self.seed}/{climb}")
            self._climb(objective, chance)
            climb += 1

    @property
    def is_over(self):
        return time.monotonic() >= self.until

    def _climb(self, objective, chance):
        # Pods have more axes, and so more climbs, than fleets.
        kind = shapes.KINDS[self.kind or chance.choice(("pods", "pods", "pods", "fleet"))]
        starts = [kind.random(chance) for _ in range(STARTS)]
        shape = max(starts, key=lambda one: self.measure(one, objective)[objective])
        worst, n_failed = self.measure(shape, objective), 0
        for _ in range(MAX_MUTATIONS):
            if n_failed == PATIENCE or self.is_over:
                break
            other = shape.mutated(chance)
            found = self.measure(other, objective)
            if found[objective] > worst[objective] * NOISE:
                shape, worst, n_failed = other, found, 0
            else:
                n_failed += 1
        self.ends[objective].append(worst)

    def measure(self, shape, objective):
        """
        The numbers of a shape; its objectives are 0 where the two schedulers place different numbers of pods.

        They are 0 too where loading took all the time, because nothing is known of the decisions then.
        """
        key = (shape, objective)
        if key not in self.known:
            found = measured(shape, SMALL, (objective,))
            ours, theirs, n_pending = found["placed"]
            is_known = shape.same_rules and None not in (ours, theirs)
            differs = is_known and abs(ours - theirs) > SHARE_AGREED * n_pending
            if differs or "loading" in found["ended"]:
                found[objective] = 0
            self.known[key] = found
            _report(f"{objective:8} {found[objective]:7.3f}  {_brief(found)}")
        return self.known[key]


def search(seconds, seed, kind, n_finalists):
    """Climb, measure the worst at full size, and add the result to the file of results as it grows."""
    earlier = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    climbs = Search(seconds, seed, kind)
    failure = None
    try:
        climbs.run()
    except RuntimeError as error:  # what was found until then is worth keeping
        failure = error
    worst = {name: sorted(ends, key=lambda one: -one[name]) for name, ends in climbs.ends.items()}
    result = {"seed": seed, "seconds": seconds, "tried": len(climbs.known), "worst": worst, "at full size": []}
    finalists = dict.fromkeys(one["shape"] for ends in worst.values() for one in ends[:n_finalists])
    _write([*earlier, result])
    for words in finalists:
        found = measured(shapes.parse(words.split()), FULL)
        _report(f"full size: {_brief(found)}")
        result["at full size"].append(found)
        _write([*earlier, result])
    if failure is not None:
        raise failure


def _write(results):
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    rows = [(found, one["seed"]) for one in results for found in one["at full size"]]
    rows.sort(key=lambda row: -row[0]["relative"])
    tables.write("searches", "shapes.py", tables.table(HEAD, [_cells(*row) for row in rows]))


def _cells(found, seed):
    """A shape at full size as a row of README.md. Where a run was ended at its limit, its cost was at least this."""
    least = {name: "≥ " if name in found["ended"] else "" for name in ("before", "ours", "peer")}
    placed = "/".join("–" if number is None else str(number) for number in found["placed"])
    ratio = found["peer"] / found["ours"]
    return (
        f"{least['peer']}{ratio:,.{0 if ratio >= 10 else 1}f}",
        f"{least['ours']}{found['growth']:.2f}",
        "≥ 1 · < 2",
        f"{least['ours']}{found['ours']:,.0f}",
        f"{least['peer']}{found['peer']:,.0f}",
        placed,
        seed,
        f"`{found['shape']}`",
    )


def _brief(found):
    numbers = ", ".join(f"{name} {found[name]:,}" for name in ("before", "ours", "peer", "loading") if found[name])
    placed = "/".join("-" if number is None else str(number) for number in found["placed"])
    ended = f", ended: {' '.join(found['ended'])}" if found["ended"] else ""
    return f"{numbers}, placed {placed}{ended}: {found['shape']}"


def _report(line):
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
