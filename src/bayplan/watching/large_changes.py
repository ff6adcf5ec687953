"""
Reports of large pods that run: applied one by one, with rests between them, in which everything else goes on.

Whoever may create a pod can give it a megabyte of terms and a node, change its labels as often as it likes, and delete
and create it again. To count such a pod takes up to a second, so of the reports of a pod that wait only the last one is
applied. Until then the pod counts as it was, and a new one with what takes no time: its labels and what it requests.
The smallest pods come first. What a report means is not known here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from bayplan.kube_api.decoding import Key, Undecodable
from bayplan.kube_api.reflector import Handler
from bayplan.mapping import pod_size
from bayplan.wire.pods import Pod

REST_FACTOR = 4  # such reports get a fifth of the time
MAX_CATCH_UP_SECONDS = 5.0


class PacedPodHandler:
    """
    Hands pods on to another handler: most of them at once, large ones while `run` runs.

    `size_of_waiting` is the size of a pod whose report may wait, 0 for any other; `is_counted` is whether it counts
    already. Until the first list is complete, no new pod waits, because nothing is scheduled before.
    """

    def __init__(
        self,
        inner: Handler[Pod],
        size_of_waiting: Callable[[Pod], int],
        is_counted: Callable[[Pod], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner = inner
        self._size_of_waiting, self._is_counted = size_of_waiting, is_counted
        self._clock, self._sleep = clock, sleep
        self._waiting: dict[Key, tuple[int, Pod]] = {}
        self._is_synced = False
        self._activity = asyncio.Event()

    def upsert(self, obj: Pod) -> None:
        key, size = Key(obj.metadata.namespace, obj.metadata.name), self._size_of_waiting(obj)
        is_counted = not size or self._is_counted(obj)
        if not size or not (is_counted or self._is_synced):
            self._waiting.pop(key, None)
            self._inner.upsert(obj)
            return
        if not is_counted:
            self._inner.upsert(pod_size.without_terms(obj))
        self._waiting[key] = size, obj
        self._activity.set()

    def delete(self, key: Key, uid: str) -> None:
        self._waiting.pop(key, None)
        self._inner.delete(key, uid)

    def undecodable(self, found: Undecodable) -> None:
        self._waiting.pop(found.key, None)
        self._inner.undecodable(found)

    def synced(self) -> None:
        self._is_synced = True
        self._inner.synced()

    def apply_next(self) -> bool:
        """Hand on the smallest pod that waits. Return false if none does."""
        key = min(self._waiting, key=lambda one: self._waiting[one][0], default=None)
        if key is None:
            return False
        self._inner.upsert(self._waiting.pop(key)[1])
        return True

    async def catch_up(self) -> None:
        """Hand on what waits without rests, for a while: before the first decision of a new leader."""
        until = self._clock() + MAX_CATCH_UP_SECONDS
        while self._clock() < until and self.apply_next():
            await self._sleep(0)

    async def run(self) -> None:
        """Hand on the pods that wait, until cancelled."""
        while True:
            began = self._clock()
            if self.apply_next():
                await self._sleep((self._clock() - began) * REST_FACTOR)
            else:
                self._activity.clear()
                await self._activity.wait()
