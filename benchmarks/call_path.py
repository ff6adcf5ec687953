"""
Functions and files that `bayplan place` runs through for the first example: how far a reader must follow one answer.

    .venv/bin/python benchmarks/call_path.py [--list]

Counts the functions and methods of Bayplan that are called at least once, each once, and the files they are in. Code
that only runs while a module is imported (module and class bodies, functions called from them) does not count, nor do
comprehensions and lambdas, which are part of the function around them.
"""

import contextlib
import io
import os
import pathlib
import sys
from collections import defaultdict

ROOT = pathlib.Path(__file__).parent.parent
SOURCE = ROOT / "src"
EXAMPLE = ROOT / "examples" / "01-first-pod"
# The library between the command and the engine is 36 functions in 9 files of it (decision 0031).
# Preferred terms that wait (decision 0020) are six functions, wakes that are found out in slices are three.
MAX_FUNCTIONS, MAX_FILES = 700, 129


def main():
    sys.path.insert(0, str(SOURCE))
    called = calls_of(["place", "-f", os.path.relpath(EXAMPLE)])
    if "--list" in sys.argv:
        for file, names in sorted(called.items()):
            print(f"{file} {len(names)}: {' '.join(sorted(names))}")
    n_functions = sum(len(names) for names in called.values())
    print(f"{n_functions} functions in {len(called)} files (at most {MAX_FUNCTIONS} in {MAX_FILES})")
    return 0 if n_functions <= MAX_FUNCTIONS and len(called) <= MAX_FILES else 1


def calls_of(arguments):
    """File → the qualified names of its functions that one run of the command calls."""
    from bayplan.cli import main as program

    package = str(SOURCE / "bayplan") + os.sep
    called = defaultdict(set)
    importing = [0]

    def profile(frame, event, _):
        code = frame.f_code
        if code.co_name == "<module>":
            importing[0] += (event == "call") - (event == "return")
        if event != "call" or importing[0] or not code.co_filename.startswith(package):
            return
        if not code.co_name.startswith("<"):
            called[code.co_filename.removeprefix(package)].add(code.co_qualname)

    sys.setprofile(profile)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            program.cli.main(arguments, prog_name="bayplan")
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return called


if __name__ == "__main__":
    sys.exit(main())
