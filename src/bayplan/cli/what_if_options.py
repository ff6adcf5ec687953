"""Options that suppose what happens before the answer: targets that are lost, drained, tainted or recovered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.library.inputs import Supposed

_WHAT_IF = "What if"
_TAINT = "cluster/NAME:KEY[=VALUE]:EFFECT"


class WhatIfOptions(msgspec.Struct, frozen=True):
    """What is supposed to happen, as written."""

    lose: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    taint: tuple[str, ...] = ()
    recover: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    add_node: tuple[str, ...] = ()

    def supposed(self) -> Supposed:
        """The same for the library."""
        from bayplan.library.inputs import Supposed

        return Supposed(**msgspec.structs.asdict(self))

    def check(self, *, is_fleet: bool) -> None:
        """Raise a usage error for what can be supposed only of nodes in a fleet, and the other way round."""
        for option in ("cordon", "add_node") if is_fleet else ("taint", "recover"):
            if getattr(self, option):
                what = "nodes: the input is a fleet" if is_fleet else "fleets: the input has no Cluster objects"
                raise click.UsageError(f"--{option.replace('_', '-')} is for {what}")


NOTHING_SUPPOSED = WhatIfOptions()
WHAT_IF = OptionGroup(
    "what_if",
    WhatIfOptions,
    (
        Option(
            "--lose",
            multiple=True,
            metavar="node/NAME|cluster/NAME|KEY=VALUE",
            heading=_WHAT_IF,
            help="Suppose that a node is lost for good: no PodDisruptionBudget is asked, and pods without a controller "
            "are gone. In a fleet, that a cluster fails and its workloads are evicted, except those that tolerate it; "
            "region=, provider=, zone= or a label selects several. May be repeated.",
        ),
        Option(
            "--drain",
            multiple=True,
            metavar="node/NAME|cluster/NAME|KEY=VALUE",
            heading=_WHAT_IF,
            help="Suppose that a node is drained, as by kubectl drain --ignore-daemonsets --delete-emptydir-data: "
            "PodDisruptionBudgets are respected, and what blocks it is named. In a fleet, that all workloads are "
            "evicted from a cluster, and that it takes no others. May be repeated.",
        ),
        Option(
            "--cordon",
            multiple=True,
            metavar="node/NAME|KEY=VALUE",
            heading=_WHAT_IF,
            help="Suppose that a node is cordoned. May be repeated.",
        ),
        Option(
            "--add-node",
            multiple=True,
            metavar="FILE|like=NODE",
            heading=_WHAT_IF,
            help="Suppose more nodes: those of a file, or an empty one like a node of the input, with the daemons that "
            "run there. May be repeated.",
        ),
        Option(
            "--taint",
            multiple=True,
            metavar=_TAINT,
            heading=_WHAT_IF,
            help="Suppose that a cluster has this taint; NoExecute evicts what does not tolerate it.",
        ),
        Option(
            "--recover",
            multiple=True,
            metavar="cluster/NAME|KEY=VALUE",
            heading=_WHAT_IF,
            help="Suppose that a cluster is healthy again: without the taints of its failure.",
        ),
    ),
)
