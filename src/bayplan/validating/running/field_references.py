"""
What containers are told about their own pod: its fields, and their requests and limits.

Mirrors `validateObjectFieldSelector` and `validateContainerResourceFieldSelector` in
pkg/apis/core/validation/validation.go, and `ConvertDownwardAPIFieldLabel` in pkg/apis/core/pods/helpers.go.
"""

from __future__ import annotations

from fractions import Fraction

from bayplan.model import quantities
from bayplan.validating import causes, go_quantities, go_text, names, resources
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

OF_ENVIRONMENT = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
    "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
OF_VOLUMES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
READABLE = frozenset({*OF_ENVIRONMENT, *OF_VOLUMES, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
RENAMED = {"spec.host": "spec.nodeName"}  # from the time before v1
SUBSCRIPTED = ("metadata.annotations", "metadata.labels")
AMOUNTS = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
OF_CPU = ("1m", "1")
OF_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_NAMED = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}


def of_field(reference: Field, supported: tuple[str, ...]) -> list[Cause]:
    """What is wrong with a reference to a field of the pod, of which only some can be had."""
    version, path = reference["apiVersion"].text() or "v1", reference["fieldPath"]
    if not path.text():
        return [causes.required(path.path)]
    name, subscript = _split(path.text())
    if problem := _unconvertible(version, path.text(), name, subscript):
        return [causes.invalid(path.path, go_text.quoted(path.text()), f"error converting fieldPath: {problem}")]
    if subscript is not None:
        key = subscript.lower() if name == "metadata.annotations" else subscript
        return names.invalid(reference.path, key, names.label_key(key))
    known = RENAMED.get(name, name)
    return [] if known in supported else [causes.unsupported(path.path, go_text.quoted(known), supported)]


def of_resource(reference: Field, *, container_named: bool) -> list[Cause]:
    """What is wrong with a reference to a request or a limit; in a volume it names the container too."""
    container, resource = reference["containerName"], reference["resource"]
    if container_named and not container.text():
        found = [causes.required(container.path)]
    elif not resource.text():
        found = [causes.required(resource.path)]
    elif resource.text() not in AMOUNTS and not resource.text().startswith(HUGE_PAGES):
        found = [causes.unsupported(resource.path, go_text.quoted(resource.text()), AMOUNTS)]
    else:
        found = []
    return found + _divisor(resource.text(), reference["divisor"])


def _split(path: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` as its two parts; no second part if there is no subscript."""
    name, bracket, rest = path.partition("['")
    return (name, rest[:-2]) if name and bracket and path.endswith("']") else (path, None)


def _unconvertible(version: str, path: str, name: str, subscript: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        return "" if name in SUBSCRIPTED else f"field label does not support subscript: {path}"
    return "" if path in READABLE or path in RENAMED else f"field label not supported: {path}"


def _divisor(resource: str, divisor: Field) -> list[Cause]:
    if not resources.is_quantity(divisor.value) or not resources.exact(divisor):
        return []
    supported: tuple[str, ...]
    amount = resource.partition(".")[2]
    if resource in AMOUNTS and amount == "cpu":
        supported, named = OF_CPU, "cpu"
    elif resource in AMOUNTS or resource.startswith(HUGE_PAGES):
        supported, named = OF_BYTES, _NAMED.get(amount, "hugepages")
    else:
        return []
    # Other than the amounts of containers, a divisor is not rounded to thousandths.
    if go_quantities.text(divisor.value) in supported and resources.exact(divisor) == _unrounded(divisor):
        return []
    listed = "1m and 1" if supported is OF_CPU else ", ".join(supported)
    detail = f"only divisor's values {listed} are supported with the {named} resource"
    return [causes.invalid(divisor.path, go_text.quoted(resource), detail)]


def _unrounded(divisor: Field) -> Fraction:
    return quantities.parse(divisor.value) if isinstance(divisor.value, str | int | float) else Fraction()
