"""kubectl of the environment, for commands that a user would run."""

import pathlib
import subprocess
import sys


def kubectl(*arguments, kubeconfig):
    """Run kubectl and return its CompletedProcess; it may have failed."""
    command = [pathlib.Path(sys.executable).with_name("kubectl"), "--kubeconfig", kubeconfig, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
