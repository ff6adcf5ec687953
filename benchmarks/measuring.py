"""Measurements in a process of their own, on a generated input, the best of several runs."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# `bayplan bench` reports elapsed time; processor time is what runs on a shared machine can be compared by.
BENCH_OF_PROCESSOR_TIME = (
    "import time; time.perf_counter = time.process_time; from bayplan.cli.main import main; main()"
)


@contextlib.contextmanager
def generated(generator, *arguments):
    """The path of a file with the output of a generator."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([sys.executable, HERE / generator, *map(str, arguments)], stdout=file, check=True)
        file.flush()
        yield file.name


def last_line(*command):
    """The last line that a program prints, decoded."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src")}  # this tree, whatever version is installed
    words = [sys.executable, *map(str, command)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def placed(kind, path):
    """One run of `bayplan bench`."""
    return last_line("-m", "bayplan", "bench", kind, path)


def placed_in_processor_time(kind, path):
    """The same, in seconds of processor time."""
    return last_line("-c", BENCH_OF_PROCESSOR_TIME, "bench", kind, path)


def best(runs):
    return min(runs, key=lambda run: run["seconds"])


def per_second(result):
    return result.get("pods_per_s") or result["bindings_per_s"]
