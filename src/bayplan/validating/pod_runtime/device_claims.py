"""
Devices that a pod claims, and which of its containers use them.

Mirrors `validatePodResourceClaims` and `validateResourceClaimNames` in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

BOTH = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
NEITHER = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
NOT_OF_PODS = "claims may not be set for Resources at pod-level"


def of_pod(spec: Field) -> list[Cause]:
    """What is wrong with the claims of a pod, which its resources must not name: only containers use devices."""
    found: list[Cause] = []
    seen: set[str] = set()
    for claim in spec["resourceClaims"].items():
        name = claim["name"]
        found += causes.needed(name)
        if name.text() in seen:
            found.append(causes.duplicate(name.path, go_text.quoted(name.text())))
        elif name.text():
            found += names.invalid(name.path, name.text(), names.dns_label(name.text()))
            seen.add(name.text())
        found += _source(claim)
    refused = spec["resources"]["claims"]
    if refused.present:
        found.append(causes.forbidden(refused.path, NOT_OF_PODS))
    return found + of_container(spec, spec)


def of_container(container: Field, spec: Field) -> list[Cause]:
    """What is wrong with the claims that a container uses, in a pod with this spec."""
    used = container["resources"]["claims"].items()
    if not used:
        return []
    known = sorted({claim["name"].text() for claim in spec["resourceClaims"].items()} - {""})
    listed = f": {', '.join(known)}" if known else " which is empty"
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for use in used:
        name = use["name"].text()
        if not name:
            found.append(causes.required(use.path))
            continue
        found += _repeated(use, seen)
        if name not in known:
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            found.append(causes.not_found(use.path, go_text.quoted(name), detail))
    return found


def _source(claim: Field) -> list[Cause]:
    """A claim is one that is there, or is made from a template; upstream shows its own copy of it."""
    written = [claim[name] for name in ("resourceClaimName", "resourceClaimTemplateName")]
    found: list[Cause] = []
    if all(field.present for field in written) or not any(field.present for field in written):
        values = [go_text.as_json(value) for value in (claim["name"].text(), *(field.value for field in written))]
        shown = '{{"Name":{},"ResourceClaimName":{},"ResourceClaimTemplateName":{}}}'.format(*values)
        found.append(causes.invalid(claim.path, shown, BOTH if written[0].present else NEITHER))
    for field in written:
        if field.present:
            found += names.invalid(field.path, field.text(), names.dns_subdomain(field.text()))
    return found


def _repeated(use: Field, seen: set[tuple[str, str]]) -> list[Cause]:
    """Whether a claim, or one request of it, is used already; a claim without a request is all its requests."""
    name, request = use["name"].text(), use["request"]
    if (name, "") in seen:
        return [causes.duplicate(use.path, go_text.quoted(name))]
    found: list[Cause] = []
    if request.text():
        found += names.invalid(request.path, request.text(), names.dns_label(request.text()))
        if (name, request.text()) in seen:
            found.append(causes.duplicate(use.path, go_text.quoted(f"{name}/{request.text()}")))
    elif any(name == other for other, _ in seen):
        found.append(causes.duplicate(use.path, go_text.quoted(name)))
    seen.add((name, request.text()))
    return found
