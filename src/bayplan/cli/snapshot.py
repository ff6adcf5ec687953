"""`bayplan snapshot`: a cluster as one file for a bug report. It reads no Secrets, and hashes names on request."""

from __future__ import annotations

import pathlib
import secrets

import click

from bayplan.cli import commands, loading, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.errors import Fault, InputError

_HEADING = "Names"
_KEY_BYTES = 32


@commands.command(
    "snapshot",
    summary=SUMMARIES["snapshot"],
    examples=(
        "bayplan snapshot --context prod --hash-names --output-file snapshot.json",
        "bayplan snapshot -f cluster.yaml -f app.yaml --output-file snapshot.json",
        "bayplan snapshot --context prod --hash-names --hash-key-file key --output-file monday.json",
        "bayplan place -f snapshot.json",
    ),
    details=(
        "Commands give the same answers on the snapshot as on the cluster. It holds only the fields that Bayplan uses "
        "for decisions: no environment, arguments or commands of containers, and no annotations of other tools. "
        "Secrets and ConfigMaps are neither listed nor written, so `quota` finds no limits in a snapshot. With "
        "--hash-names, names, namespaces, labels and images are replaced by hashes with a key that is not kept; words "
        "that Kubernetes defines, sizes, counts and times stay. Nodes with equal scores may then be chosen in another "
        "order. Read the file before you send it. Exit code 0 if it was written, 2 for bad input, 3 for no access."
    ),
    groups=(options.INPUT, options.CONSOLE),
    params=(
        commands.Option("--hash-names", is_flag=True, heading=_HEADING, help="Replace every name by a keyed hash."),
        commands.Option(
            "--hash-key-file",
            metavar="FILE",
            type=click.Path(),
            heading=_HEADING,
            help="Hash names with the key in this file, so that snapshots can be compared. Keep the key secret.",
        ),
        commands.Option(
            "-n",
            "--namespace",
            metavar="NAME",
            type=value_types.Name(),
            default="default",
            help="Namespace of objects without one.",
        ),
    ),
)
def snapshot(
    *,
    hash_names: bool,
    hash_key_file: str | None,
    namespace: str,
    sources: options.InputOptions,
    console: Console,
) -> int:
    """Write the snapshot."""
    spec = loading.spec_of(sources, namespace, options.configured_settings())
    key = _key(hash_key_file) if hash_key_file else secrets.token_bytes(_KEY_BYTES) if hash_names else None
    from bayplan.library.cluster import Cluster
    from bayplan.library.reading import Reading
    from bayplan.writing import tables

    with loading.in_progress(Cluster(Reading(spec)), console) as state:
        taken = state.snapshot(hash_key=key)
    console.answer(taken.text)
    for missing in taken.notes:
        console.note(missing)
    names = "names are not hashed; use --hash-names to hash them" if key is None else "names are hashed"
    console.note(f"{tables.counted(taken.n_objects, 'object')}; {names}")
    return commands.EXIT_YES


def _key(path: str) -> bytes:
    try:
        key = pathlib.Path(path).read_bytes().strip()
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=path)) from None
    if not key:
        raise InputError(Fault("the key is empty", file=path))
    return key
