"""
Writes the result of a scheduling attempt to a binding, in two patches, without overwriting anything newer.

A patch is refused if the binding has changed since it was read. It is then read again: if its specification is still
the one that was decided for, the patch is made again from it, else the attempt counts for nothing. The same after a
write of which it is not known whether it happened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from bayplan.errors import BayplanError
from bayplan.live import fleet_results
from bayplan.live.cluster_writer import NotLeadingError, PodGoneError, RejectedError, UnknownOutcomeError
from bayplan.live.fleet_results import ScheduleResult
from bayplan.live.fleet_writer import FleetWriter, has_changed, ref_of
from bayplan.watching.fleet_state import FleetState, key_of
from bayplan.wire.fleets import ResourceBinding

MAX_RETRY_PAUSE_SECONDS = 10.0
log = logging.getLogger("bayplan.binding")

MakePatch = Callable[[ResourceBinding], dict[str, Any]]


class SupersededError(BayplanError):
    """The specification of the binding has changed since the attempt: there will be another attempt."""


class BindingWriter:
    """Writes results; `state` is told every answer."""

    def __init__(
        self,
        state: FleetState,
        writer: FleetWriter,
        wall: Callable[[], datetime],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._state, self._writer, self._wall, self._sleep = state, writer, wall, sleep

    async def write(self, written: ResourceBinding, result: ScheduleResult) -> bool:
        """
        Write a result to the binding that it was decided for. Return whether there was anything to write.

        Raises SupersededError, PodGoneError, RejectedError, or NotLeadingError.
        """
        answer = written
        if result.shares is not None:
            shares, placement, leaving = result.shares, result.placement, result.leaving
            answer = await self._patched(
                written, lambda now: fleet_results.object_patch(now, shares, placement, leaving), status=False
            )
            if answer is not written:
                self._state.wrote_result(answer)
            elif not fleet_results.object_patch(written, shares, placement):
                self._state.forget(key_of(written))
        generation = answer.metadata.generation
        last = await self.write_status(
            answer, lambda now: fleet_results.status_patch(now, result, generation, self._wall())
        )
        return last is not written

    async def observe(self, written: ResourceBinding) -> None:
        """Note in the status that the binding need not be scheduled."""
        generation = written.metadata.generation
        await self.write_status(written, lambda now: fleet_results.unneeded_patch(now, generation, self._wall()))

    async def write_status(self, written: ResourceBinding, make: MakePatch) -> ResourceBinding:
        """Patch the status and return the binding with it, or as it was if there is nothing to patch."""
        answer = await self._patched(written, make, status=True)
        if answer is not written:
            self._state.wrote(answer)
        return answer

    async def _patched(self, written: ResourceBinding, make: MakePatch, *, status: bool) -> ResourceBinding:
        decided_for, pause, found = written.metadata, 1.0, written
        while patch := make(found):
            try:
                return await self._writer.patch(found, patch, status=status)
            except NotLeadingError:
                raise
            except RejectedError as error:
                if not has_changed(error):
                    raise
            except UnknownOutcomeError as error:
                log.warning("outcome of a write unknown", extra={"binding": str(ref_of(found)), "error": str(error)})
                await self._sleep(pause)
                pause = min(2 * pause, MAX_RETRY_PAUSE_SECONDS)
            found = await self._read_again(found)
            if found.metadata.uid != decided_for.uid:
                raise PodGoneError(f"{ref_of(written)} is another binding by now")
            if not status and found.metadata.generation != decided_for.generation:
                # A patch of the specification that did happen has made one more generation and left nothing to patch.
                is_ours = found.metadata.generation == decided_for.generation + ("spec" in patch)
                if not is_ours or make(found):
                    raise SupersededError(f"{ref_of(written)} has changed since it was decided about")
        return found

    async def _read_again(self, written: ResourceBinding) -> ResourceBinding:
        pause = 1.0
        while True:
            try:
                return await self._writer.read(ref_of(written))
            except UnknownOutcomeError as error:
                log.warning("binding not read", extra={"binding": str(ref_of(written)), "error": str(error)})
                await self._sleep(pause)
                pause = min(2 * pause, MAX_RETRY_PAUSE_SECONDS)
