"""
Many cases in worker processes: how many ran, what failed, and how much time and memory they took.

A worker runs a range of numbers and prints one line for each failure and one at its end. It is a process of its own, so that
one that dies or is stopped is a failure of the case that it was running.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from fuzzing import cases, running, shrinking

CASES_PER_WORKER = 10_000
MAX_ELAPSED_SECONDS = 3600  # of one worker; processor time is limited case by case
_ROOT = pathlib.Path(__file__).parents[2]


def run(seed, count, folder, n_workers=1, progress=lambda result: None):
    """
    Run cases 0 to `count` of a seed; failures, shrunk, are written into the folder. Returns the result as plain values.

    `progress` receives the result so far whenever a worker has finished.
    """
    began, waiting, at_work, found = time.time(), list(range(0, count, CASES_PER_WORKER)), [], []
    while waiting or at_work:
        while waiting and len(at_work) < n_workers:
            first = waiting.pop(0)
            at_work.append(_worker("run", seed, first, min(count, first + CASES_PER_WORKER), str(folder)))
        found += _finished(at_work.pop(0))
        progress(_result(seed, found, time.time() - began))
    return _result(seed, found, time.time() - began)


def _result(seed, found, elapsed):
    ends = [line for line in found if "cases" in line]
    failures = {}
    for line in found:
        if "failure" in line:
            failures.setdefault(line["failure"], line)
    n_cases, seconds = sum(line["cases"] for line in ends), sum(line["seconds"] for line in ends)
    slowest = max(ends, key=lambda line: line["slowest"], default={"slowest": 0, "slowestCase": None})
    return {
        "seed": seed,
        "documents": n_cases,
        "failures": sorted(failures.values(), key=lambda line: line["case"]),
        "exitCodes": _summed(ends, "codes"),
        "byCommand": _summed(ends, "doors"),
        "slowestSeconds": slowest["slowest"],
        "slowestCase": slowest["slowestCase"],
        "peakBytes": max((line["peak"] for line in ends), default=0),
        "processorSeconds": round(seconds, 1),
        "documentsPerProcessorSecond": round(n_cases / max(seconds, 0.1)),
        "elapsedSeconds": round(elapsed),
    }


def compare_hash_seeds(seed, count, first=0):
    """The numbers of the cases whose answers depend on the hash seed of Python."""
    workers = [_worker("digest", seed, first, first + count, "", hash_seed=hash_seed) for hash_seed in ("1", "2")]
    one, two = (_finished(worker) for worker in workers)
    return [a["case"] for a, b in zip(one, two, strict=True) if a != b]


def _summed(ends, field):
    total = {}
    for line in ends:
        for key, n in line[field].items():
            total[key] = total.get(key, 0) + n
    return dict(sorted(total.items()))


def _worker(*words, hash_seed="0"):
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "PYTHONPATH": os.pathsep.join(map(str, (_ROOT / "src", _ROOT / "tests"))),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "fuzzing", "--worker", *map(str, words)],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    )


def _finished(worker):
    try:
        output, _ = worker.communicate(timeout=MAX_ELAPSED_SECONDS)
    except subprocess.TimeoutExpired:
        worker.kill()
        output, _ = worker.communicate()
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if worker.returncode:
        at = max((line["at"] for line in lines if "at" in line), default=-1)
        lines.append({"failure": f"the process ended with {worker.returncode} after case {at}", "case": at})
    return [line for line in lines if "at" not in line]


def work(mode, seed, first, end, folder):
    """What a worker does."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        running.prepare()
        if mode == "digest":
            return _digest(seed, first, end)
        return _work(seed, first, end, pathlib.Path(folder))


def _work(seed, first, end, folder):
    known, codes, used, slowest, before = set(), {}, {}, (0.0, first), time.process_time()
    for number in range(first, end):
        if number % 100 == 0:
            _tell(at=number)
        case = cases.case(seed, number)
        outcome = running.run(case.arguments, case.files, case.input)
        codes[str(outcome.code)] = codes.get(str(outcome.code), 0) + 1
        used[case.door] = used.get(case.door, 0) + 1
        slowest = max(slowest, (outcome.seconds, number))
        if running.peak_bytes() > running.MAX_BYTES and "memory" not in known:
            outcome.failure = "memory"
        if outcome.failure and outcome.failure not in known:
            known.add(outcome.failure)
            before_shrinking = time.process_time()
            files = shrinking.shrunk(case, outcome.failure) if outcome.failure != "memory" else case.files
            before += time.process_time() - before_shrinking
            _tell(
                failure=outcome.failure,
                case=number,
                command=case.arguments,
                written=_written(case, files, outcome, folder / f"{seed}-{number}"),
            )
    _tell(
        cases=end - first, codes=codes, doors=used, slowest=round(slowest[0], 2), slowestCase=slowest[1], peak=running.peak_bytes(),
        seconds=time.process_time() - before,
    )  # fmt: skip


def _written(case, files, outcome, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    command = f"bayplan {' '.join(case.arguments)}{f' < {case.stdin}' if case.stdin else ''}"
    (folder / "failure.txt").write_text(f"{command}\n{outcome.failure}\n\n{outcome.detail}", errors="backslashreplace")
    return str(folder)


def _digest(seed, first, end):
    for number in range(first, end):
        case = cases.case(seed, number)
        outcome = running.run(case.arguments, case.files, case.input)
        _tell(case=number, digest=running.digest(case.door, outcome))


def _tell(**line):
    sys.stdout.write(f"{json.dumps(line)}\n")
    sys.stdout.flush()
