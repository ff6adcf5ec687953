"""`bayplan quota`: the topology domains that each namespace is charged for because of exclusive pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click
import msgspec

from bayplan.cli import commands, loading, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.enforcing.quota import Account, Amounts, QuotaLimits
    from bayplan.reading.cluster import LoadedCluster

_QUOTA = "Quota"
_CONFIG_MAP = "bayplan-system/bayplan-quota"


class QuotaOptions(msgspec.Struct, frozen=True):
    """What pending pods are charged for, and the ConfigMap with the limits; None for the default ConfigMap."""

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


QUOTA = commands.OptionGroup(
    "quota_options",
    QuotaOptions,
    (
        *(option for option in options.DECISIONS.options if option.name in ("semantics", "switch")),
        commands.Option(
            "--charge",
            type=click.Choice(["largest", "average"]),
            default="largest",
            show_default=True,
            heading=_QUOTA,
            help="What a pending pod is charged for: the largest domain that it may be placed in, or the average of "
            "these domains.",
        ),
        commands.Option(
            "--limits",
            metavar="NAMESPACE/NAME",
            heading=_QUOTA,
            help=f"The ConfigMap with the limits. By default {_CONFIG_MAP}, if it exists.",
        ),
    ),
)


@commands.command(
    "quota",
    summary=SUMMARIES["quota"],
    examples=(
        "bayplan quota -f cluster.yaml -f app.yaml",
        "kubectl get nodes,pods,namespaces,configmaps -A -o json | bayplan quota -f - --charge average",
        "bayplan quota --context prod --limits ops/limits -o json",
    ),
    details=(
        "A pod with required anti-affinity to all pods of all namespaces occupies a whole topology domain, however "
        "small its requests are. Its namespace is charged for the allocatable resources of the nodes in the domain. "
        "Exit code 0 if no namespace exceeds its limits, 1 if one does."
    ),
    groups=(options.INPUT, QUOTA, options.CONSOLE),
    params=(options.output("table", "wide", "json", "yaml"), options.NAMESPACE, options.EXIT_ZERO),
)
def quota(
    *,
    output: str,
    namespace: str | None,
    exit_zero: bool,
    sources: options.InputOptions,
    quota_options: QuotaOptions,
    console: Console,
) -> int:
    """Write the accounts; exit code 1 if one exceeds its limits."""
    from bayplan.enforcing import quota as quota_limits
    from bayplan.enforcing.quota import Charger

    cluster, limits = _read(sources, namespace, quota_options, console)
    charger = Charger(cluster.index, quota_options.charge)
    pending = (charger.pending(workload) for workload in cluster.pending)
    charges = [*charger.placed(), *(charge for charge in pending if charge is not None)]
    supply = quota_limits.sum_amounts(
        target.allocatable for target in cluster.index.slots.targets if target is not None
    )
    _note_overcommitment(limits, supply, console)
    found = [a for a in quota_limits.accounts(charges, limits) if namespace in (None, a.namespace)]
    console.answer(_written(found, output, quota_options.charge, supply, console))
    return commands.exit_code(not any(account.exceeded for account in found), exit_zero=exit_zero)


def _read(
    sources: options.InputOptions, namespace: str | None, quota_options: QuotaOptions, console: Console
) -> tuple[LoadedCluster, QuotaLimits]:
    sources.check()
    semantics = value_types.semantics_with(quota_options.semantics, quota_options.switch)
    from bayplan.kube_api import resources
    from bayplan.reading import cluster
    from bayplan.reading.quota_limits import LimitsSink
    from bayplan.watching.fetching import ObjectToFetch
    from bayplan.wire import kinds

    where = quota_options.config_map()
    sink = LimitsSink("/".join(where))
    asked_for = ObjectToFetch(resources.of_kind("ConfigMap"), *where)
    unnamed, sinks = namespace or "default", {kinds.CONFIG_MAP: sink}
    inputs, pods = loading.read(sources, unnamed, semantics, console, sinks=sinks, objects=(asked_for,))
    if namespace is not None and namespace not in sink.limits.by_namespace:
        loading.note_empty_namespace(namespace, inputs, console)
    if not sink.found:
        if quota_options.limits is not None:
            raise click.BadParameter(f"the input has no ConfigMap {quota_options.limits}", param_hint="--limits")
        console.note(f"there are no limits: the input has no ConfigMap {_CONFIG_MAP}")
    found = cluster.cluster_of(inputs, semantics=semantics, sink=pods)
    for note in found.notes:
        console.note(note)
    return found, sink.limits


def _note_overcommitment(limits: QuotaLimits, supply: Amounts, console: Console) -> None:
    """Report the resources of which the limits add up to more than the nodes have, which is allowed."""
    from bayplan.enforcing import quota as quota_limits
    from bayplan.model import quantities

    allocatable = dict(supply)
    for name, limit in quota_limits.sum_amounts(limits.by_namespace.values()):
        if limit > allocatable.get(name, 0):
            amounts = (quantities.show(name, amount) for amount in (limit, allocatable.get(name, 0)))
            console.note(
                "the limits of {} add up to {}, more than the {} of all nodes: "
                "priority and preemption decide which pods run".format(name, *amounts)
            )


def _written(
    accounts: list[Account], output: str, charge: Literal["largest", "average"], supply: Amounts, console: Console
) -> str:
    from bayplan.writing import quota_report, tables, versioned

    if output in ("json", "yaml"):
        return versioned.written(quota_report.document(accounts, charge, supply), output)
    if not accounts:
        return "no namespace is charged: no pod excludes all others\n"
    wide, width = output == "wide", console.table_width
    drawn = [quota_report.accounts_table(accounts, wide=wide)]
    if any(account.charges for account in accounts):
        drawn.append(quota_report.charges_table(accounts, charge, wide=wide))
    return "\n".join(tables.rendered(table, width) for table in drawn)
