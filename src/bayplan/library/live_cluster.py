"""How a live cluster is reached: what was given, and a connection for it."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.kube_api import connect
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.connection import Connection


class LiveCluster:
    """Connects to a cluster, as often as it is called. A pickle of it has no token."""

    __slots__ = ("_context", "_kubeconfig", "_options")

    def __init__(self, context: str | None, kubeconfig: str | None, options: ConnectOptions) -> None:
        self._context, self._kubeconfig, self._options = context, kubeconfig, options

    def __call__(self) -> Connection:
        return connect.auto(self._kubeconfig, self._context, self._options)

    def __reduce__(self) -> tuple[Any, ...]:
        return LiveCluster, (self._context, self._kubeconfig, msgspec.structs.replace(self._options, token=""))
