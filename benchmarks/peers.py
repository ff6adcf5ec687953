"""
Decisions of kube-scheduler's and karmada-scheduler's own code on a benchmark input.

    python benchmarks/peers.py pods|fleet FILE      prints what `bayplan bench` prints

Both are small programs around upstream's packages, in one process and without an API server. They are built with Go
once, into the cache with the servers of the live tests.
"""

import functools
import json
import pathlib
import subprocess
import sys
from typing import Literal

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

from live import kube_binaries

PROGRAMS = {
    "pods": (kube_binaries.MODULE, "kube-decisions"),
    "fleet": (kube_binaries.KARMADA_MODULE, "karmada-decisions"),
}


def measured(kind: Literal["pods", "fleet"], path) -> dict | None:
    """`ok`, `fail`, `seconds` and a rate, as of `bayplan bench`; None, with a message, if it is not available."""
    found = program(kind)
    if found is None:
        return None
    done = subprocess.run([found, path], capture_output=True, check=False, text=True)
    if done.returncode:
        raise RuntimeError(f"{found.name} {path} failed:\n{done.stderr}")
    return json.loads(done.stdout)


@functools.cache  # a missing program is searched for and reported once
def program(kind):
    """The path of the peer, built if necessary; None, with a message, if that is not possible."""
    module, name = PROGRAMS[kind]
    try:
        return kube_binaries.own_program(module, name)
    except kube_binaries.UnavailableError as reason:
        sys.stderr.write(f"{name} is left out: {reason}\n")
        return None


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in PROGRAMS:
        sys.exit("usage: peers.py pods|fleet FILE")
    answer = measured(sys.argv[1], sys.argv[2])
    if answer is None:
        sys.exit(kube_binaries.UNAVAILABLE)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
