"""
How much each namespace may be charged, and who is over it.

Limits may add up to more than there is: then priority and preemption decide who runs. A resource that a namespace's
limits do not name is not limited, nor is a namespace that has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from bayplan.enforcing.quota import Amounts, Charge
from bayplan.model import quantities


class Limits(msgspec.Struct, frozen=True):
    """By namespace; `otherwise` is for those that are not named, None if they have no limits."""

    by_namespace: dict[str, Amounts] = {}
    otherwise: Amounts | None = None

    def of(self, namespace: str) -> Amounts | None:
        """What the namespace may be charged; None if nothing limits it."""
        return self.by_namespace.get(namespace, self.otherwise)


NO_LIMITS = Limits()


class Account(msgspec.Struct, frozen=True):
    """What a namespace is charged, for what, and which of its limits that exceeds."""

    namespace: str
    charges: tuple[Charge, ...]
    charged: Amounts
    limits: Amounts | None
    exceeded: tuple[str, ...]


def accounts(charges: Iterable[Charge], limits: Limits = NO_LIMITS) -> list[Account]:
    """One account per namespace that is charged or has limits of its own, by name."""
    by_namespace: defaultdict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        by_namespace[charge.namespace].append(charge)
    return [
        _account(namespace, by_namespace.get(namespace, []), limits.of(namespace))
        for namespace in sorted(by_namespace.keys() | limits.by_namespace.keys())
    ]


def _account(namespace: str, charges: list[Charge], limits: Amounts | None) -> Account:
    charged = added(charge.amounts for charge in charges)
    over = tuple(name for name, limit in limits or () if dict(charged).get(name, 0) > limit)
    ordered = sorted(charges, key=lambda charge: charge.workload)
    return Account(namespace, tuple(ordered), charged, limits, over)


def added(amounts: Iterable[Amounts]) -> Amounts:
    """The sum by resource."""
    total: defaultdict[str, int] = defaultdict(int)
    for one in amounts:
        for name, amount in one:
            total[name] += amount
    return tuple(sorted(total.items()))


def refusal(charge: Charge, used: Amounts, limits: Amounts | None, quota: str) -> str:
    """Why the charge may not be added to what is used, in the words of ResourceQuota; empty if it may."""
    asked, so_far = dict(charge.amounts), dict(used)
    over = [n for n, limit in limits or () if asked.get(n, 0) > 0 and so_far.get(n, 0) + asked[n] > limit]
    if not over:
        return ""
    shown = (
        ",".join(f"{name}={quantities.show(name, amounts.get(name, 0))}" for name in over)
        for amounts in (asked, so_far, dict(limits or ()))
    )
    return "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(quota, *shown)
