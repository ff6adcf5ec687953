"""
Completion of namespaces and of KIND/NAME from the files on the command line and from the live cluster that it names.

It must answer while a person types, so files are skimmed rather than read: only what identifies objects is looked at,
and only in the first megabytes. What cannot be skimmed gives no candidates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import click
import msgspec

MAX_JSON_BYTES, MAX_YAML_BYTES = 32_000_000, 8_000_000  # of all files; a tenth of a second each
MAX_FILES = 200
_EXTENSIONS = (".json", ".yaml", ".yml")
# The fields of an object as kubectl and people write them: at the start of a line, or as items of a List.
_KIND = re.compile(rb"^(?:  |- |)kind: *[\"']?(\w+)", re.MULTILINE)
_METADATA = re.compile(rb"^(  )?metadata:(?: *\{([^}]*)|((?:\n(?(1)  |)  .*)*))", re.MULTILINE)
_FIELD = re.compile(rb"(?:^|[\s{,])(name|namespace): *[\"']?([^\s\"',}]+)")
_START = re.compile(rb"^(?:---|- (?=apiVersion:|kind:))", re.MULTILINE)

Identity = tuple[str, str, str]  # kind, namespace, name


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""


class _Item(msgspec.Struct, frozen=True):
    kind: str = ""
    metadata: _Metadata = _Metadata()


class _Root(_Item, frozen=True):
    items: tuple[_Item, ...] = ()


def identities(paths: Sequence[str]) -> Iterator[Identity]:
    """What identifies the objects of the files, as far as they are skimmed."""
    left = {True: MAX_JSON_BYTES, False: MAX_YAML_BYTES}
    for path in [one for given in paths for one in _files(given)][:MAX_FILES]:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
                is_json = file.read(64).lstrip()[:1] == b"{"
                file.seek(0)
                data = file.read(left[is_json] + 1)
        except OSError:
            continue
        left[is_json] -= len(data)
        if left[is_json] < 0 and is_json:
            return  # half a JSON document cannot be read
        yield from _of_json(data) if is_json else _of_yaml(data)


def _files(path: str) -> list[str]:
    if not os.path.isdir(path):  # noqa: PTH112
        return [path] if os.path.isfile(path) else []  # noqa: PTH113
    return sorted(entry.path for entry in os.scandir(path) if entry.name.endswith(_EXTENSIONS) and entry.is_file())


def _of_json(data: bytes) -> Iterator[Identity]:
    try:
        root = msgspec.json.decode(data, type=_Root)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return
    of_items = root.kind.removesuffix("List")
    for one in root.items:
        yield one.kind or of_items, one.metadata.namespace, one.metadata.name
    if not root.items:
        yield root.kind, root.metadata.namespace, root.metadata.name


def _of_yaml(data: bytes) -> Iterator[Identity]:
    for part in _START.split(data):
        kind, metadata = _KIND.search(part), _METADATA.search(part)
        if kind is None or metadata is None:
            continue
        block = metadata[2] if metadata[2] is not None else metadata[3]
        indent = len(metadata[1] or b"") + 2
        lines = [block] if metadata[2] is not None else [x for x in block.splitlines() if _indent(x) == indent]
        fields = {name.decode(): value.decode("utf-8", "replace") for x in lines for name, value in _FIELD.findall(x)}
        yield kind[1].decode(), fields.get("namespace", ""), fields.get("name", "")


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" "))


def _paths(ctx: click.Context) -> list[str]:
    return [path for name in ("filename", "state") for path in ctx.params.get(name) or () if path != "-"]


def complete_namespace(ctx: click.Context, _: click.Parameter, typed: str) -> list[str]:
    """The namespaces of the files and of the cluster."""
    found = set()
    for kind, namespace, name in identities(_paths(ctx)):
        found.add(name if kind == "Namespace" else namespace)
    found |= {name for _, name in _live_names(ctx, ["Namespace"], None)}
    return sorted(one for one in found if one and one.startswith(typed))


def complete_workload(ctx: click.Context, _: click.Parameter, typed: str) -> list[str]:
    """KIND/NAME of the pods, the controllers and the bindings of the input; NAME alone after a kind."""
    from bayplan.wire import kinds

    rows = {row.kind: row.kind.lower() for row in kinds.KINDS.values() if row.pod_path is not None}
    rows |= {row.kind: row.kind.lower() for row in kinds.held_in("bindings")}
    short = {name: row.kind for row in kinds.KINDS.values() for name in (row.short_name, row.plural, row.kind.lower())}
    namespace, before = ctx.params.get("namespace"), ctx.params.get("workload") or ()
    asked, slash, _name = typed.partition("/")
    if before:
        wanted = {short.get(before[0].lower(), "")} & rows.keys()
    else:
        wanted = {kind for kind, shown in rows.items() if not slash and shown.startswith(typed)}
        wanted |= {short.get(asked.lower(), "")} & rows.keys()
    named = {(k, name) for k, its, name in identities(_paths(ctx)) if namespace in (None, its or namespace)}
    found = set()
    for kind, name in {*named, *_live_names(ctx, wanted, namespace)}:
        if kind in wanted and name:
            # In the spelling that was begun.
            written = asked if slash and short.get(asked.lower()) == kind else rows[kind]
            found.add(name if before else f"{written}/{name}")
    return sorted(one for one in found if one.startswith(typed))


def _live_names(ctx: click.Context, wanted: Iterable[str], namespace: str | None) -> set[tuple[str, str]]:
    """Kind and name of the objects of these kinds in the live cluster, if one is read."""
    from bayplan.cli import live_completion
    from bayplan.wire import kinds

    sources = live_completion.sources_of(ctx)
    if sources is None or not wanted:
        return set()
    rows = [row for row in kinds.decoded() if row.kind in wanted]
    return {(row.kind, name) for row, name in live_completion.names(sources, rows, namespace)}
