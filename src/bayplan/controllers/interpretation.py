"""
What Karmada's resource interpreter reads from a resource template: replicas, the requests of one, or components.

Karmada asks ResourceInterpreterCustomizations first, then webhooks, then the customizations that it ships, then its
own code. Does not know any kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.controllers import replica_requirements
from bayplan.errors import InputError
from bayplan.model import quantities
from bayplan.wire import conversion
from bayplan.wire.controllers import PodTemplateSpec
from bayplan.wire.fleets import BindingComponent, ReplicaRequirements
from bayplan.wire.meta import Quantity

_MIN_INT32, _MAX_INT32 = -(2**31), 2**31 - 1


class Interpretation(msgspec.Struct, frozen=True, kw_only=True):
    """
    What is read from one template. `has_replicas`: the kind has an interpreter for replicas.

    `components` is None if the kind has no interpreter for components; Karmada asks that one only with the feature
    gate MultiplePodTemplatesScheduling, and then it takes precedence.
    """

    has_replicas: bool = False
    replicas: int = 0
    requirements: ReplicaRequirements | None = None
    components: tuple[BindingComponent, ...] | None = None


class NotInterpretedError(ValueError):
    """Karmada could not read the template either: it reports an event, and the binding stays as it is."""


def template_requirements(template: Any, where: str) -> ReplicaRequirements | None:
    """The requirements of one replica of a pod template (Karmada's kube library: `accuratePodRequirements`)."""
    if not isinstance(template, dict | list) or (isinstance(template, list) and template):
        raise NotInterpretedError(f"expected a pod template at {where}, got {_shown(template)}")
    try:
        found: PodTemplateSpec = conversion.converted(without_empty(template) or {}, PodTemplateSpec)
        return replica_requirements.requirements_of(found.spec)
    except (msgspec.ValidationError, InputError) as error:
        raise NotInterpretedError(f"{where}: {error}") from None


def replicas_of(value: Any, where: str, *, whole: bool = False) -> int:
    """A number of replicas as an int32; its fraction is cut off, unless it has to be `whole`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotInterpretedError(f"expected a number at {where}, got {_shown(value)}")
    if not _MIN_INT32 <= value <= _MAX_INT32:  # also what is no number at all
        raise NotInterpretedError(f"expected a number of 32 bits at {where}, got {_shown(value)}")
    if whole and value != int(value):
        raise NotInterpretedError(f"expected a whole number at {where}, got {value}")
    return int(value)


def request_of(value: Any, where: str) -> Quantity:
    """An amount of a resource, as written or as a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise NotInterpretedError(f"expected a quantity at {where}, got {_shown(value)}")
    try:
        quantities.parse(value)
    except quantities.QuantityError as error:
        raise NotInterpretedError(f"{where}: {error}") from None
    return value


def without_empty(value: Any) -> Any:
    """The value without empty maps and lists and without nulls, all of which get lost on the way through Lua."""
    if isinstance(value, dict):
        kept = {key: without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner is not None and inner not in ({}, [])}
    if isinstance(value, list):
        return [without_empty(inner) for inner in value]
    return value


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    return repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
