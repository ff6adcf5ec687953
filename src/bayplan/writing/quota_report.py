"""The output of `quota` in every format. It does not know how charges are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayplan.enforcing.quota import AVERAGE, Account, Amounts, Charge
from bayplan.model import quantities
from bayplan.writing import versioned
from bayplan.writing.tables import Table

_DEFAULT_RESOURCES = ("cpu", "memory")
_EXCEEDED_STYLE = "red"


def charges_table(accounts: Sequence[Account], charge: str, *, wide: bool = False) -> Table:
    """One row per charged pod."""
    every = [one for account in accounts for one in account.charges]
    head: tuple[str, ...] = ("NAMESPACE", "NAME", "NODE", "CPU", "MEMORY", "WHY")
    rows = [[one.namespace, _name(one), one.node, *_amounts(one.amounts), why(one, charge)] for one in every]
    if not wide:
        return Table(head, rows)
    more = [[", ".join(f"{n}={quantities.show(n, a)}" for n, a in one.amounts), *_terms(one)] for one in every]
    rows = [row[:3] + wider + row[5:] for row, wider in zip(rows, more, strict=True)]
    return Table(("NAMESPACE", "NAME", "NODE", "CHARGE", "TERM", "WHY"), rows)


def accounts_table(accounts: Sequence[Account], *, wide: bool = False) -> Table:
    """One row per namespace and resource: cpu, memory and limited resources; with `wide`, all charged resources."""
    rows, styles = [], []
    for account in accounts:
        charged, limits = dict(account.charged), dict(account.limits or ())
        shown = [*_DEFAULT_RESOURCES, *sorted((charged.keys() if wide else set()) | limits.keys())]
        for name in dict.fromkeys(shown):
            over = name in account.exceeded
            limit = quantities.show(name, limits[name]) if name in limits else ""
            charge = quantities.show(name, charged.get(name, 0))
            rows.append((account.namespace, name, charge, limit, "exceeded" if over else "-"))
            styles.append(_EXCEEDED_STYLE if over else "")
    return Table(("NAMESPACE", "RESOURCE", "CHARGED", "LIMIT", "STATE"), rows, styles)


def why(one: Charge, charge: str) -> str:
    """The domains that the pod excludes other pods from, in one sentence."""
    keys = " and ".join(one.exclusion.keys)
    if not one.n_domains:
        return f"blocks nothing: no node that it fits on has {keys}"
    whole = ", the whole cluster" if one.whole_cluster else ""
    if one.node:
        return f"blocks {' and '.join(one.domains)}{whole}"
    if one.n_domains == 1:
        return f"will block the only domain of {keys} that it fits in{whole}"
    which = "average" if charge == AVERAGE else "largest"
    return f"may block any of {one.n_domains} domains of {keys}: charged for the {which} until it is placed"


def document(accounts: Sequence[Account], charge: str, supply: Amounts) -> dict[str, Any]:
    """The report as a versioned `QuotaReport`."""
    content = {
        "charge": charge,
        "exceeded": any(account.exceeded for account in accounts),
        "supply": _quantities(supply),
        "accounts": [_account(account, charge) for account in accounts],
    }
    return versioned.document("QuotaReport", content)


def _account(account: Account, charge: str) -> dict[str, Any]:
    return {
        "namespace": account.namespace,
        "charged": _quantities(account.charged),
        "limits": None if account.limits is None else _quantities(account.limits),
        "exceeded": list(account.exceeded),
        "charges": [_charge(one, charge) for one in account.charges],
    }


def _charge(one: Charge, charge: str) -> dict[str, Any]:
    return {
        "name": _name(one),
        "node": one.node,
        "amounts": _quantities(one.amounts),
        "topologyKeys": list(one.exclusion.keys),
        "domains": list(one.domains),
        "possibleDomains": one.n_domains,
        "nodes": one.n_nodes,
        "wholeCluster": one.whole_cluster,
        "terms": list(one.exclusion.terms),
        "why": why(one, charge),
    }


def _quantities(amounts: Amounts) -> dict[str, str]:
    return {name: quantities.show(name, amount) for name, amount in amounts}


def _amounts(amounts: Amounts) -> list[str]:
    held = dict(amounts)
    return [quantities.show(name, held.get(name, 0)) for name in _DEFAULT_RESOURCES]


def _terms(one: Charge) -> list[str]:
    return [", ".join(one.exclusion.terms)]


def _name(one: Charge) -> str:
    return one.workload.partition("/")[2]
