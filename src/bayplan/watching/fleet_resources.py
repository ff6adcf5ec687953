"""The watched resources of a Karmada control plane, with the change that an object of each makes."""

from __future__ import annotations

import msgspec

from bayplan.kube_api import decoding, resources
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.errors import ForbiddenError
from bayplan.kube_api.listing import Selection
from bayplan.model.workloads import WorkloadKey
from bayplan.watching.fleet_state import FleetState
from bayplan.watching.resources import WatchedResource
from bayplan.wire.fleets import Cluster, ResourceBinding
from bayplan.wire.meta import ApiObject

CLUSTERS = resources.of_kind("Cluster")
BINDINGS = (resources.of_kind("ResourceBinding"), resources.of_kind("ClusterResourceBinding"))
POLICIES = (resources.of_kind("PropagationPolicy"), resources.of_kind("ClusterPropagationPolicy"))
METADATA = Selection(metadata_only=True)
NAMESPACES = resources.of_kind("Namespace")


class _ApiGroup(msgspec.Struct):
    name: str = ""


class _ApiGroups(msgspec.Struct):
    groups: list[_ApiGroup] = []


async def is_fleet(connection: Connection) -> bool:
    """
    Whether the server is a Karmada control plane: it serves bindings, or clusters.

    Clusters have a server of their own, which need not be there yet.
    """
    path = "/apis"
    try:
        answer = await connection.get(path)
    except ForbiddenError:
        return False
    found = decoding.decoded(msgspec.json.Decoder(_ApiGroups), answer, connection.tried("GET", path))
    groups = {CLUSTERS.group, *(resource.group for resource in BINDINGS)}
    return any(group.name in groups for group in found.groups)


def fleet_resources(state: FleetState) -> tuple[WatchedResource, ...]:
    """Return every resource that a decision about a binding may read; bindings are counted on the clusters."""
    return (
        WatchedResource(
            NAMESPACES,
            ApiObject,
            lambda written: state.index.set_namespace(written.metadata.name, written.metadata.labels or {}),
            lambda key, _uid: state.index.set_namespace(key.name, None),
        ),
        *(
            WatchedResource(
                resource,
                ApiObject,
                state.put_policy,
                lambda key, _uid: state.drop_policy(key.namespace, key.name),
                METADATA,
            )
            for resource in POLICIES
        ),
        WatchedResource(
            CLUSTERS,
            Cluster,
            state.put_cluster,
            lambda key, _uid: state.drop_cluster(key.name),
            set_aside=state.set_aside_cluster,
            may_be_missing=True,  # their server is another one
        ),
        *(
            WatchedResource(
                resource,
                ResourceBinding,
                state.put_binding,
                lambda key, uid: state.drop_binding(WorkloadKey(f"{key.namespace}/{key.name}"), uid),
                set_aside=state.set_aside_binding,
            )
            for resource in BINDINGS
        ),
    )
