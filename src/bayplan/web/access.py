"""
Who may ask: the Host and the Origin of a request, and the token. Headers that keep a page from doing anything else.

A page of another site cannot read answers, but its scripts can send requests to this address, and with a name that it
points to this address (DNS rebinding) read them too. So the Host must be an address or a name that is known, and the
Origin, if a browser sends one, must be the Host's own.
"""

from __future__ import annotations

import hmac
import ipaddress
import urllib.parse
from collections.abc import Collection, Mapping

import msgspec

_LOOPBACK_NAMES = frozenset({"localhost"})
_OWN_SITE = ("same-origin", "none")  # of Sec-Fetch-Site: from the page itself, or typed by the user

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refusal(msgspec.Struct, frozen=True):
    """Why a request is not answered, with its HTTP status."""

    status: int
    message: str


class AccessRules(msgspec.Struct, frozen=True, kw_only=True):
    """
    Names by which the server may be called, besides addresses of its own kind; and the token, empty for none.

    A server on loopback answers to loopback addresses, any other to every address: only a name can be pointed to a
    server by somebody else.
    """

    is_loopback: bool
    names: Collection[str] = ()
    token: str = ""

    def refusal(self, headers: Mapping[str, str], *, is_public: bool) -> Refusal | None:
        """Why the request is refused, None if it is not; what `is_public` needs no token."""
        host = _host_of(headers.get("Host", ""))
        if not self._is_known(host):
            return Refusal(421, f"this server does not answer to the host {host[:100]!r}: allow it with --allowed-host")
        origin = headers.get("Origin")
        if origin is not None and urllib.parse.urlsplit(origin).netloc.lower() != headers.get("Host", "").lower():
            return Refusal(403, "requests of other sites are not answered")
        if headers.get("Sec-Fetch-Site", "none") not in _OWN_SITE and not is_public:
            return Refusal(403, "requests of other sites are not answered")
        if self.token and not is_public and not self._has_token(headers.get("Authorization", "")):
            return Refusal(401, "the token is missing or wrong: open the address that `bayplan ui` has printed")
        return None

    def _is_known(self, host: str) -> bool:
        if host in self.names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return self.is_loopback and host in _LOOPBACK_NAMES
        return address.is_loopback if self.is_loopback else True

    def _has_token(self, given: str) -> bool:
        scheme, _, token = given.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self.token.encode())


def _host_of(header: str) -> str:
    """The host without the port and in lower case; empty if it cannot be read."""
    try:
        return (urllib.parse.urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_address(host: str) -> bool:
    """Whether it is an IP address, and no name; empty is every address."""
    try:
        ipaddress.ip_address(host or "::")
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine alone."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
