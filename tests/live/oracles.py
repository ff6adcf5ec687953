"""
What the real schedulers answer to questions of `bayplan decide`: small Go programs around upstream's own packages, built
once; for admission the API server itself. Compares nothing.

    python -m live.oracles pods|preemption|fleet [VERSION] < QUESTIONS > ANSWERS
                                                             (in tests/; `make oracle KIND=… VERSION=…`)
"""

import json
import subprocess
import sys

from live import admission_oracle, kube_binaries

ADMISSION = "admission"  # its questions are put to a server, not to a program
PROGRAMS = {
    "pods": (kube_binaries.MODULE, "kube-oracle"),
    "preemption": (kube_binaries.MODULE, "kube-oracle"),
    "fleet": (kube_binaries.KARMADA_MODULE, "karmada-oracle"),
}


def program(kind, version=None):
    """
    Return the path of the program that answers one kind of question; UnavailableError if it cannot be built.

    `version` is the minor version of Kubernetes, for all but fleets.
    """
    if kind == ADMISSION:
        return kube_binaries.find("kube-apiserver", version)
    return kube_binaries.own_program(*PROGRAMS[kind], None if kind == "fleet" else version)


def is_built(kind, version=None):
    """Whether the program is there without building it."""
    if kind == ADMISSION:
        return kube_binaries.is_server_built("kube-apiserver", version)
    return kube_binaries.is_built(*PROGRAMS[kind], None if kind == "fleet" else version)


def answers(kind, questions, version=None, *, attempts=2):
    """Return one answer for each question, in their order; a preemption is attempted more than once, as it is random."""
    if kind == ADMISSION:
        return admission_oracle.answers(questions, version)
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    found = program(kind, version)
    options = [] if kind == "fleet" else ["-attempts", str(attempts)]
    done = subprocess.run([found, *options, kind], input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{found.name} {kind} failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    kind, version = (*sys.argv[1:], *[None] * 2)[:2]
    if kind not in PROGRAMS or version not in (None, *kube_binaries.RELEASES):
        versions = "|".join(kube_binaries.RELEASES)
        sys.stderr.write(f"usage: python -m live.oracles {'|'.join(PROGRAMS)} [{versions}] < QUESTIONS > ANSWERS\n")
        return 2
    try:
        found = program(kind, version)
    except kube_binaries.UnavailableError as reason:
        sys.stderr.write(f"oracle: {reason}\n")
        return kube_binaries.UNAVAILABLE
    return subprocess.run([found, kind], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
