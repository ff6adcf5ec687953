"""`bayplan snapshot`: a cluster as one file for a bug report. Reads no secrets, and hides names if asked to."""

from __future__ import annotations

import pathlib
import secrets
from typing import TYPE_CHECKING

import click

from bayplan.cli import commands, loading, options, outcomes
from bayplan.cli.console import Console
from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from bayplan.wire.pods import Pod

_HIDING = "What is told"
_KEY_BYTES = 32


@commands.command(
    "snapshot",
    summary="Write a cluster into one JSON file that gives the same answers, for a bug report.",
    examples=(
        "bayplan snapshot --context prod --hash-names --output-file snapshot.json",
        "bayplan snapshot -f cluster.yaml -f app.yaml --output-file snapshot.json",
        "bayplan snapshot --context prod --hash-names --hash-key-file key --output-file monday.json",
        "bayplan place -f snapshot.json",
    ),
    details=(
        "Only what Bayplan reads to decide is written: no environment, arguments or commands of containers, no "
        "annotations of others. Secrets and ConfigMaps are neither listed nor written, so `quota` finds no limits in a "
        "snapshot. With --hash-names, names, "
        "namespaces, labels, images and the like become hashes with a key that is thrown away; words of Kubernetes "
        "itself stay, and so do sizes, counts and times. Nodes of equal score may then be taken in another order. "
        "Read the file before you send it. Exit code 0 if it was written, 2 for bad input, 3 for no access."
    ),
    groups=(options.SOURCES, options.CONSOLE),
    params=(
        commands.Option("--hash-names", is_flag=True, heading=_HIDING, help="Replace every name by a keyed hash."),
        commands.Option(
            "--hash-key-file",
            metavar="FILE",
            type=click.Path(),
            heading=_HIDING,
            help="Hash names with the key in this file, so that snapshots can be compared. Keep the key to yourself.",
        ),
        commands.Option("-n", "--namespace", metavar="NAME", default="default", help="Of objects that name none."),
    ),
)
def snapshot(
    *,
    hash_names: bool,
    hash_key_file: str | None,
    namespace: str,
    sources: options.Sources,
    console: Console,
) -> int:
    """Write the snapshot."""
    sources.check()
    key = _key(hash_key_file) if hash_key_file else secrets.token_bytes(_KEY_BYTES)
    from bayplan.model.semantics import DESIGN
    from bayplan.writing import snapshots as making
    from bayplan.writing.name_hashing import Renaming

    pods: list[Pod] = []
    # By the rules that refuse least: what some rules can decide on must be possible to report.
    inputs, _ = loading.read(sources, namespace, DESIGN, console, sinks={"Pod": pods.append})
    taken = making.snapshot_of(inputs, pods)
    hides = hash_names or bool(hash_key_file)
    console.answer(taken.text(Renaming(key) if hides else None))
    for missing in making.left_out(inputs):
        console.note(missing)
    names = "names are hashed" if hides else "names are as they are; --hash-names hides them"
    console.note(f"{len(taken.objects)} objects; {names}")
    return outcomes.YES


def _key(path: str) -> bytes:
    try:
        key = pathlib.Path(path).read_bytes().strip()
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=path)) from None
    if not key:
        raise InputError(Fault("the key is empty", file=path))
    return key
