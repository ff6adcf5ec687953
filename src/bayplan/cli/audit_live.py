"""
What an audit lists on a live cluster. Only nodes are required: other resources that may not be listed are reported.

The pages are read like files, so a cluster and its dump have the same verdicts.
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

AUDITED_RESOURCES = (
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
KUBEADM_CONFIG_PATH = Resource("", "v1", "configmaps").path("kube-system", "kubeadm-config")


class AuditFetcher(ClusterFetcher):
    """The objects of the cluster as sources to read; `unlisted` is complete after the last source was read."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.unlisted: list[Unlisted] = []

    def _all(self, runner: asyncio.Runner) -> Iterator[Source]:
        yield from self._list(NODES, runner)
        for resource in AUDITED_RESOURCES:
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
