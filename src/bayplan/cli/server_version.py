"""The version of Kubernetes that decides about a live cluster: that of its API server, unless one is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection

_NAME = "kubernetes_version"


def adopted(connection: Connection, given: str, say: Callable[[str], None]) -> str:
    """
    The version that decides, which is also that of this command from now on; the connection is open only meanwhile.

    `given` is the value of --kubernetes-version, which counts if it was written. `say` is told of a server of a version
    that is not known.
    """
    import asyncio  # commands that read files do without

    from bayplan.model.kubernetes_versions import known_version, nearest_version

    ctx = click.get_current_context(silent=True)
    if ctx is None or ctx.get_parameter_source(_NAME) is not ParameterSource.DEFAULT:
        return given
    served = asyncio.run(_version_of(connection))
    found = nearest_version(served)
    if known_version(served) is None:
        say(f"the API server is of Kubernetes {served}; decisions are those of {found}, the nearest known version")
    ctx.params[_NAME] = found
    return found


async def _version_of(connection: Connection) -> str:
    async with connection:
        return await connection.version()
