"""
Replicas and requests of a kind that the configuration describes by paths, for the fleets in which a webhook reads them.

The replicas are the sum over the templates, and one replica requests the largest amount of each resource, as with the
customizations that Karmada ships for kinds of several templates. With components, each template is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.controllers import custom_kinds
from bayplan.controllers.custom_kinds import CustomKind, FoundTemplate
from bayplan.controllers.interpretation import Interpretation, NotInterpretedError, replicas_of, template_requirements
from bayplan.model import quantities
from bayplan.wire.fleets import BindingComponent, ReplicaRequirements
from bayplan.wire.meta import Quantities


def interpret(kind: CustomKind, content: Mapping[str, Any], *, with_components: bool) -> Interpretation:
    """What the paths lead to; raises NotInterpretedError if they lead nowhere, or not to numbers and pod templates."""
    if kind.like == "DaemonSet":
        return Interpretation()
    for path, value in custom_kinds.miscounted(kind, content):
        raise NotInterpretedError(f"expected a whole number that is not negative at {path}, got {value!r}")
    found = list(custom_kinds.templates_of(kind, content))
    if not found:
        paths = ", ".join(one.template for one in kind.templates) or "spec.template"
        raise NotInterpretedError(f"customKinds in the configuration: no pod template at {paths}")
    if with_components and len(found) > 1:
        return Interpretation(components=tuple(map(_component, found)))
    requirements = [template_requirements(one.content, one.path) for one in found]
    replicas = replicas_of(sum(one.n_pods for one in found), "the sum of the templates")
    return Interpretation(has_replicas=True, replicas=replicas, requirements=_largest(requirements))


def _component(found: FoundTemplate) -> BindingComponent:
    return BindingComponent(
        name=found.part or found.path,
        replicas=found.n_pods,
        replica_requirements=template_requirements(found.content, found.path),
    )


def _largest(requirements: list[ReplicaRequirements | None]) -> ReplicaRequirements | None:
    known = [one for one in requirements if one is not None]
    largest: Quantities = {}
    for one in known:
        for name, amount in (one.resource_request or {}).items():
            if name not in largest or quantities.parse(amount) > quantities.parse(largest[name]):
                largest[name] = amount
    return msgspec.structs.replace(known[0], resource_request=largest or None) if known else None
