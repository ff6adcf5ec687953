"""Which proxy leads to a server: the one in the kubeconfig, else the one that the environment names."""

from __future__ import annotations

import ipaddress
import urllib.parse
import urllib.request

from bayplan.errors import InputError
from bayplan.kube_api import access


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
