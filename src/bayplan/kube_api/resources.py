"""API resources and their URL paths. Which kind has which resource is in the registry of kinds."""

from __future__ import annotations

import re
import urllib.parse

import msgspec

from bayplan.wire import kinds
from bayplan.wire.kinds import ApiKind


class Resource(msgspec.Struct, frozen=True):
    """A resource by group (empty for the core group), version and plural name."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of all objects, of those in a namespace, of one object, or of its subresource."""
        parts = ["apis" if self.group else "api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", _quoted(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_quoted(name))
        if subresource:
            parts.append(subresource)
        return "/" + "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


_is_plain = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch  # as nearly every name is; quoting takes six times as long


def _quoted(segment: str) -> str:
    return segment if _is_plain(segment) else urllib.parse.quote(segment, safe="")


def resource_of(row: ApiKind) -> Resource:
    """The resource of a kind."""
    return Resource(row.group, row.version, row.plural, namespaced=not row.cluster_wide)


def of_kind(kind: str, group: str | None = None) -> Resource:
    """The resource of the kind with this name, which must be in the registry."""
    return resource_of(kinds.named(kind, group))


PODS = of_kind("Pod")
EVENTS = of_kind("Event", "events.k8s.io")
CORE_EVENTS = of_kind("Event", "")
LEASES = of_kind("Lease")
