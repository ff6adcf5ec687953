"""`bayplan version`: the version, and the schedulers whose decisions it reproduces."""

from __future__ import annotations

import platform

import bayplan
from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

KUBERNETES, KARMADA = "1.36", "1.18"


@commands.command(
    "version",
    summary=SUMMARIES["version"],
    examples=("bayplan version", "bayplan version -o json"),
    groups=(options.CONSOLE,),
    params=(options.output("text", "json", "yaml"),),
)
def version(output: str, console: Console) -> int:
    """Write the versions."""
    if output == "text":
        console.answer(f"bayplan {bayplan.__version__} (Kubernetes {KUBERNETES}, Karmada {KARMADA})\n")
        return commands.EXIT_YES
    from bayplan.writing import versioned

    content = {
        "version": bayplan.__version__,
        "python": platform.python_version(),
        "supported": {"kubernetes": KUBERNETES, "karmada": KARMADA},
    }
    console.answer(versioned.written(versioned.document("Version", content), output))
    return commands.EXIT_YES
