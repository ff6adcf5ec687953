"""
Changes of large pods that run: applied one by one, with rests between them, in which everything else goes on.

Whoever may create a pod can give it a megabyte of terms and a node, and change its labels as often as it likes. To
count such a pod again takes up to a second, so of the changes of a pod that wait only the last one is applied. Until
then the pod counts as it was. The smallest pods come first. What a change means is not known here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from bayplan.kube_api.decoding import Key, Undecodable
from bayplan.kube_api.reflector import Handler
from bayplan.wire.pods import Pod

REST_FACTOR = 4  # such changes get a fifth of the time


class PacedPodHandler:
    """
    Hands pods on to another handler: most of them at once, changes of large ones while `run` runs.

    `size_of_change` is the size of a pod whose change may wait, 0 for any other.
    """

    def __init__(
        self,
        inner: Handler[Pod],
        size_of_change: Callable[[Pod], int],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._inner, self._size_of_change = inner, size_of_change
        self._clock, self._sleep = clock, sleep
        self._waiting: dict[Key, tuple[int, Pod]] = {}
        self._activity = asyncio.Event()

    def upsert(self, obj: Pod) -> None:
        key, size = Key(obj.metadata.namespace, obj.metadata.name), self._size_of_change(obj)
        if size:
            self._waiting[key] = size, obj
            self._activity.set()
        else:
            self._waiting.pop(key, None)
            self._inner.upsert(obj)

    def delete(self, key: Key, uid: str) -> None:
        self._waiting.pop(key, None)
        self._inner.delete(key, uid)

    def undecodable(self, found: Undecodable) -> None:
        self._waiting.pop(found.key, None)
        self._inner.undecodable(found)

    def synced(self) -> None:
        self._inner.synced()

    def apply_next(self) -> bool:
        """Hand on the smallest pod that waits. Return false if none does."""
        key = min(self._waiting, key=lambda one: self._waiting[one][0], default=None)
        if key is None:
            return False
        self._inner.upsert(self._waiting.pop(key)[1])
        return True

    async def run(self) -> None:
        """Hand on the pods that wait, until cancelled."""
        while True:
            began = self._clock()
            if self.apply_next():
                await self._sleep((self._clock() - began) * REST_FACTOR)
            else:
                self._activity.clear()
                await self._activity.wait()
