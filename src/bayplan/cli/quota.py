"""`bayplan quota`: the topology domains that each namespace is charged for because of exclusive pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click
import msgspec

from bayplan.cli import commands, loading, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.library.settings import Settings

_QUOTA = "Quota"
_CONFIG_MAP = "bayplan-system/bayplan-quota"


class QuotaOptions(msgspec.Struct, frozen=True):
    """What pending pods are charged for, and the ConfigMap with the limits; None for the default ConfigMap."""

    semantics: Literal["upstream", "design"]
    switch: tuple[str, ...]
    charge: Literal["largest", "average"]
    limits: str | None

    def settings(self) -> Settings:
        """The semantics for the library."""
        found = options.configured_settings()
        return msgspec.structs.replace(found, semantics=self.semantics, switches=value_types.switches(self.switch))


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
    spec = loading.spec_of(sources, namespace, quota_options.settings())
    from bayplan.library.cluster import Cluster
    from bayplan.library.inputs import Scope
    from bayplan.library.reading import Reading

    with loading.in_progress(Cluster(Reading(spec), Scope(namespace)), console) as cluster:
        answer = cluster.quota(charge=quota_options.charge, limits=quota_options.limits)
    for note in answer.notes:
        console.note(note)
    console.answer(answer.to_text(output, width=console.table_width))
    return commands.exit_code(answer.ok, exit_zero=exit_zero)
