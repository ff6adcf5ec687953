"""How to reach one API server, and as whom: what kubeconfig files, a pod's service account and flags come down to."""

from __future__ import annotations

import ipaddress
import urllib.parse

import msgspec

from bayplan.errors import InputError
from bayplan.kube_api.credentials import Credentials
from bayplan.kube_api.tls import Trust

DEFAULT_NAMESPACE = "default"
_HEADER_CHARACTERS = "!#$&'*+-.^_`|~"  # what RFC 7230 allows in a header's name, beside letters and digits


class ConnectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What flags say; each wins over the kubeconfig."""

    server: str = ""
    token: str = ""
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    insecure: bool = False
    namespace: str = ""
    request_timeout: float = 30.0  # seconds; 0 is no limit
    qps: float = 0.0  # requests a second on average; 0 is no limit
    burst: int = 0

    def __repr__(self) -> str:
        return f"ConnectOptions(server={self.server!r}, namespace={self.namespace!r}, …)"


class Impersonation(msgspec.Struct, frozen=True):
    """Whom to act as, if the server lets us."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def headers(self) -> list[tuple[str, str]]:
        if not self.user:
            return []
        named = [("Impersonate-User", self.user)]
        if self.uid:
            named.append(("Impersonate-Uid", self.uid))
        named += [("Impersonate-Group", group) for group in self.groups]
        named += [(f"Impersonate-Extra-{_escaped(key)}", value) for key, values in self.extra for value in values]
        return named


def _escaped(key: str) -> str:
    return urllib.parse.quote(key, safe=_HEADER_CHARACTERS)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a connection needs. Its credentials keep themselves fresh."""

    server: str
    credentials: Credentials
    trust: Trust
    impersonation: Impersonation = Impersonation()
    proxy: str = ""
    compression: bool = True
    namespace: str = DEFAULT_NAMESPACE
    context_name: str = ""

    def __repr__(self) -> str:
        return f"Access(server={self.server!r}, context_name={self.context_name!r})"


def checked_server(server: str, place: str) -> str:
    """The address without its last slash; a bare host means https."""
    if "://" not in server:
        server = f"https://{server}"
    if "@" in server.partition("://")[2].partition("/")[0]:  # every message names the server
        raise InputError(f"{place}: expected an address without a name and a password; those belong to the user")
    try:
        parts = urllib.parse.urlsplit(server)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        fine = False
    if not fine:
        raise InputError(f"{place}: expected an address such as https://host:6443, got {server}")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def is_loopback(server: str) -> bool:
    """Whether the server runs on this machine, where compressing costs more than it saves."""
    host = urllib.parse.urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
