"""What the page asks: the bodies of requests, checked. Does not know the answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from bayplan.errors import ArgumentError

MAX_SUPPOSED = 5000  # events of one what-if
_Texts = Annotated[list[str], msgspec.Meta(max_length=MAX_SUPPOSED)]


class WhatIf(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """
    What is supposed to happen before anything is placed, as the options of `bayplan place` say it.

    `apply` are manifests, each the text of a file or an object; they are merged into the state as kubectl apply does.
    """

    lose: _Texts = []
    drain: _Texts = []
    cordon: _Texts = []
    add_node_like: _Texts = []
    recover: _Texts = []
    taint: _Texts = []
    apply: Annotated[list[str | dict[str, Any]], msgspec.Meta(max_length=MAX_SUPPOSED)] = []


class PlaceQuestion(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where everything is, once all that waits is placed."""

    what_if: WhatIf = WhatIf()


class ExplainQuestion(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Why a workload is where it is."""

    namespace: str
    name: str
    what_if: WhatIf = WhatIf()


class FixQuestion(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The manifests that a fix of a pod changes; fixes are counted from 1."""

    namespace: str
    name: str
    fix: int
    what_if: WhatIf = WhatIf()


class ScaleQuestion(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Where a workload of a fleet would be with these numbers of replicas, one after another."""

    namespace: str
    name: str
    replicas: Annotated[list[Annotated[int, msgspec.Meta(ge=0, lt=2**31)]], msgspec.Meta(min_length=1, max_length=100)]
    what_if: WhatIf = WhatIf()


Question = PlaceQuestion | ExplainQuestion | FixQuestion | ScaleQuestion


def read(body: bytes, kind: type[Any]) -> Any:
    """The question of a request; raises ArgumentError."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ArgumentError(f"the body of the request: {error}") from None
