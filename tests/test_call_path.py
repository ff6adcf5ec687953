"""A reader who follows one answer from the command to the table passes through a limited number of functions."""

import pathlib
import re
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parent.parent / "benchmarks" / "call_path.py"


def test_the_path_of_the_first_example_is_within_its_limit():
    # In a process of its own: what was called and cached before is not called again.
    found = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    n_functions, n_files = map(int, re.findall(r"(\d+) (?:functions|files)", found.stdout))
    assert (n_functions > 300, n_files > 50) == (True, True)  # the command ran to its end
