"""
What an audit lists of a live cluster. Only nodes are needed: whatever else may not be listed is left out and told.

The pages go through the same reader as dumps, so a cluster and its dump get the same verdicts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bayplan.auditing.audit_input import Unlisted
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ForbiddenError, NotFoundError
from bayplan.kube_api.resources import LEASES, PODS, Resource
from bayplan.reading.documents import Source
from bayplan.watching.fetching import NODES, ClusterFetcher

AUDITED = (
    PODS,
    LEASES,
    Resource("discovery.k8s.io", "v1", "endpointslices"),
    Resource("policy", "v1", "poddisruptionbudgets"),
    Resource("", "v1", "namespaces", namespaced=False),
    Resource("", "v1", "services"),
    Resource("", "v1", "persistentvolumes", namespaced=False),
    Resource("", "v1", "persistentvolumeclaims"),
    Resource("apps", "v1", "deployments"),
    Resource("apps", "v1", "replicasets"),
    Resource("apps", "v1", "statefulsets"),
    Resource("storage.k8s.io", "v1", "csinodes", namespaced=False),
    Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
    Resource("cluster.x-k8s.io", "v1beta1", "machines"),
)
KUBEADM = Resource("", "v1", "configmaps").path("kube-system", "kubeadm-config")


class AuditFetching(ClusterFetcher):
    """The cluster's objects as sources to read; `unlisted` is complete once the last of them was."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.unlisted: list[Unlisted] = []

    def _all(self, runner: asyncio.Runner) -> Iterator[Source]:
        yield from self._list(NODES, runner)
        for resource in AUDITED:
            try:
                yield from self._list(resource, runner)
            except ForbiddenError:
                self.unlisted.append(Unlisted(resource.plural))
            except NotFoundError:
                continue  # a kind that this cluster does not have
        try:
            yield Source(f"{self._connection.server} kubeadm-config", runner.run(self._connection.get(KUBEADM)))
        except (ForbiddenError, NotFoundError):
            return  # most clusters have none, and it only adds to what pods tell
