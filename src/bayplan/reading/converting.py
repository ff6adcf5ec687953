"""Objects as read become values of the model; what cannot be converted is set aside or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from bayplan.controllers.desired_state import DesiredState
from bayplan.errors import InputError
from bayplan.wire.meta import ApiObject

Found = TypeVar("Found", bound=ApiObject)
Mapped = TypeVar("Mapped")


def converted(inputs: DesiredState, objects: Iterable[Found], convert: Callable[[Found], Mapped]) -> Iterator[Mapped]:
    """Each object converted; one of the state that cannot be is set aside."""
    for one in objects:
        try:
            yield convert(one)
        except InputError as error:
            if not inputs.is_of_state(one):
                raise
            fault = error.faults[0]
            inputs.set_aside.append(inputs.fault(one, fault.message, fault.path))
