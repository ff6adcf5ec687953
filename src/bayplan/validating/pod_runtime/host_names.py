"""
What a pod is called and how it finds others: host names, name servers, search paths, aliases.

Mirrors `validatePodDNSConfig`, `ValidateHostAliases` and `validatePodHostName` in
pkg/apis/core/validation/validation.go, and `IsValidIPForLegacyField` in apimachinery's util/validation/ip.go.
"""

from __future__ import annotations

import ipaddress
import re

from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
NO_CONFIG = "must provide `dnsConfig` when `dnsPolicy` is None"
NO_SERVER = "must provide at least one DNS nameserver when `dnsPolicy` is None"
MAX_SERVERS, MAX_SEARCHES, MAX_CHARACTERS, MAX_HOST_NAME = 3, 32, 2048, 64
NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
LEADING_ZEROS = "must not have leading 0s"
MAPPED = "must not be an IPv4-mapped IPv6 address"
_SUPERFLUOUS = "(?<![0-9a-fA-F])0+(?=[0-9a-fA-F])"  # zeros


def causes_of(spec: Field) -> list[Cause]:
    """What is wrong with the names of a pod and with how it resolves those of others."""
    return [
        *causes.defaulted(spec["dnsPolicy"], DNS_POLICIES),
        *_dns_config(spec["dnsConfig"], without_cluster=spec["dnsPolicy"].text() == "None"),
        *_override(spec["hostnameOverride"], spec),
        *_label(spec["hostname"]),
        *_label(spec["subdomain"]),
        *_aliases(spec["hostAliases"]),
    ]


def _dns_config(config: Field, *, without_cluster: bool) -> list[Cause]:
    servers, searches = config["nameservers"], config["searches"]
    if without_cluster and not config.present:
        return [causes.required(config.path, NO_CONFIG)]
    if without_cluster and not servers.items():
        return [causes.required(servers.path, NO_SERVER)]
    found: list[Cause] = []
    if len(servers.items()) > MAX_SERVERS:
        found.append(_too_many(servers, f"must not have more than {MAX_SERVERS} nameservers"))
    for server in servers.items():
        found += address(server)
    found += _searches(searches)
    for option in config["options"].items():
        if not option["name"].text():
            found.append(causes.required(option.path, "must not be empty"))
    return found


def _searches(searches: Field) -> list[Cause]:
    found: list[Cause] = []
    if len(searches.items()) > MAX_SEARCHES:
        found.append(_too_many(searches, f"must not have more than {MAX_SEARCHES} search paths"))
    if go_text.n_bytes(" ".join(searches.texts())) > MAX_CHARACTERS:
        detail = f"must not have more than {MAX_CHARACTERS} characters (including spaces) in the search list"
        found.append(_too_many(searches, detail))
    for search in searches.items():
        if search.text() != ".":
            text = search.text().removesuffix(".")
            found += names.invalid(search.path, text, names.relaxed_subdomain(text))
    return found


def _too_many(listed: Field, detail: str) -> Cause:
    return causes.invalid(listed.path, go_text.as_json(listed.texts()), detail)


def _override(field: Field, spec: Field) -> list[Cause]:
    if not field.present:
        return []
    found = [
        causes.forbidden(field.path, f"may not be specified when {other} is true")
        for other in ("setHostnameAsFQDN", "hostNetwork")
        if spec[other].flag()
    ]
    if go_text.n_bytes(field.text()) > MAX_HOST_NAME:
        found.append(causes.too_long(field.path, f"may not be more than {MAX_HOST_NAME} bytes"))
    return found + names.invalid(field.path, field.text(), names.dns_subdomain(field.text()))


def _label(field: Field) -> list[Cause]:
    return names.invalid(field.path, field.text(), names.dns_label(field.text())) if field.text() else []


def _aliases(aliases: Field) -> list[Cause]:
    found: list[Cause] = []
    for alias in aliases.items():
        found += address(alias["ip"])
        for name in alias["hostnames"].items():
            found += names.invalid(name.path, name.text(), names.dns_subdomain(name.text()))
    return found


def address(field: Field) -> list[Cause]:
    """What is wrong with an address."""
    return names.invalid(field.path, field.text(), _address(field.text()))


def _address(text: str) -> list[str]:
    parsed = _parsed(text)
    if parsed is None:
        return [LEADING_ZEROS if _parsed(re.sub(_SUPERFLUOUS, "", text)) else NO_ADDRESS]
    return [MAPPED] if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped else []


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address, none if it has leading zeros: Python takes `010` for no number."""
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None
