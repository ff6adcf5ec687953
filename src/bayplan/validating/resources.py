"""
What containers and pods ask for, and how much they may use: names, amounts, and which go together.

Mirrors `validateResourceRequirements` in pkg/apis/core/validation/validation.go and pkg/apis/core/helper/helpers.go.
Pod-level amounts against the sum of the containers' are not looked at; claims of devices are, in `running`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

from bayplan.model import quantities
from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

STANDARD = frozenset({
    "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage",
    "limits.cpu", "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas", "services",
    "replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims", "storage", "requests.storage",
    "services.nodeports", "services.loadbalancers",
})  # fmt: skip
OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
OF_PODS = ("cpu", "hugepages-", "memory")
COUNTED = STANDARD - {name for name in STANDARD if name.endswith(("cpu", "memory", "storage"))}
HUGE_PAGES = "hugepages-"
NOT_STANDARD = "must be a standard resource type or fully qualified"
NOT_FOR_CONTAINERS = "must be a standard resource for containers"
NOT_EXTENDED = "doesn't follow extended resource name standard"
NEGATIVE = "must be greater than or equal to 0"
NOT_WHOLE = "must be an integer"
NO_LIMIT = "Limit must be set for non overcommitable resources"
PAGES_ALONE = "HugePages require cpu or memory"
NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

NameRule = Callable[[str, str], list[Cause]]


def unreadable(spec: Field) -> list[Cause]:
    """The quantities of a pod spec that are none; a server cannot decode them, and says nothing else."""
    listed = [*spec["containers"].items(), *spec["initContainers"].items(), spec]
    maps = [one["resources"][part] for one in listed for part in ("limits", "requests")]
    return [
        causes.wrong_type(amount.path, _shown(amount.value), NO_QUANTITY)
        for amounts in (*maps, spec["overhead"])
        for amount in _amounts(amounts)
        if amount.present and not is_quantity(amount.value)
    ]


def of_container(resources: Field, *, template: bool) -> list[Cause]:
    """What is wrong with a container's requests and limits; in a pod, a limit is the request that nobody wrote."""
    limits, requests = resources["limits"], resources["requests"]
    if not template and isinstance(limits.value, Mapping):
        written = requests.value if isinstance(requests.value, Mapping) else {}
        requests = Field(requests.path, {**written, **{k: v for k, v in limits.value.items() if k not in written}})
    return _requirements(resources.path, limits, requests, container_resource)


def of_pod(resources: Field) -> list[Cause]:
    """What is wrong with the requests and limits of a pod as a whole."""
    return _requirements(resources.path, resources["limits"], resources["requests"], _pod_resource)


def overhead(field: Field) -> list[Cause]:
    """What is wrong with a pod's overhead, which upstream reports as if it were limits."""
    return _requirements(field.path, Field(field["limits"].path, field.value), Field(field.path), container_resource)


def container_resource(path: str, name: str) -> list[Cause]:
    """What is wrong with the name of a resource that a container asks for."""
    found = _resource(path, name)
    if "/" not in name:
        known = name in OF_CONTAINERS or name.startswith(HUGE_PAGES)
        return found if known else [*found, _invalid_name(path, name, NOT_FOR_CONTAINERS)]
    known = _is_native(name) or _is_extended(name)
    return found if known else [*found, _invalid_name(path, name, NOT_EXTENDED)]


def _pod_resource(path: str, name: str) -> list[Cause]:
    found = _resource(path, name)
    if found or name in OF_PODS or name.startswith(HUGE_PAGES):
        return found
    return [causes.unsupported(path, go_text.as_json(name), OF_PODS)]


def _resource(path: str, name: str) -> list[Cause]:
    wrong = [_invalid_name(path, name, detail) for detail in names.label_key(name)]
    if wrong or "/" in name or name in STANDARD or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}")):
        return wrong
    return [_invalid_name(path, name, NOT_STANDARD)]


def _invalid_name(path: str, name: str, detail: str) -> Cause:
    return causes.invalid(path, go_text.as_json(name), detail)


def _requirements(path: str, limits: Field, requests: Field, name_rule: NameRule) -> list[Cause]:
    found: list[Cause] = []
    for name, amount in _named(limits):
        found += [*name_rule(amount.path, name), *_amount(name, amount), *_pages(name, amount)]
    upper = dict(_named(limits))
    for name, amount in _named(requests):
        found += [*name_rule(amount.path, name), *_amount(name, amount)]
        found += _against_limit(name, amount, upper.get(name), requests.path, limits.path)
        found += _pages(name, amount)
    asked = {*limits.names(), *requests.names()}
    if any(name.startswith(HUGE_PAGES) for name in asked) and not asked & {"cpu", "memory"}:
        found.append(causes.forbidden(path, PAGES_ALONE))
    return found


def _amount(name: str, amount: Field) -> Iterator[Cause]:
    text = go_text.quoted(text_of(amount))
    if exact(amount) < 0:
        yield causes.invalid(amount.path, text, NEGATIVE)
    if (name in COUNTED or _is_extended(name)) and quantities.milli(_written(amount)) % 1000:
        yield causes.invalid(amount.path, text, NOT_WHOLE)


def _against_limit(
    name: str, amount: Field, limit: Field | None, requests_path: str, limits_path: str
) -> Iterator[Cause]:
    overcommitted = _is_native(name) and not name.startswith(HUGE_PAGES)
    if limit is None:
        if not overcommitted:
            yield causes.required(limits_path, NO_LIMIT)
        return
    asked, most = exact(amount), exact(limit)
    if asked != most and not overcommitted:
        detail = f"must be equal to {name} limit of {text_of(limit)}"
    elif asked > most:
        detail = f"must be less than or equal to {name} limit of {text_of(limit)}"
    else:
        return
    yield causes.invalid(requests_path, go_text.quoted(text_of(amount)), detail)


def _pages(name: str, amount: Field) -> Iterator[Cause]:
    """Memory in huge pages comes by whole pages."""
    if not name.startswith(HUGE_PAGES):
        return
    size = name.removeprefix(HUGE_PAGES)
    page = quantities.parse(size) if is_quantity(size) else Fraction()
    whole = page > 0 and page.denominator == 1 and quantities.units(_written(amount)) % page == 0
    if not whole:
        text = text_of(amount)
        yield causes.invalid(amount.path, go_text.quoted(text), f"{text} is not positive integer multiple of {name}")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) and not name.startswith("requests.") and not names.label_key(f"requests.{name}")


def _amounts(field: Field) -> list[Field]:
    return [field.entry(name) for name in field.names()]


def _named(field: Field) -> list[tuple[str, Field]]:
    return [(name, field.entry(name)) for name in field.names()]


def _written(amount: Field) -> str | float:
    """The amount as written; null is nothing, as in Go."""
    return amount.value if isinstance(amount.value, str | int | float) else 0


def exact(amount: Field) -> Fraction:
    """The amount as a number, in whole thousandths."""
    return go_text.rounded_quantity(_written(amount))


def text_of(amount: Field) -> str:
    """The amount as Go prints it."""
    return go_text.quantity_text(_written(amount))


def is_quantity(value: object) -> bool:
    """Whether a server could read the value as an amount."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        quantities.parse(value)
    except quantities.QuantityError:
        return False
    return True


def _shown(value: object) -> str:
    return go_text.quoted(value) if isinstance(value, str) else go_text.as_json(value)
