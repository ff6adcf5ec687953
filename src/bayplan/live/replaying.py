"""A recording played again: the index as it was before each decision. Knows nothing of how decisions are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

import msgspec

from bayplan.errors import Fault, InputError
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.live.recording import VERSION
from bayplan.model.semantics import Semantics
from bayplan.model.targets import Target
from bayplan.model.volumes import Attachment, AvailableSpace, Claim, StorageClass, Volume
from bayplan.model.workloads import Workload

_STORED: dict[str, Any] = {
    "claims": Claim,
    "volumes": Volume,
    "classes": StorageClass,
    "space": AvailableSpace,
    "attach_limits": dict[str, int],
    "attachments": Attachment,
    "metering_drivers": bool,
}


class Header(msgspec.Struct, rename="camel"):
    """How the scheduler was set; `scheduler` is its KubeSchedulerConfiguration, if it had one."""

    recording: str = ""
    semantics: Semantics = Semantics()
    seed: str = ""
    identity: str = ""
    scheduler: dict[str, Any] | None = None


class Decision(msgspec.Struct, rename="camel"):
    """One decision as it was made; `promised` are the pods that room was left for, with their nodes."""

    decision: int
    at: str
    workload: Workload
    node: str
    message: str
    promised: list[tuple[Workload, str]] = []


class Recording:
    """`decisions` gives each decision; `index` is then as it was when that decision was made."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name, self._line = file, name, 0
        first = next(iter(self._lines()), b"")
        if not first:
            raise InputError(Fault("the file is empty, or broke off in its first line", file=name))
        self.header = self._decoded(first, Header)
        if self.header.recording != VERSION:
            raise InputError(Fault(f"expected a recording ({VERSION}), got something else", file=name, line=1))
        self.index = self._empty()

    def decisions(self) -> Iterator[Decision]:
        for line in self._lines():
            change = self._decoded(line, dict[str, msgspec.Raw])
            if "decision" in change:
                yield self._decoded(line, Decision)
            else:
                self._apply(change)

    def _empty(self) -> PlacementIndex:
        return PlacementIndex(self.header.semantics, self.header.seed)

    def _lines(self) -> Iterator[bytes]:
        for line in self._file:
            self._line += 1
            if not line.endswith(b"\n"):
                return  # cut off in the middle of a line, as when the scheduler was killed
            yield line

    def _apply(self, change: dict[str, msgspec.Raw]) -> None:
        for name, apply in self._appliers().items():
            if name in change:
                apply(change)
                return
        raise InputError(Fault(f"expected a change or a decision, got {', '.join(change)}", self._name, self._line))

    def _appliers(self) -> dict[str, Callable[[dict[str, msgspec.Raw]], None]]:
        return {
            "add": self._add,
            "remove": lambda change: self._remove(self._decoded(change["remove"], str)),
            "target": lambda change: self._put_target(self._decoded(change["target"], Target)),
            "removeTarget": lambda change: self.index.remove_target(self._decoded(change["removeTarget"], str)),
            "namespace": lambda change: self.index.set_namespace(
                self._decoded(change["namespace"], str), self._decoded(change["labels"], dict[str, str] | None)
            ),
            "stored": self._store,
            "again": lambda _change: self._begin_again(),
        }

    def _add(self, change: dict[str, msgspec.Raw]) -> None:
        shares = self._decoded(change["shares"], tuple[tuple[str, int], ...])
        self.index.add_shares(self._decoded(change["add"], Workload), shares)

    def _remove(self, key: Any) -> None:
        self.index.remove(key)

    def _put_target(self, target: Target) -> None:
        if target.name in self.index.slots.by_name:
            self.index.update_target(target)
        else:
            self.index.add_target(target)

    def _store(self, change: dict[str, msgspec.Raw]) -> None:
        table, name = self._decoded(change["stored"], str), self._decoded(change["name"], str)
        self.index.set_stored(table, name, self._decoded(change["value"], _STORED.get(table, Any) | None))

    def _begin_again(self) -> None:
        self.index = self._empty()

    def _decoded(self, text: bytes | msgspec.Raw, kind: Any) -> Any:
        try:
            return msgspec.json.decode(text, type=kind)
        except msgspec.MsgspecError as error:
            raise InputError(Fault(f"not a line of a recording: {error}", file=self._name, line=self._line)) from None
