"""
What the real schedulers answer to questions of `bayplan decide`: small Go programs around upstream's own packages, built
once. Starts no server and compares nothing.

    python -m live.oracles pods|preemption|fleet < QUESTIONS > ANSWERS      (in tests/; `make oracle KIND=…`)
"""

import json
import subprocess
import sys

from live import kube_binaries

PROGRAMS = {
    "pods": (kube_binaries.MODULE, "kube-oracle"),
    "preemption": (kube_binaries.MODULE, "kube-oracle"),
    "fleet": (kube_binaries.KARMADA_MODULE, "karmada-oracle"),
}


def program(kind):
    """Return the path of the program that answers one kind of question; UnavailableError if it cannot be built."""
    return kube_binaries.own_program(*PROGRAMS[kind])


def answers(kind, questions):
    """Return one answer for each question, in their order."""
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([program(kind), kind], input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program(kind).name} {kind} failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PROGRAMS:
        sys.stderr.write(f"usage: python -m live.oracles {'|'.join(PROGRAMS)} < QUESTIONS > ANSWERS\n")
        return 2
    kind = sys.argv[1]
    try:
        found = program(kind)
    except kube_binaries.UnavailableError as reason:
        sys.stderr.write(f"oracle: {reason}\n")
        return kube_binaries.UNAVAILABLE
    return subprocess.run([found, kind], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
