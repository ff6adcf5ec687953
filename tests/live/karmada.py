"""Karmada's API on a plain API server: its custom resource definitions, none of its controllers or webhooks."""

import asyncio

import yaml

from live import kube_binaries
from live.admin import Admin, wait_for

DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Karmada serves clusters from an aggregated API server and has no definition of them; this one accepts any.
CLUSTERS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "clusters.cluster.karmada.io"},
    "spec": {
        "group": "cluster.karmada.io",
        "names": {"kind": "Cluster", "listKind": "ClusterList", "plural": "clusters", "singular": "cluster"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {**ANYTHING, "properties": {"spec": ANYTHING, "status": ANYTHING}}},
            }
        ],
    },
}


def load_karmada_crds(server):
    """Define Karmada's kinds on a KubeServer and wait until they are established; UnavailableError if not available."""
    files = kube_binaries.karmada_crds()
    definitions = [yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader) for file in files]
    asyncio.run(_define(server, [*definitions, CLUSTERS]))


async def _define(server, definitions):
    async with Admin.of(server) as admin:
        await admin.create_all(definitions)
        await wait_for(lambda: established_crds(admin, len(definitions)))


async def established_crds(admin, expected):
    """Whether so many definitions are established."""
    conditions = [found["status"]["conditions"] or () for found in await admin.items(DEFINITIONS)]  # null at first
    established = [
        any(entry["type"] == "Established" and entry["status"] == "True" for entry in own) for own in conditions
    ]
    return sum(established) == expected
