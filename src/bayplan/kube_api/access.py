"""How to reach one API server and which identity to use, as resolved from kubeconfig, service account and flags."""

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
    """Values of command-line flags; each overrides the kubeconfig."""

    server: str = ""
    token: str = ""
    as_user: str = ""
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    insecure: bool = False
    namespace: str = ""
    request_timeout: float = 30.0  # seconds; 0 means no limit
    qps: float = 0.0  # average requests per second; 0 means no limit
    burst: int = 0

    def __repr__(self) -> str:
        return f"ConnectOptions(server={self.server!r}, namespace={self.namespace!r}, …)"


class Impersonation(msgspec.Struct, frozen=True):
    """The identity to impersonate, if the server allows it."""

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
    """Everything a connection needs. The credentials renew themselves."""

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
    """The address without a trailing slash; a bare host gets the https scheme."""
    if "://" not in server:
        server = f"https://{server}"
    if "@" in server.partition("://")[2].partition("/")[0]:  # messages contain the server address
        raise InputError(f"{place}: expected an address without a user name and password; put them in the user entry")
    try:
        parts = urllib.parse.urlsplit(server)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number, an unclosed bracket
        fine = False
    if not fine:
        raise InputError(f"{place}: expected an address such as https://host:6443, got {server}")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def is_loopback(server: str) -> bool:
    """Whether the server is on a loopback address, where compression costs more than it saves."""
    host = urllib.parse.urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
