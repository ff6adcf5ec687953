"""A kustomization, rendered by kubectl or kustomize if one of them is installed. Nothing is rendered here."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

from bayplan.errors import Fault
from bayplan.reading.documents import Source

_PROGRAMS = (("kubectl", "kustomize"), ("kustomize", "build"))
_TIMEOUT_SECONDS = 120.0
_MAX_LINES_SHOWN = 3


def render(folder: str) -> Source | Fault:
    """The manifests that the kustomization in a folder renders, or why it cannot be rendered."""
    if not pathlib.Path(folder).is_dir():
        return Fault("no such directory", file=folder)
    program = next((one for one in _PROGRAMS if shutil.which(one[0])), None)
    if program is None:
        return Fault("neither kubectl nor kustomize is on the PATH, and one of them has to render it", file=folder)
    shown = " ".join(program)
    try:
        ended = subprocess.run(
            [*program, "--", folder],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Fault(f"{shown} failed: {error}", file=folder)
    if ended.returncode:
        lines = [line for line in ended.stderr.decode(errors="replace").splitlines() if line.strip()]
        return Fault(f"{shown} failed: {' '.join(lines[-_MAX_LINES_SHOWN:])}", file=folder)
    if not ended.stdout.strip():
        return Fault("the kustomization renders nothing", file=folder)
    return Source(f"{folder} (rendered)", ended.stdout)  # lines are those of what is rendered
