"""
Requests and limits of containers and pods: names, amounts, and how they relate.

Mirrors `validateResourceRequirements` in pkg/apis/core/validation/validation.go and pkg/apis/core/helper/helpers.go.
`pod_level` compares what a pod requests as a whole with its containers; device claims are validated in `pod_runtime`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from bayplan.model import quantities
from bayplan.validating import fields, go_text, names, structure
from bayplan.validating.fields import Cause, Field

STANDARD = frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services",
    "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "storage", "requests.storage",
    "services.nodeports", "services.loadbalancers",
})  # fmt: skip
CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
POD_RESOURCES = ("cpu", "hugepages-", "memory")
INTEGER_RESOURCES = STANDARD - {name for name in STANDARD if name.endswith(("cpu", "memory", "storage"))}
HUGE_PAGES = "hugepages-"
NOT_STANDARD = "must be a standard resource type or fully qualified"
NOT_FOR_CONTAINERS = "must be a standard resource for containers"
NOT_EXTENDED = "doesn't follow extended resource name standard"
NOT_INTEGER = "must be an integer"
NO_LIMIT = "Limit must be set for non overcommitable resources"
PAGES_ALONE = "HugePages require cpu or memory"
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

is_quantity = structure.Quantity().fits  # whether an API server could parse the value


def unparsable_quantities(spec: Field) -> list[Cause]:
    """The values of a pod spec that are no quantities; an API server cannot decode them and reports nothing else."""
    holders = [*spec["containers"].items(), *spec["initContainers"].items(), spec]
    maps = [holder["resources"][part] for holder in holders for part in ("limits", "requests")]
    return unparsable(listed.entry(name) for listed in (*maps, spec["overhead"]) for name in listed.names())


def unparsable(amounts: Iterable[Field]) -> list[Cause]:
    """The values that are no quantities."""
    found: list[Cause] = []
    for amount in amounts:
        if amount.present and not is_quantity(amount.value):
            value = amount.value
            shown = go_text.quoted(value) if isinstance(value, str) else go_text.as_json(value)
            found.append(amount.wrong_type(NO_QUANTITY, shown))
    return found


def validate_container_resources(resources: Field, *, template: bool) -> list[Cause]:
    """The causes for rejecting a container's requests and limits; in a pod, a missing request is set to the limit."""
    limits, requests = resources["limits"], resources["requests"]
    if not template and isinstance(limits.value, Mapping):
        written = requests.value if isinstance(requests.value, Mapping) else {}
        requests = Field(requests.path, {**written, **{k: v for k, v in limits.value.items() if k not in written}})
    return validate_requirements(resources.path, limits, requests)


def validate_overhead(overhead: Field) -> list[Cause]:
    """The causes for rejecting a pod's overhead, which upstream reports as if it were limits."""
    return validate_requirements(overhead.path, Field(overhead["limits"].path, overhead.value), Field(overhead.path))


def validate_requirements(path: str, limits: Field, requests: Field, *, pod_level: bool = False) -> list[Cause]:
    """The causes for rejecting the requests and limits of a container, or of a pod as a whole."""
    found: list[Cause] = []
    for listed in (limits, requests):
        for name in listed.names():
            amount = listed.entry(name)
            found += _validate_name(Field(amount.path, name), pod_level=pod_level)
            if go_text.rounded_quantity(amount.value) < 0:
                found.append(_invalid_amount(amount, fields.NEGATIVE))
            integer = name in INTEGER_RESOURCES or ("/" in name and _is_extended(name))
            if integer and quantities.milli(_written(amount)) % 1000:
                found.append(_invalid_amount(amount, NOT_INTEGER))
            if listed is requests:
                found += _validate_against_limit(name, requests, limits)
            if name.startswith(HUGE_PAGES):
                found += _validate_huge_pages(name, amount)
    asked = {*limits.names(), *requests.names()}
    if any(name.startswith(HUGE_PAGES) for name in asked) and not asked & {"cpu", "memory"}:
        found.append(Field(path).forbidden(PAGES_ALONE))
    return found


def _invalid_amount(amount: Field, detail: str) -> Cause:
    return amount.invalid(detail, go_text.quoted(go_text.quantity_text(amount.value)))


def validate_resource_name(name: Field) -> list[Cause]:
    """The causes for rejecting the name of a container's resource."""
    return list(_validate_name(name, pod_level=False))


def _validate_name(name: Field, *, pod_level: bool) -> Iterator[Cause]:
    text = name.text()
    standard = text in STANDARD or text.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))
    details = names.label_key(text) or ([] if "/" in text or standard else [NOT_STANDARD])
    if pod_level:
        if not details and text not in POD_RESOURCES and not text.startswith(HUGE_PAGES):
            yield name.unsupported(POD_RESOURCES)
    elif "/" not in text:
        if text not in CONTAINER_RESOURCES and not text.startswith(HUGE_PAGES):
            details = [*details, NOT_FOR_CONTAINERS]
    elif not _is_native(text) and not _is_extended(text):
        details = [*details, NOT_EXTENDED]
    yield from (name.invalid(detail, go_text.as_json(text)) for detail in details)


def _validate_against_limit(name: str, requests: Field, limits: Field) -> Iterator[Cause]:
    overcommitted = _is_native(name) and not name.startswith(HUGE_PAGES)
    if name not in limits.names():
        if not overcommitted:
            yield limits.required(NO_LIMIT)
        return
    amount, limit = requests.entry(name), limits.entry(name)
    requested, most = go_text.rounded_quantity(amount.value), go_text.rounded_quantity(limit.value)
    if requested == most or (requested < most and overcommitted):
        return
    relation = "less than or equal to" if overcommitted else "equal to"
    detail = f"must be {relation} {name} limit of {go_text.quantity_text(limit.value)}"
    yield requests.invalid(detail, go_text.quoted(go_text.quantity_text(amount.value)))


def _validate_huge_pages(name: str, amount: Field) -> Iterator[Cause]:
    """Whether the amount is a multiple of the page size."""
    size = name.removeprefix(HUGE_PAGES)
    page = quantities.parse(size) if is_quantity(size) else Fraction()
    if not (page > 0 and page.denominator == 1 and quantities.units(_written(amount)) % page == 0):
        text = go_text.quantity_text(amount.value)
        yield _invalid_amount(amount, f"{text} is not positive integer multiple of {name}")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.") and not names.label_key(f"requests.{name}")


def _written(amount: Field) -> str | float:
    """The amount as written; null is 0, as in Go."""
    return amount.value if isinstance(amount.value, str | int | float) else 0
