"""The metadata of every API object, and the selectors and quantities that many of them share."""

from __future__ import annotations

from typing import Annotated

import msgspec

# Go's integers, as every integer of an API object is one: a server cannot decode values outside, and neither can NumPy.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Quantity = str | int | float
Quantities = dict[str, Quantity]


class WireObject(msgspec.Struct, rename="camel", kw_only=True, gc=False, omit_defaults=True):
    """A part of an API object; unknown fields are ignored."""


class OwnerReference(WireObject):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(WireObject):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class LabelSelectorRequirement(WireObject):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(WireObject):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class ObjectReference(WireObject):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class ApiObject(WireObject):
    """An object of any kind: what identifies it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
