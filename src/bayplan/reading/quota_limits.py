"""
The limits of the quota, read from their ConfigMap.

    data:
      research: "{cpu: 64, memory: 256Gi}"   # a namespace
      _default: "{cpu: 0}"                   # every other one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bayplan.enforcing.quota import NO_LIMITS, Amounts, QuotaLimits
from bayplan.errors import Fault, InputError
from bayplan.model import quantities
from bayplan.reading.documents import Document
from bayplan.validating import names, yaml_text

CONFIG_MAP = "bayplan-system/bayplan-quota"
DEFAULT_KEY = "_default"  # not a valid name of a namespace


class LimitsSink:
    """Receives the documents of ConfigMaps and keeps the limits of the one with this name."""

    def __init__(self, config_map: str) -> None:
        self._config_map = config_map
        self.found = False
        self.limits = NO_LIMITS

    def __call__(self, document: Document) -> None:
        if f"{document.namespace}/{document.name}" == self._config_map:
            data = document.locate().root.get("data")
            self.found, self.limits = True, limits_of(data if isinstance(data, dict) else {})


def limits_of(data: Mapping[str, object]) -> QuotaLimits:
    """The limits in the data of the ConfigMap; raises InputError with all faults."""
    faults: list[Fault] = []
    found: dict[str, Amounts] = {}
    for namespace, text in data.items():
        path = f"data[{namespace}]"
        try:
            found[namespace] = _amounts(namespace, text, path)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults)
    otherwise = found.pop(DEFAULT_KEY, None)
    return QuotaLimits(found, otherwise)


def _amounts(namespace: str, text: object, path: str) -> Amounts:
    if namespace != DEFAULT_KEY and names.dns_label(namespace):
        raise InputError(Fault(f"expected the name of a namespace, or {DEFAULT_KEY}", path=path))
    try:
        content = yaml_text.parse(text) if isinstance(text, str) else None
    except ValueError as broken:
        raise InputError(Fault(str(broken), path=path)) from None
    if not isinstance(content, dict):
        raise InputError(Fault('expected quantities by resource, such as "{cpu: 64, memory: 256Gi}"', path=path))
    wrong = list(_amount_faults(content, path))
    if wrong:
        raise InputError(wrong)
    return tuple(sorted((name, quantities.amount(name, amount)) for name, amount in content.items()))


def _amount_faults(content: dict[object, object], path: str) -> Iterator[Fault]:
    for name, amount in content.items():
        here = f"{path}.{name}"
        try:
            negative = not isinstance(amount, str | int | float) or quantities.parse(amount) < 0
        except quantities.QuantityError as error:
            yield Fault(str(error), path=here)
            continue
        if negative or isinstance(amount, bool):
            yield Fault(f"expected a quantity of 0 or more, got {amount!r}", path=here)
        elif not isinstance(name, str) or names.label_key(name):
            yield Fault("expected the name of a resource, such as cpu", path=here)
