"""
Compare this tree with another one, row by row.

    .venv/bin/python benchmarks/against.py OTHER_TREE [--only TEXT] [--rounds N] [--limit RATIO]

The two trees take turns on the same input, each run in a process of its own; processor time, best of N (default 5). A
row above the limit (default 1.05) is measured once more, and the better ratio counts. Exit code 1 if a row stays above.
Use it with a clone of the commit before a change: `git worktree add ../before COMMIT`.
"""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys

import decisions
from measuring import BENCH_OF_PROCESSOR_TIME, generated

ROOT = pathlib.Path(__file__).parent.parent
COMMANDS = [
    ("place, first example", "place -f {examples}/01-first-pod"),
    ("explain, first example", "explain pod/web-4 -f {examples}/01-first-pod"),
    ("validate", "validate -f {examples}/06-gate-in-ci/good"),
    ("place, dump of 1,000 nodes and 20,000 pods", "place -f {dump} -o name"),
    ("place, a fleet", "place -f {examples}/10-fleet-idc-first/fleet -f {examples}/10-fleet-idc-first/shop-3.yaml"),
    ("audit", "audit -f {examples}/12-audit/nodes.yaml"),
]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    arguments.add_argument("other", type=pathlib.Path, help="root of the tree to compare with")
    arguments.add_argument("--only", default="", help="only rows whose title contains this")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--limit", type=float, default=1.05)
    given = arguments.parse_args()
    print("| this over other | this, ms | other, ms | row |\n|---|---|---|---|", flush=True)
    slow = []
    for title, run in rows():
        if given.only not in title:
            continue
        ratio, ours, theirs = measured(run, given.other, given.rounds)
        if ratio > given.limit:
            again = measured(run, given.other, given.rounds)
            ratio, ours, theirs = min((ratio, ours, theirs), again)
        print(f"| {ratio:.2f} | {ours * 1000:,.1f} | {theirs * 1000:,.1f} | {title} |", flush=True)
        if ratio > given.limit:
            slow.append(title)
    if slow:
        sys.exit(f"above {given.limit}: {', '.join(slow)}")


def rows():
    for kind, cases in (("pods", decisions.PODS), ("fleet", decisions.FLEET)):
        for text, _, _ in cases:
            generator, *words = text.split()
            with generated(generator, *words) as path:
                yield f"`{text}`", lambda tree, kind=kind, path=path: benched(tree, kind, path)
    with generated("gen_dump.py", "1000", "20000", "200") as dump:
        for title, command in COMMANDS:
            words = command.format(examples=ROOT / "examples", dump=dump).split()
            yield title, lambda tree, words=words: processor_time(tree, words)


def measured(run, other, rounds):
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(run(ROOT))
        theirs.append(run(other))
    return min(ours) / min(theirs), min(ours), min(theirs)


def benched(tree, kind, path):
    """Seconds of processor time for the decisions alone."""
    words = [sys.executable, "-c", BENCH_OF_PROCESSOR_TIME, "bench", kind, path]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, env=environment(tree))
    return json.loads(done.stdout.splitlines()[-1])["seconds"]


def processor_time(tree, words):
    """Seconds of processor time for a whole command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "bayplan", *words], capture_output=True, check=False, env=environment(tree)
    )
    assert done.returncode in (0, 1), done.stderr.decode()  # yes or no, but an answer
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment(tree):
    """With bytecode written in both trees, as an installed program has it: else what is compiled first looks slower."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(tree / "src")}


if __name__ == "__main__":
    main()
