"""`python -m agreeing`: put random questions to the real schedulers and to Bayplan, and print where they differ."""

import argparse
import collections
import concurrent.futures
import itertools
import json
import sys
import time

from agreeing import drawn_admissions, drawn_fleets, drawn_preemptions, drawn_questions, minimising, schedulers
from live import kube_binaries, oracles

DRAWN = {"pods": drawn_questions, "preemption": drawn_preemptions, "fleet": drawn_fleets, "admission": drawn_admissions}
BATCH = 200
MINIMISED = 12  # differences of which the smallest question is searched for
MAX_SHOWN = 6000  # characters


def main():
    options = _arguments().parse_args()
    kinds = [options.kind] if options.kind else list(DRAWN)
    versions = [options.version] if options.version else list(kube_binaries.RELEASES)
    try:
        results = [
            ask(kind, version, options.seed, options.questions)
            for kind in kinds
            for version in (versions if kind != "fleet" else versions[:1])
        ]
    except kube_binaries.UnavailableError as reason:
        sys.stderr.write(f"agree: {reason}\n")
        return kube_binaries.UNAVAILABLE
    sys.stdout.write(table(results))
    for result in results:
        report(result)
    return 1 if any(result.differences for result in results) else 0


def _arguments():
    parser = argparse.ArgumentParser(prog="agreeing", description=__doc__)
    parser.add_argument("--questions", type=int, default=2000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--kind", choices=DRAWN)
    parser.add_argument("--version", choices=kube_binaries.RELEASES)
    return parser


class Result:
    """What one run has found: counts, and the questions behind every difference, the smallest first."""

    def __init__(self, kind, version, seed):
        self.kind, self.version, self.seed = kind, version, seed
        self.counts = collections.Counter()
        self.differences = {}
        self.known = collections.Counter()

    def add(self, found):
        answers = found.real.get("answers", [found.real])
        self.counts["questions"] += 1
        self.counts["decisions"] += len(answers)
        self.counts["placed"] += sum(
            1
            for one in answers
            if one.get("best") or one.get("nominated") or one.get("clusters") or one.get("causes") == []
        )
        self.counts["failed"] += sum(1 for one in answers if one.get("error"))
        if found.known:
            self.known[found.known] += 1
        elif found.difference:
            self.differences.setdefault(found.difference, []).append(found)


def ask(kind, version, seed, n):
    """Ask `n` questions; the real scheduler works on the next ones while Bayplan answers."""
    oracles.program(kind, version)
    result, started = Result(kind, version, seed), time.monotonic()
    numbers = range(n)
    batches = [numbers[start : start + BATCH] for start in range(0, n, BATCH)]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_asked, kind, version, seed, batches[0])
        for following in itertools.chain(batches[1:], (None,)):
            questions, real = waiting.result()
            if following is not None:
                waiting = pool.submit(_asked, kind, version, seed, following)
            for found in schedulers.with_ours(kind, version, questions, real):
                result.add(found)
            _progress(result, n, time.monotonic() - started)
    return result


def _asked(kind, version, seed, numbers):
    questions = [schedulers.with_version(kind, DRAWN[kind].question(seed, number), version) for number in numbers]
    return questions, oracles.answers(kind, questions, version)


def _progress(result, n, seconds):
    done = result.counts["questions"]
    differing = sum(map(len, result.differences.values()))
    line = f"{result.kind} {result.version}: {done} of {n}, {differing} differ, {seconds:.0f} s"
    end = "\n" if done == n or not sys.stderr.isatty() else "\r"
    if sys.stderr.isatty() or done == n or done % (10 * BATCH) == 0:
        sys.stderr.write(line + end)


def table(results):
    head = ("kind", "version", "seed", "questions", "decisions", "placed", "failed", "known", "differ")
    rows = [head]
    for one in results:
        counts = (one.counts[name] for name in ("questions", "decisions", "placed", "failed"))
        differing = sum(map(len, one.differences.values()))
        rows.append((one.kind, one.version, one.seed, *counts, sum(one.known.values()), differing))
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(head))]
    return "".join(
        "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in rows
    )


def report(result):
    """Every difference with its smallest question."""
    for row, times in result.known.most_common():
        sys.stdout.write(f"\n{times} known: {row}\n")
    by_count = sorted(result.differences.items(), key=lambda item: -len(item[1]))
    for number, (text, found) in enumerate(by_count):
        smallest = min(found, key=lambda one: len(json.dumps(one.question)))
        names = ", ".join(one.question["name"] for one in found[:5])
        sys.stdout.write(f"\n{result.kind} {result.version}: {len(found)} times: {text}\n  {names}\n")
        sys.stdout.flush()
        if number < MINIMISED:
            smallest = minimising.minimised(smallest)
        for name, value in (("question", smallest.question), ("real", smallest.real), ("bayplan", smallest.ours)):
            sys.stdout.write(f"  {name}: {json.dumps(value)[:MAX_SHOWN]}\n")


if __name__ == "__main__":
    sys.exit(main())
