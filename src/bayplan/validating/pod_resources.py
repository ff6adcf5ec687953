"""
The requests and limits of a whole pod as an API server adds them up, exact and in the notation in which it prints them.

Mirrors component-helpers/resource/helpers.go without the status of containers: a pod that is being created has none.
Does not know what the sums are compared with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal, NamedTuple

from bayplan.validating import go_text
from bayplan.wire.meta import Quantities, Quantity
from bayplan.wire.pods import Container, PodSpec

Side = Literal["requests", "limits"]
HUGE_PAGES = "hugepages-"
POD_LEVEL = ("cpu", "memory")  # what a pod can request as a whole, apart from huge pages


class Amount(NamedTuple):
    """An exact amount, and whether it is printed with binary suffixes (`Mi`), as the first amount of a sum was."""

    exact: Fraction
    binary: bool = False

    def __str__(self) -> str:
        return go_text.amount_text(self.exact, binary=self.binary)

    def plus(self, other: Amount) -> Amount:
        """The sum, in the notation of the first amount that is not zero."""
        return Amount(self.exact + other.exact, self.binary if self.exact else other.binary)


Amounts = dict[str, Amount]
ZERO, ONE = Amount(Fraction(0)), Amount(Fraction(1))


def amount_of(text: Quantity) -> Amount:
    """A quantity of a list of resources, which a server rounds to thousandths when it reads it."""
    return Amount(go_text.rounded_quantity(text), str(text).endswith("i"))


def amounts_of(listed: Quantities | None) -> Amounts:
    """All quantities of a list of resources."""
    return {name: amount_of(text) for name, text in (listed or {}).items()}


def written(amount: Amount) -> str:
    """The amount as a quantity in an object, to the next thousandth: no scheduler counts smaller parts."""
    return str(amount._replace(exact=Fraction(math.ceil(amount.exact * 1000), 1000)))


def is_of_pods(resource: str) -> bool:
    """Whether a pod can request the resource as a whole, not only its containers."""
    return resource in POD_LEVEL or resource.startswith(HUGE_PAGES)


def requests_of(spec: PodSpec, *, overhead: bool = True) -> Amounts:
    """What the pod requests: of its containers or of the pod as a whole, and its overhead."""
    total = {**containers_total(spec, "requests"), **_of_pod(spec, "requests")}
    return added(total, amounts_of(spec.overhead)) if overhead else total


def limits_of(spec: PodSpec, *, overhead: bool = True) -> Amounts:
    """The limits of the pod; overhead is added to limits that there are."""
    total = {**containers_total(spec, "limits"), **_of_pod(spec, "limits")}
    extra = amounts_of(spec.overhead) if overhead else {}
    return {name: amount.plus(extra.get(name, ZERO)) if amount.exact else amount for name, amount in total.items()}


def containers_total(spec: PodSpec, side: Side) -> Amounts:
    """Containers run together; init containers one by one, while the restartable ones before them keep running."""
    running: Amounts = {}
    for container in spec.containers or ():
        _add(running, _of_container(container, side))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers or ():
        own = _of_container(container, side)
        if container.restart_policy == "Always":
            _add(running, own)
            _add(sidecars, own)
            beside = {name: sidecars[name] for name in own}
        else:
            beside = {name: one.plus(sidecars[name]) if name in sidecars else one for name, one in own.items()}
        _raise(peak, beside)  # of resources that this container does not name, the peak is up to date
    _raise(running, peak)
    return running


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name].plus(amount) if name in total else amount


def _raise(largest: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        if name not in largest or amount.exact > largest[name].exact:
            largest[name] = amount


def added(one: Mapping[str, Amount], other: Mapping[str, Amount]) -> Amounts:
    """The sum of two lists of resources."""
    return {**one, **{name: one[name].plus(amount) if name in one else amount for name, amount in other.items()}}


def _of_container(container: Container, side: Side) -> Amounts:
    return {} if container.resources is None else amounts_of(getattr(container.resources, side))


def _of_pod(spec: PodSpec, side: Side) -> Amounts:
    listed = {} if spec.resources is None else amounts_of(getattr(spec.resources, side))
    return {name: amount for name, amount in listed.items() if is_of_pods(name)}
