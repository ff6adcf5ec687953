"""Options that suppose what happens before the answer: targets that are lost, drained, tainted or recovered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.controllers.cluster_failures import ClusterEvents
    from bayplan.model.labels import Taint

_WHAT_IF = "What if"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINT = "cluster/NAME:KEY[=VALUE]:EFFECT"


class WhatIfOptions(msgspec.Struct, frozen=True):
    """What is supposed to happen, as written."""

    lose: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    taint: tuple[str, ...] = ()
    recover: tuple[str, ...] = ()
    cordon: tuple[str, ...] = ()
    add_node: tuple[str, ...] = ()

    def cluster_events(self) -> ClusterEvents:
        """What is supposed to happen to the clusters of a fleet; a bad taint is a usage error, as what is of nodes."""
        from bayplan.controllers.cluster_failures import ClusterEvents

        if self.cordon or self.add_node:
            option = "--cordon" if self.cordon else "--add-node"
            raise click.UsageError(f"{option} is for nodes: the input is a fleet")

        return ClusterEvents(self.lose, self.drain, self.recover, tuple(map(_taint, self.taint)))

    def check_for_nodes(self) -> None:
        """Raise a usage error for what can be supposed of clusters only."""
        for option in ("taint", "recover"):
            if getattr(self, option):
                raise click.UsageError(f"--{option} is for fleets: the input has no Cluster objects")


def _taint(text: str) -> tuple[str, Taint]:
    from bayplan.model.labels import Taint

    where, _, taint = text.partition(":")
    label, colon, effect = taint.rpartition(":")
    key, _, value = label.partition("=")
    if not where or not key or not colon or effect not in _EFFECTS:
        raise click.BadParameter(
            f"expected {_TAINT} with an effect of {', '.join(_EFFECTS)}, got {text!r}", param_hint="--taint"
        )
    return where, Taint(key, value, effect)


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
