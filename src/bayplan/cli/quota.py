"""`bayplan quota`: who is charged for which domain, and why. Writes nothing but the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click
import msgspec

from bayplan.cli import commands, loading, options, outcomes, switches
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.enforcing.quota import Account, Amounts, QuotaLimits
    from bayplan.reading.cluster import LoadedCluster

_QUOTA = "Quota"
_CONFIG_MAP = "bayplan-system/bayplan-quota"


class Charging(msgspec.Struct, frozen=True):
    """What waiting pods are charged, and where the limits stand; None for the usual place."""

    semantics: str
    switch: tuple[str, ...]
    charge: Literal["largest", "average"]
    limits: str | None

    def config_map(self) -> tuple[str, str]:
        """Namespace and name of the ConfigMap with the limits."""
        namespace, slash, name = (self.limits or _CONFIG_MAP).partition("/")
        if not (namespace and slash and name):
            raise click.BadParameter(f"expected NAMESPACE/NAME, got {self.limits!r}", param_hint="--limits")
        return namespace, name


CHARGING = commands.OptionGroup(
    "charging",
    Charging,
    (
        *(option for option in options.DECIDING.options if option.name in ("semantics", "switch")),
        commands.Option(
            "--charge",
            type=click.Choice(["largest", "average"]),
            default="largest",
            show_default=True,
            heading=_QUOTA,
            help="Charge a waiting pod for the largest domain that it may land on, or for their average.",
        ),
        commands.Option(
            "--limits",
            metavar="NAMESPACE/NAME",
            heading=_QUOTA,
            help=f"The ConfigMap with the limits; {_CONFIG_MAP} if it is there.",
        ),
    ),
)


@commands.command(
    "quota",
    summary="Show who is charged for which domain by pods that refuse all others, and why.",
    examples=(
        "bayplan quota -f cluster.yaml -f app.yaml",
        "kubectl get nodes,pods,configmaps -A -o json | bayplan quota -f - --charge average",
        "bayplan quota --context prod --limits ops/limits -o json",
    ),
    details=(
        "A pod whose hard anti-affinity means all pods of all namespaces takes a whole domain, however little it asks "
        "for, and is charged for what the domain's nodes offer. "
        "Exit code 0 if no namespace is over its limits, 1 if one is."
    ),
    groups=(options.SOURCES, CHARGING, options.CONSOLE),
    params=(options.output("table", "wide", "json", "yaml"), options.NAMESPACE, options.EXIT_ZERO),
)
def quota(
    *,
    output: str,
    namespace: str | None,
    exit_zero: bool,
    sources: options.Sources,
    charging: Charging,
    console: Console,
) -> int:
    """Write the accounts: 1 if one is over its limits."""
    from bayplan.enforcing import quota as quota_limits
    from bayplan.enforcing.quota import Charger

    cluster, limits = _read(sources, namespace, charging, console)
    charger = Charger(cluster.index, charging.charge)
    waiting = (charger.waiting(workload) for workload in cluster.pending)
    charges = [*charger.placed(), *(charge for charge in waiting if charge is not None)]
    supply = quota_limits.sum_amounts(
        target.allocatable for target in cluster.index.slots.targets if target is not None
    )
    _overcommitted(limits, supply, console)
    found = [a for a in quota_limits.accounts(charges, limits) if namespace in (None, a.namespace)]
    console.answer(_written(found, output, charging.charge, supply, console))
    return outcomes.of(not any(account.exceeded for account in found), exit_zero=exit_zero)


def _read(
    sources: options.Sources, namespace: str | None, charging: Charging, console: Console
) -> tuple[LoadedCluster, QuotaLimits]:
    sources.check()
    semantics = switches.semantics(charging.semantics, charging.switch)
    from bayplan.kube_api.resources import Resource
    from bayplan.reading import cluster
    from bayplan.reading.quota_limits import LimitsSink
    from bayplan.watching.fetching import ObjectToFetch

    where = charging.config_map()
    sink = LimitsSink("/".join(where))
    asked_for = ObjectToFetch(Resource("", "v1", "configmaps"), *where)
    unnamed, sinks = namespace or "default", {"ConfigMap": sink}
    inputs, pods = loading.read(sources, unnamed, semantics, console, sinks=sinks, objects=(asked_for,))
    if namespace not in sink.limits.by_namespace:
        loading.note_namespace(namespace, inputs, console)
    if not sink.found:
        if charging.limits is not None:
            raise click.BadParameter(f"the input has no ConfigMap {charging.limits}", param_hint="--limits")
        console.note(f"nothing is limited: the input has no ConfigMap {_CONFIG_MAP}")
    found = cluster.cluster_of(inputs, semantics=semantics, sink=pods)
    for note in found.notes:
        console.note(note)
    return found, sink.limits


def _overcommitted(limits: QuotaLimits, supply: Amounts, console: Console) -> None:
    """Say where limits promise more than there is, which they may."""
    from bayplan.enforcing import quota as quota_limits
    from bayplan.model import quantities

    there_is = dict(supply)
    for name, promised in quota_limits.sum_amounts(limits.by_namespace.values()):
        if promised > there_is.get(name, 0):
            amounts = (quantities.show(name, amount) for amount in (promised, there_is.get(name, 0)))
            console.note(
                "limits of {} add up to {}, more than the {} there are: "
                "who runs is then up to priority and preemption".format(name, *amounts)
            )


def _written(
    accounts: list[Account], output: str, charge: Literal["largest", "average"], supply: Amounts, console: Console
) -> str:
    from bayplan.writing import quota_report, tables, versioned

    if output in ("json", "yaml"):
        return versioned.written(quota_report.document(accounts, charge, supply), output)
    if not accounts:
        return "nobody is charged: no pod refuses all others\n"
    wide, width = output == "wide", console.table_width
    drawn = [quota_report.accounts_table(accounts, wide=wide)]
    if any(account.charges for account in accounts):
        drawn.append(quota_report.charges_table(accounts, charge, wide=wide))
    return "\n".join(tables.rendered(table, width) for table in drawn)
