"""
Fencing: requests that are sent only while their sender is allowed to, judged after every wait.

A request waits for the rate limit, for a server that is busy and for a connection. A process may also be suspended, and
another replica may lead when it continues. So it is judged last, right before bytes are sent, and by a clock: nobody
has to get round to withdrawing a permission.
"""

from __future__ import annotations

from typing import Protocol

from bayplan.kube_api.connection import JSON, Connection
from bayplan.kube_api.http1 import MaySend


class RequestSender(Protocol):
    """What writes need of a connection."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        retry: bool | None = None,
    ) -> bytes: ...


class FencedConnection:
    """A connection whose every request is sent only if `may_send` is true at that moment; else `FencedError`."""

    def __init__(self, connection: Connection, may_send: MaySend) -> None:
        self._connection, self._may_send = connection, may_send

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = JSON,
        retry: bool | None = None,
    ) -> bytes:
        return await self._connection.request(
            method, path, body=body, content_type=content_type, retry=retry, may_send=self._may_send
        )
