"""
What an audit lists on a live cluster. Only nodes are required: other resources that may not be listed are reported.

The pages are read like files, so a cluster and its dump have the same verdicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bayplan.auditing.audit_input import Unlisted
from bayplan.kube_api import resources
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ForbiddenError, NotFoundError
from bayplan.kube_api.resources import Resource
from bayplan.reading.documents import Source
from bayplan.watching.fetching import NODES, ClusterFetcher
from bayplan.wire import kinds
from bayplan.wire.kinds import Trait

KUBEADM_CONFIG_PATH = resources.of_kind("ConfigMap").path("kube-system", "kubeadm-config")


def audited_resources() -> list[Resource]:
    """Everything that an audit lists beside the nodes."""
    found = [resources.resource_of(row) for row in kinds.having(Trait.AUDITED)]
    return [resource for resource in found if resource != NODES]


class AuditFetcher(ClusterFetcher):
    """The objects of the cluster as sources to read; `unlisted` is complete after the last source was read."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.unlisted: list[Unlisted] = []

    def _all(self, runner: asyncio.Runner) -> Iterator[Source]:
        yield from self._list(NODES, runner)
        for resource in audited_resources():
            try:
                yield from self._list(resource, runner)
            except ForbiddenError:
                self.unlisted.append(Unlisted(resource.plural))
            except NotFoundError:
                continue  # a resource that this cluster does not have
        try:
            yield Source(
                f"{self._connection.server} kubeadm-config", runner.run(self._connection.get(KUBEADM_CONFIG_PATH))
            )
        except (ForbiddenError, NotFoundError):
            return  # most clusters have none, and it only supplements what pods show
