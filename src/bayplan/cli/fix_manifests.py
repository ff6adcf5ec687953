"""The manifests that the fixes of an explanation change: found in the files again, or fetched, and written changed."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from bayplan.cli import commands
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.cli.options import InputOptions
    from bayplan.explaining.explanation import Explanation
    from bayplan.explaining.patches import ManifestSource, ObjectPatch
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.reading.manifests import Lookup

APPLY_FIX = commands.Option(
    "--apply-fix",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write the manifests that the fix of this number changes, as -o yaml or json, instead of the explanation.",
)


def repeatable_input(sources: InputOptions) -> BinaryIO:
    """Standard input, which is read into memory if it is part of the input: manifests are looked up in it again."""
    if "-" in (*sources.filename, *sources.state):
        return io.BytesIO(sys.stdin.buffer.read())
    return sys.stdin.buffer


@contextlib.contextmanager
def manifest_source(
    explanation: Explanation, sources: InputOptions, namespace: str, cluster: LoadedCluster, stdin: BinaryIO
) -> Iterator[ManifestSource]:
    """Where the manifests are found while the block runs: in the files, then in the live cluster."""
    from bayplan.reading import manifests

    if stdin.seekable():
        stdin.seek(0)
    wanted = {("", name) for fix in explanation.fixes for one in fix.revisions or () for name in (one.node, one.like)}
    keys = [one.pod or explanation.workload for fix in explanation.fixes for one in fix.revisions or ()]
    wanted |= {tuple(key.split("/", 1)) for key in keys}  # type: ignore[misc]
    in_files = manifests.in_files(
        (*sources.filename, *sources.state), wanted, recursive=sources.recursive, namespace=namespace, stdin=stdin
    )
    if not sources.is_live:
        yield manifests.source_from(in_files, cluster.made_for)
        return
    from bayplan.watching import fetching

    with fetching.object_lookup(sources.open()) as live:

        def lookup(*key: Any) -> Any:
            found = in_files(*key)
            return live(*key) if found is None else found

        both: Lookup = lookup
        yield manifests.source_from(both, cluster.made_for)


def write_changed(number: int, explanation: Explanation, source: ManifestSource, output: str, console: Console) -> None:
    """Write the manifests that a fix changes; a usage error if there is no such fix."""
    from bayplan.explaining import patches
    from bayplan.writing import versioned

    if number > len(explanation.fixes):
        known = f"it has {len(explanation.fixes)}" if explanation.fixes else "it has none"
        raise click.BadParameter(
            f"there is no fix {number} of {explanation.workload}: {known}", param_hint="--apply-fix"
        )
    fix = explanation.fixes[number - 1]
    changed = patches.of_fix(fix.revisions, explanation.workload, source)
    if changed is None:
        raise click.BadParameter(
            f"fix {number} ({fix.change}) changes an object whose manifest is not in the input",
            param_hint="--apply-fix",
        )
    console.note(f"fix {number}: {fix.change}: fits on {', '.join(fix.fits_on)}")
    for one in changed:
        if one.after is None:
            console.note(f"to be deleted, so that its controller creates it again: {_command(one)}")
    written = [one.after for one in changed if one.after is not None]
    if output == "json":
        console.answer(versioned.as_json({"apiVersion": "v1", "kind": "List", "items": written}))
    else:
        console.answer("---\n".join(map(versioned.as_yaml, written)))


def _command(one: ObjectPatch) -> str:
    namespace = f" -n {one.object['namespace']}" if "namespace" in one.object else ""
    return f"kubectl delete {one.object['kind'].lower()}{namespace} {one.object['name']}"
