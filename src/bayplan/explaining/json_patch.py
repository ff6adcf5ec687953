"""
JSON Patch (RFC 6902): the operations that make one manifest of another. Knows nothing of Kubernetes.

Operations on items of a list are guarded by a `test`, so that they fail on an object whose list has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

Operation = dict[str, Any]


def difference(before: Any, after: Any, path: str = "") -> list[Operation]:
    """The operations that turn the first value into the second; None at the root means that there is no document."""
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        return list(_of_objects(before, after, path))
    if isinstance(before, list) and isinstance(after, list):
        return list(_of_lists(before, after, path))
    if after is None and not path:
        return [{"op": "remove", "path": path}]
    return [{"op": "add" if before is None else "replace", "path": path, "value": after}]


def _of_objects(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Operation]:
    for name, value in before.items():
        below = f"{path}/{_escaped(name)}"
        if name not in after:
            yield {"op": "remove", "path": below}
        elif value is None and after[name] is not None:
            yield {"op": "replace", "path": below, "value": after[name]}
        else:
            yield from difference(value, after[name], below)
    for name, value in after.items():
        if name not in before:
            yield {"op": "add", "path": f"{path}/{_escaped(name)}", "value": value}


def _of_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    """Items that are removed, from the last on; items that change in place; items that are added at the end."""
    kept = _subsequence(before, after)
    if kept is not None:
        for position in reversed([n for n in range(len(before)) if n not in kept]):
            yield {"op": "test", "path": f"{path}/{position}", "value": before[position]}
            yield {"op": "remove", "path": f"{path}/{position}"}
        yield from ({"op": "add", "path": f"{path}/-", "value": value} for value in after[len(kept) :])
    elif len(before) == len(after):
        for position, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                yield _test(old, new, f"{path}/{position}")
                yield from difference(old, new, f"{path}/{position}")
    else:
        yield {"op": "test", "path": path, "value": before}
        yield {"op": "replace", "path": path, "value": after}


def _test(old: Any, new: Any, path: str) -> Operation:
    """That the item is the one that is meant; one with a name is told by it."""
    name = old.get("name") if isinstance(old, dict) and isinstance(new, dict) else None
    if name is not None and name == new.get("name"):
        return {"op": "test", "path": f"{path}/name", "value": name}
    return {"op": "test", "path": path, "value": old}


def _subsequence(before: Sequence[Any], after: Sequence[Any]) -> list[int] | None:
    """The positions of items that stay, if they are what the new list begins with and its other items are new."""
    kept: list[int] = []
    position = 0
    for value in after:
        found = next((n for n in range(position, len(before)) if before[n] == value), None)
        if found is None:
            break
        kept.append(found)
        position = found + 1
    added = after[len(kept) :]
    is_in_place = len(before) == len(after) and len(kept) < len(before)
    return None if is_in_place or any(value in before for value in added) else kept


def applied(patch: Sequence[Operation], document: Any) -> Any:
    """The document after the operations; raises ValueError if a test fails, KeyError or IndexError for a bad path."""
    root = {"": deepcopy(document)}
    for operation in patch:
        *parents, last = [_unescaped(one) for one in operation["path"].split("/")]
        parent: Any = root
        for step in parents:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        key: Any = int(last) if isinstance(parent, list) and last != "-" else last
        match operation["op"]:
            case "test":
                if parent[key] != operation["value"]:
                    raise ValueError(f"{operation['path']} is not as expected")
            case "remove":
                del parent[key]
            case "add" if isinstance(parent, list):
                parent.insert(len(parent) if key == "-" else key, deepcopy(operation["value"]))
            case _:
                parent[key] = deepcopy(operation["value"])
    return root.get("")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _unescaped(name: str) -> str:
    return name.replace("~1", "/").replace("~0", "~")


def put_null(path: str, document: Any) -> None:
    """Put null where a member of an object was removed; what was an item of a list needs none."""
    *steps, name = (_unescaped(step) for step in path.split("/")[1:])
    for step in steps:
        if isinstance(document, list):
            document = document[int(step)] if int(step) < len(document) else None
        else:
            document = document.get(step)
        if not isinstance(document, dict | list):
            return
    if isinstance(document, dict) and name not in document:
        document[name] = None
