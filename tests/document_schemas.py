"""The JSON Schemas of docs/reference/schemas: what commands write as JSON is valid by them."""

import functools
import json
import pathlib

import jsonschema
import referencing
import referencing.jsonschema

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "reference" / "schemas"
API_VERSION = "bayplan.io/v1alpha1"


@functools.cache
def by_name():
    """Each schema by the name of its file, such as `explanation`."""
    files = sorted(FOLDER.glob("*.schema.json"))
    return {file.name.removesuffix(".schema.json"): json.loads(file.read_text(encoding="utf-8")) for file in files}


@functools.cache
def by_kind():
    """The schemas of documents with a kind."""
    kinds = {name: schema.get("properties", {}).get("kind", {}).get("const") for name, schema in by_name().items()}
    return {kind: by_name()[name] for name, kind in kinds.items() if kind}


def check(document, name=None):
    """Raise if a document is not valid by the schema of its kind, or of this name."""
    schema = by_name()[name] if name else by_kind()[document["kind"]]
    known = [(one["$id"], referencing.jsonschema.DRAFT202012.create_resource(one)) for one in by_name().values()]
    registry = referencing.Registry().with_resources(known)
    jsonschema.Draft202012Validator(schema, registry=registry).validate(document)
