"""The option that writes the manifests that a fix of an explanation changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from bayplan.cli import commands
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.library.explanation import Explanation

APPLY_FIX = commands.Option(
    "--apply-fix",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write the manifests that the fix of this number changes, as -o yaml or json, instead of the explanation.",
)


def write_changed(number: int, explanation: Explanation, output: str, console: Console) -> None:
    """Write the manifests that a fix changes; raises ArgumentError if there is no such fix."""
    from bayplan.writing import versioned

    fixed = explanation.apply_fix(number)
    fix = explanation.fixes[number - 1]
    console.note(f"fix {number}: {fix.change}: fits on {', '.join(fix.fits_on)}")
    for one in fixed.deleted:
        console.note(f"to be deleted, so that its controller creates it again: {_command(one)}")
    if output == "json":
        console.answer(versioned.as_json({"apiVersion": "v1", "kind": "List", "items": list(fixed.manifests)}))
    else:
        console.answer("---\n".join(map(versioned.as_yaml, fixed.manifests)))


def _command(deleted: Mapping[str, str]) -> str:
    namespace = f" -n {deleted['namespace']}" if "namespace" in deleted else ""
    return f"kubectl delete {deleted['kind'].lower()}{namespace} {deleted['name']}"
