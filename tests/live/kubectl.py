"""kubectl of the environment, for what a user would type."""

import pathlib
import subprocess
import sys


def kubectl(*arguments, kubeconfig):
    """What kubectl answers, as a CompletedProcess; it may have failed."""
    command = [pathlib.Path(sys.executable).with_name("kubectl"), "--kubeconfig", kubeconfig, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
