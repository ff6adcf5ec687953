"""
Processor time from the start of a command to its end, with bytecode written.

The peers run in turns with the commands: an empty Python, NumPy alone, which `place` needs, and kubectl. Processor time
is of all threads, in user and system mode.
"""

import os
import pathlib
import resource
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent
TITLE = "Start-up"
HEAD = ("goal over ms", "times an empty Python", "times kubectl", "ms", "goal", "ms of NumPy alone", "command")
# The command, its goal in milliseconds, and whether it needs NumPy.
CASES = (
    ("bayplan --help", 120, False),
    ("bayplan place --help", 120, False),
    ("bayplan place -f examples/01-first-pod", 250, True),
    ("bayplan place -f examples/08-dump-of-a-cluster/cluster.json", 250, True),
)
PYTHON = [sys.executable, "-c", "pass"]
NUMPY = [sys.executable, "-c", "import numpy"]
ROUNDS = 15


def rows(_):
    kubectl = shutil.which("kubectl", path=str(pathlib.Path(sys.executable).parent)) or shutil.which("kubectl")
    peers = {"python": PYTHON, "numpy": NUMPY, **({"kubectl": [kubectl, "version", "--client"]} if kubectl else {})}
    ours = {text: [sys.executable, "-m", *text.split()] for text, _, _ in CASES}
    every = {**peers, **ours}
    for command in every.values():
        milliseconds(command)  # writes the bytecode
    measured = {name: [] for name in every}
    for _ in range(ROUNDS):
        for name, command in every.items():
            measured[name].append(milliseconds(command))
    best = {name: min(found) for name, found in measured.items()}
    for text, goal, needs_numpy in CASES:
        numpy = best["numpy"] - best["python"] if needs_numpy else 0
        peer = {"python": best["python"], "kubectl": best.get("kubectl")}
        yield {"input": text, "goal": goal, "ms": best[text], "numpy_ms": numpy, **peer}


def milliseconds(command):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def cells(row):
    return (
        f"{row['goal'] / row['ms']:.1f}",
        f"{row['ms'] / row['python']:.0f}",
        f"{row['ms'] / row['kubectl']:.1f}" if row["kubectl"] else "–",
        f"{row['ms']:.0f}",
        row["goal"],
        f"{row['numpy_ms']:.0f}" if row["numpy_ms"] else "–",
        f"`{row['input']}`",
    )
