# ruff: noqa: INP001 (a script, not a package)
"""
Write the table of field names and types that `reading.checking` compares hand-written files with.

    python -m venv schemas && schemas/bin/pip install kubernetes-validate
    schemas/bin/python tools/make_field_table.py 1.36.0 1.37.0 > src/bayplan/reading/field_table.json

Several versions are merged, so a field counts as known if any of them has it; where types differ the last one wins.
It does not know what the fields mean.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
from typing import Any

KINDS = {
    "Pod": "io.k8s.api.core.v1.Pod",
    "Node": "io.k8s.api.core.v1.Node",
    "Namespace": "io.k8s.api.core.v1.Namespace",
    "Service": "io.k8s.api.core.v1.Service",
    "ReplicationController": "io.k8s.api.core.v1.ReplicationController",
    "PersistentVolume": "io.k8s.api.core.v1.PersistentVolume",
    "PersistentVolumeClaim": "io.k8s.api.core.v1.PersistentVolumeClaim",
    "Deployment": "io.k8s.api.apps.v1.Deployment",
    "ReplicaSet": "io.k8s.api.apps.v1.ReplicaSet",
    "StatefulSet": "io.k8s.api.apps.v1.StatefulSet",
    "DaemonSet": "io.k8s.api.apps.v1.DaemonSet",
    "Job": "io.k8s.api.batch.v1.Job",
    "CronJob": "io.k8s.api.batch.v1.CronJob",
    "StorageClass": "io.k8s.api.storage.v1.StorageClass",
    "CSINode": "io.k8s.api.storage.v1.CSINode",
    "CSIDriver": "io.k8s.api.storage.v1.CSIDriver",
    "CSIStorageCapacity": "io.k8s.api.storage.v1.CSIStorageCapacity",
    "VolumeAttachment": "io.k8s.api.storage.v1.VolumeAttachment",
    "PriorityClass": "io.k8s.api.scheduling.v1.PriorityClass",
    "PodDisruptionBudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "LimitRange": "io.k8s.api.core.v1.LimitRange",
    "ResourceQuota": "io.k8s.api.core.v1.ResourceQuota",
    "RuntimeClass": "io.k8s.api.node.v1.RuntimeClass",
    "MutatingWebhookConfiguration": "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration": "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    "HorizontalPodAutoscaler": "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
}
SCALARS = {"string": "string", "boolean": "bool", "integer": "int", "number": "number"}
LEAVES = {"Quantity": "Quantity", "IntOrString": "IntOrString", "Time": "string", "MicroTime": "string"}

Schema = dict[str, Any]
Table = dict[str, dict[str, str]]


def definitions(version: str) -> dict[str, Schema]:
    """Every type of one Kubernetes version, by its full name."""
    found = importlib.util.find_spec("kubernetes_validate")
    if found is None or found.origin is None:
        sys.exit("kubernetes-validate is not installed")
    folder = pathlib.Path(found.origin).parent / "kubernetes-json-schema" / f"v{version}-local"
    schemas: dict[str, Schema] = json.loads((folder / "_definitions.json").read_text())["$defs"]
    return schemas


def plain_type(schema: Schema) -> str:
    """The type without the null that every optional field allows."""
    kind = schema.get("type", "")
    return kind if isinstance(kind, str) else next(k for k in kind if k != "null")


def reference(schema: Schema, wanted: list[str]) -> str:
    """The field's type in the table's notation; full names of further object types are put onto `wanted`."""
    if "$ref" in schema:
        full = schema["$ref"].rsplit("/", 1)[1]
        short = full.rsplit(".", 1)[1]
        if short in LEAVES:
            return LEAVES[short]
        wanted.append(full)
        return short
    kind = plain_type(schema)
    if kind == "array":
        return f"[{reference(schema['items'], wanted)}]"
    if kind == "object" and "additionalProperties" in schema:
        return f"{{{reference(schema['additionalProperties'], wanted)}}}"
    return "int32" if schema.get("format") == "int32" else SCALARS.get(kind, "any")


def add_version(table: Table, names: dict[str, str], schemas: dict[str, Schema]) -> None:
    """Put the fields of every type that our kinds reach into the table; `names` keeps short names unique."""
    wanted, done = [full for full in KINDS.values() if full in schemas], set()
    while wanted:
        full = wanted.pop()
        if full in done:
            continue
        done.add(full)
        short = full.rsplit(".", 1)[1]
        if names.setdefault(short, full) != full:
            sys.exit(f"two types are called {short}: {names[short]} and {full}")
        fields = schemas[full].get("properties")
        # A type without fields (FieldsV1, RawExtension) may hold anything; the checker reads an absent entry that way.
        if fields:
            table.setdefault(short, {}).update({name: reference(field, wanted) for name, field in fields.items()})


def main() -> None:
    """Write the table of the versions given as arguments."""
    table: Table = {}
    names: dict[str, str] = {}
    for version in sys.argv[1:]:
        add_version(table, names, definitions(version))
    rows = (f"{json.dumps(name)}: {json.dumps(table[name], sort_keys=True)}" for name in sorted(table))
    sys.stdout.write("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
