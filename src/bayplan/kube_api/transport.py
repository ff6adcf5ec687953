"""Sockets that notice a dead peer, and what aiohttp's exceptions mean to somebody who has to act on them."""

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
    KubeError,
    NoAnswerError,
    UnreachableError,
    WrongServerError,
)

FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
# Seconds until the first probe of a silent connection and between probes, and how many may stay unanswered.
_KEEP_ALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
# OpenSSL's verification codes, and what to do about them.
_EXPIRED, _UNKNOWN_ISSUER, _OTHER_NAME = {10}, {2, 18, 19, 20, 21}, {62, 64}


def keep_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE:
        if hasattr(socket, name):  # not every system has them
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


def cut(response: aiohttp.ClientResponse) -> None:
    """Give up the connection of an answer not read to its end: a polite good-bye could wait long for a dead peer."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def meaning(error: Exception, tried: str, server: str, proxy: str) -> KubeError:
    """The error of ours that says what happened."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return CertificateError(f"{server}: its certificate is not accepted: {_verdict(error.certificate_error)}")
        case aiohttp.ClientProxyConnectionError():
            return UnreachableError(f"{server}: cannot reach the proxy {shown(proxy)}: {_cause(error.os_error)}")
        case aiohttp.ClientHttpProxyError():
            return UnreachableError(f"{server}: the proxy {shown(proxy)} answered {error.status} {error.message}")
        case aiohttp.ClientConnectorSSLError():
            return WrongServerError(f"{server}: no TLS connection: {_cause(error.os_error)}")
        case aiohttp.ClientConnectorDNSError():
            return UnreachableError(f"{server}: cannot find the host: {_cause(error.os_error)}")
        case aiohttp.ClientConnectorError():
            return UnreachableError(f"{server}: cannot connect: {_cause(error.os_error)}")
        case aiohttp.ConnectionTimeoutError():
            return UnreachableError(f"{server}: cannot connect: nobody answers")
        case TimeoutError():
            return NoAnswerError(f"{tried}: no answer in time")
        case aiohttp.ClientPayloadError():
            return ConnectionLostError(f"{tried}: the answer broke off in the middle")
        case aiohttp.ClientResponseError():
            return WrongServerError(f"{tried}: the answer is not HTTP as a Kubernetes API server speaks it")
        case _:
            return ConnectionLostError(f"{tried}: the connection broke off: {_cause(error)}")


def _verdict(error: Exception) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return _cause(error)
    advice = ""
    if error.verify_code in _EXPIRED:
        advice = "; it has to be renewed on the server"
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
        return "it hangs up; does it speak TLS?"
    if isinstance(error, OSError) and error.errno:
        return (error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno)) or str(error)
    return str(error) or type(error).__name__


# RF merged from kube_api.proxies: Which proxy leads to a server: the one in the kubeconfig, else the one that the
# environment names.


def checked(proxy: str, place: str) -> str:
    """The proxy's address, if it is of a kind that we can use."""
    try:
        parts = urllib.parse.urlsplit(proxy)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:  # a bracket that is not closed
        fine = False
    if not fine:
        raise InputError(f"{place}: expected an address such as http://proxy:3128, got {shown(proxy)}")
    return proxy


def shown(proxy: str) -> str:
    """The address without name and password."""
    scheme, separator, rest = proxy.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def from_environment(server: str) -> str:
    """`HTTPS_PROXY` or `HTTP_PROXY`, by the server's scheme, unless `NO_PROXY` or the loopback says otherwise."""
    parts = urllib.parse.urlsplit(server)
    known = urllib.request.getproxies_environment()
    proxy = known.get(parts.scheme, "")
    exempt = (entry.strip() for entry in known.get("no", "").split(","))
    if not proxy or access.is_loopback(server) or any(_covers(entry, parts.hostname or "") for entry in exempt):
        return ""
    return checked(proxy, f"{parts.scheme.upper()}_PROXY")


def _covers(entry: str, host: str) -> bool:
    """Whether an entry of `NO_PROXY` means the host: `*`, a network or address, or a domain with all below it."""
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry)
    except ValueError:
        domain = entry.lstrip(".").lower()
        return bool(domain) and (host == domain or host.endswith(f".{domain}"))
