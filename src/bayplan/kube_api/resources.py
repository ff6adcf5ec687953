"""API resources and their URL paths."""

from __future__ import annotations

import urllib.parse

import msgspec


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


def _quoted(segment: str) -> str:
    return urllib.parse.quote(segment, safe="")


PODS = Resource("", "v1", "pods")
EVENTS = Resource("events.k8s.io", "v1", "events")
CORE_EVENTS = Resource("", "v1", "events")
LEASES = Resource("coordination.k8s.io", "v1", "leases")
