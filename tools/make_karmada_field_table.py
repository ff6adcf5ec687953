# ruff: noqa: INP001 (a script, not a package)
"""
Write the table of Karmada's field names and types, which `reading.checking` adds to that of Kubernetes.

    cd src/bayplan/reading
    python ../../../tools/make_karmada_field_table.py swagger.json > karmada_field_table.json

The argument is api/openapi-spec/swagger.json of github.com/karmada-io/karmada. Karmada's types get their API group in
front, because several groups have types of one name; the kinds keep theirs. Types of Kubernetes are left out.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys

from make_field_table import LEAVES, SCALARS, Schema, Table, plain_type

KINDS = {
    "Cluster": "cluster.v1alpha1",
    "PropagationPolicy": "policy.v1alpha1",
    "ClusterPropagationPolicy": "policy.v1alpha1",
    "ResourceBinding": "work.v1alpha2",
    "ClusterResourceBinding": "work.v1alpha2",
    "WorkloadRebalancer": "apps.v1alpha1",
    "ClusterTaintPolicy": "policy.v1alpha1",
    "ResourceInterpreterCustomization": "config.v1alpha1",
    "ResourceInterpreterWebhookConfiguration": "config.v1alpha1",
}
_OURS = re.compile(r"com\.github\.karmada-io\.karmada\.pkg\.apis\.(\w+)\.(\w+)\.(\w+)")


def short(full: str) -> str:
    """The name in the table."""
    own = _OURS.fullmatch(full)
    if own is None:
        return full.rsplit(".", 1)[1]
    return own[3] if KINDS.get(own[3]) == f"{own[1]}.{own[2]}" else f"{own[1]}.{own[3]}"


def reference(schema: Schema, wanted: list[str]) -> str:
    """The field's type in the table's notation; full names of further types are put onto `wanted`."""
    if "allOf" in schema:
        schema = schema["allOf"][0]
    if "$ref" in schema:
        full = schema["$ref"].rsplit("/", 1)[1]
        if short(full) in LEAVES:
            return LEAVES[short(full)]
        wanted.append(full)
        return short(full)
    kind = plain_type(schema)
    if kind == "array":
        return f"[{reference(schema['items'], wanted)}]"
    if kind == "object" and "additionalProperties" in schema:
        return f"{{{reference(schema['additionalProperties'], wanted)}}}"
    return "int32" if schema.get("format") == "int32" else SCALARS.get(kind, "any")


def main() -> None:
    """Write the table of the types that our kinds reach."""
    schemas: dict[str, Schema] = json.loads(pathlib.Path(sys.argv[1]).read_text())["definitions"]
    wanted = [f"com.github.karmada-io.karmada.pkg.apis.{group}.{kind}" for kind, group in KINDS.items()]
    table: Table = {}
    while wanted:
        full = wanted.pop()
        fields = schemas[full].get("properties")
        if fields and _OURS.fullmatch(full) and short(full) not in table:
            table[short(full)] = {name: reference(field, wanted) for name, field in fields.items()}
    rows = (f"{json.dumps(name)}: {json.dumps(table[name], sort_keys=True)}" for name in sorted(table))
    sys.stdout.write("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
