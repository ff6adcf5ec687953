"""Sockets with keep-alive, proxies, and the translation of low-level exceptions into errors that say what to do."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import urllib.parse
import urllib.request
from typing import Any

import aiohttp

from bayplan.errors import InputError
from bayplan.kube_api import access
from bayplan.kube_api.errors import (
    CertificateError,
    ConnectionLostError,
    FencedError,
    KubeError,
    NoAnswerError,
    UnreachableError,
    WrongServerError,
)


class ConnectFailedError(Exception):
    """There is no connection; `cause` says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class InvalidResponseError(Exception):
    """The response is not HTTP."""


class ResponseCutError(Exception):
    """The connection was closed before the end of the response."""


class WithheldError(Exception):
    """The request was not sent, because at that moment its sender was not allowed to any more."""


FAILURES = (
    aiohttp.ClientError,
    ConnectFailedError,
    InvalidResponseError,
    ResponseCutError,
    WithheldError,
    TimeoutError,
    OSError,
)
# Seconds until the first probe of an idle connection, seconds between probes, unanswered probes until it is closed.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
# OpenSSL's verification codes.
_EXPIRED, _UNKNOWN_ISSUER, _OTHER_NAME = {10}, {2, 18, 19, 20, 21}, {62, 64}


def keep_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    keep_alive(made)
    return made


def keep_alive(made: socket.socket) -> None:
    """Let the system probe an idle connection, so that a dead peer is noticed."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):  # not every system has them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def abort(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of a response not read to its end: a graceful close could wait long for a dead peer."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def translated(error: Exception, tried: str, server: str, proxy: str) -> KubeError:
    """The KubeError that describes what happened."""
    if isinstance(error.__cause__, WithheldError):  # by aiohttp, on the way through a proxy
        error = error.__cause__
    match error:
        case ConnectFailedError():
            return _not_connected(error.cause, server)
        case InvalidResponseError():
            return WrongServerError(f"{tried}: the response is not valid HTTP")
        case WithheldError():
            return FencedError(f"{tried}: not sent: this replica does not lead any more")
        case ResponseCutError():
            return ConnectionLostError(f"{tried}: the response ended early")
        case aiohttp.ClientConnectorCertificateError():
            return CertificateError(f"{server}: its certificate is not trusted: {_verdict(error.certificate_error)}")
        case aiohttp.ClientProxyConnectionError():
            return UnreachableError(
                f"{server}: cannot reach the proxy {without_password(proxy)}: {_cause(error.os_error)}"
            )
        case aiohttp.ClientHttpProxyError():
            return UnreachableError(
                f"{server}: the proxy {without_password(proxy)} answered {error.status} {error.message}"
            )
        case aiohttp.ClientConnectorSSLError():
            return WrongServerError(f"{server}: no TLS connection: {_cause(error.os_error)}")
        case aiohttp.ClientConnectorDNSError():
            return UnreachableError(f"{server}: cannot find the host: {_cause(error.os_error)}")
        case aiohttp.ClientConnectorError():
            return UnreachableError(f"{server}: cannot connect: {_cause(error.os_error)}")
        case aiohttp.ConnectionTimeoutError():
            return UnreachableError(f"{server}: cannot connect: no answer")
        case TimeoutError():
            return NoAnswerError(f"{tried}: no response in time")
        case aiohttp.ClientPayloadError():
            return ConnectionLostError(f"{tried}: the response ended early")
        case aiohttp.ClientResponseError():
            return WrongServerError(f"{tried}: the response is not valid HTTP")
        case _:
            return ConnectionLostError(f"{tried}: the connection was lost: {_cause(error)}")


def _not_connected(error: Exception, server: str) -> KubeError:
    match error:
        case ssl.SSLCertVerificationError():
            return CertificateError(f"{server}: its certificate is not trusted: {_verdict(error)}")
        case ssl.SSLError():
            return WrongServerError(f"{server}: no TLS connection: {_cause(error)}")
        case socket.gaierror():
            return UnreachableError(f"{server}: cannot find the host: {_cause(error)}")
        case TimeoutError():
            return UnreachableError(f"{server}: cannot connect: no answer")
        case _:
            return UnreachableError(f"{server}: cannot connect: {_cause(error)}")


def _verdict(error: Exception) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return _cause(error)
    advice = ""
    if error.verify_code in _EXPIRED:
        advice = "; renew it on the server"
    elif error.verify_code in _UNKNOWN_ISSUER:
        advice = "; the certificate-authority of the cluster in the kubeconfig did not sign it"
    elif error.verify_code in _OTHER_NAME:
        advice = "; tls-server-name in the kubeconfig can name another host"
    return error.verify_message.rstrip(".") + advice


def _cause(error: BaseException) -> str:
    """The cause alone: the texts of aiohttp's exceptions repeat addresses and settings."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, ConnectionResetError) and not error.errno:
        return "connection closed; does the server speak TLS?"
    if isinstance(error, OSError) and error.errno:
        return (error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno)) or str(error)
    return str(error) or type(error).__name__


def checked_proxy(proxy: str, place: str) -> str:
    """The address of the proxy if its scheme is supported."""
    try:
        parts = urllib.parse.urlsplit(proxy)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:  # a bracket that is not closed
        fine = False
    if not fine:
        raise InputError(f"{place}: expected an address such as http://proxy:3128, got {without_password(proxy)}")
    return proxy


def without_password(proxy: str) -> str:
    """The address without user name and password."""
    scheme, separator, rest = proxy.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def proxy_from_environment(server: str) -> str:
    """`HTTPS_PROXY` or `HTTP_PROXY` by the server's scheme; empty for loopback addresses and matches of `NO_PROXY`."""
    parts = urllib.parse.urlsplit(server)
    known = urllib.request.getproxies_environment()
    proxy = known.get(parts.scheme, "")
    exempt = (entry.strip() for entry in known.get("no", "").split(","))
    if not proxy or access.is_loopback(server) or any(_covers(entry, parts.hostname or "") for entry in exempt):
        return ""
    return checked_proxy(proxy, f"{parts.scheme.upper()}_PROXY")


def _covers(entry: str, host: str) -> bool:
    """Whether an entry of `NO_PROXY` covers the host: `*`, a network or address, or a domain with its subdomains."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry)
    except ValueError:
        domain = entry.lstrip(".").lower()
        return bool(domain) and (host == domain or host.endswith(f".{domain}"))
