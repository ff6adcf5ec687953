"""The options of `bayplan audit` in groups: topology, profile and simulated losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands

if TYPE_CHECKING:
    from bayplan.library.audit_settings import AuditSettings

TOPOLOGY_HEADING, PROFILE_HEADING, LOSS_HEADING = "Topology", "Checks", "Losses"
_LEVELS = ("host", "rack", "zone", "region", "cloud")
_PROFILES = (
    "scs-0214-v2",
    "scs-0214-v2-draft",
    "scs-0214-v1",
    "scs-0213",
    "ha",
    "bsi-app-4.4.a19",
    "legacy=old",
    "legacy=head",
    "legacy",
)


class TopologyOptions(msgspec.Struct, frozen=True):
    """Where the topology of the nodes is read from."""

    inventory: str | None
    reveal_inventory: bool
    label_key: tuple[str, ...]
    zone_is_host: bool
    bare_metal: bool
    scenario: str | None
    hosting: tuple[str, ...]
    hosting_namespace: tuple[str, ...]

    def keys(self) -> dict[str, str]:
        """Level → label key, as set by the user."""
        found = {}
        for text in self.label_key:
            level, equals, key = text.partition("=")
            if level not in _LEVELS or not equals or not key:
                expected = f"expected LEVEL=KEY with a level of {', '.join(_LEVELS)}, got {text!r}"
                raise click.BadParameter(expected, param_hint="--label-key")
            found[level] = key
        return found

    def check(self) -> None:
        """Raise a usage error for an option that would have no effect."""
        if self.reveal_inventory and not self.inventory:
            raise click.UsageError("--reveal-inventory is about the names of --inventory: give --inventory too")
        if self.hosting_namespace and not self.hosting:
            raise click.UsageError("--hosting-namespace is a namespace of the cluster of --hosting: give --hosting too")


class ProfileOptions(msgspec.Struct, frozen=True):
    """Which checks are required."""

    profile: str
    ha: bool
    require: tuple[str, ...]
    require_stage: tuple[str, ...]
    allow_undecided: bool
    fail_on: str
    accept: str | None

    def name(self) -> str:
        """The profile; raises a usage error for two of them."""
        if self.ha and self.profile != "ha" and commands.was_typed("ha") and commands.was_typed("profile"):
            raise click.UsageError(f"--ha is --profile ha, but --profile is {self.profile}: give one of them")
        return "ha" if self.ha else self.profile


class LossOptions(msgspec.Struct, frozen=True):
    """Which losses are simulated, and what workloads need to survive them."""

    lose: tuple[str, ...]
    reschedule: bool
    exclude_workloads: str | None
    quorum_workloads: str | None


def audit_settings(
    topology: TopologyOptions, profile: ProfileOptions, losses: LossOptions, *, recursive: bool
) -> AuditSettings:
    """The same for the library."""
    from bayplan.library.audit_settings import ALL, AuditSettings

    topology.check()
    return AuditSettings(
        profile=profile.name(),
        require=profile.require,
        require_stages=profile.require_stage,
        allow_undecided=profile.allow_undecided,
        fail_on="warning" if profile.fail_on == "warning" else "fail",
        accept=profile.accept or "",
        inventory=topology.inventory or "",
        reveal_inventory=topology.reveal_inventory,
        label_keys=topology.keys(),
        zone_is_host=topology.zone_is_host,
        bare_metal=topology.bare_metal,
        scenario=topology.scenario or "",
        hosting=topology.hosting,
        hosting_recursive=recursive,
        hosting_namespaces=topology.hosting_namespace,
        lose=losses.lose or (ALL,),
        reschedule=losses.reschedule,
        exclude_workloads=losses.exclude_workloads or "",
        quorum_workloads=losses.quorum_workloads or "",
    )


TOPOLOGY = commands.OptionGroup(
    "topology",
    TopologyOptions,
    (
        commands.Option(
            "--inventory",
            metavar="FILE",
            type=click.Path(),
            heading=TOPOLOGY_HEADING,
            help="Topology of the machines: YAML with node: {host: …, zone: …}, or the output of openstack server list "
            "--long -f json.",
        ),
        commands.Option(
            "--reveal-inventory",
            is_flag=True,
            heading=TOPOLOGY_HEADING,
            help="Name machines as the inventory does where labels are obfuscated. The report then says which label is "
            "which machine.",
        ),
        commands.Option(
            "--label-key",
            multiple=True,
            metavar="LEVEL=KEY",
            heading=TOPOLOGY_HEADING,
            help="Label key of a level: host, rack, zone, region or cloud. May be repeated.",
        ),
        commands.Option(
            "--zone-is-host", is_flag=True, heading=TOPOLOGY_HEADING, help="Zone labels are names of hypervisors."
        ),
        commands.Option(
            "--bare-metal", is_flag=True, heading=TOPOLOGY_HEADING, help="Every node is a separate machine."
        ),
        commands.Option(
            "--scenario",
            metavar="NAME",
            heading=TOPOLOGY_HEADING,
            help="Scenario to use from a file with labels by node.",
        ),
        commands.Option(
            "--hosting",
            multiple=True,
            metavar="PATH",
            type=click.Path(),
            heading=TOPOLOGY_HEADING,
            help="Nodes and pods of the cluster that hosts the control plane as pods (Gardener, Kamaji, HyperShift).",
        ),
        commands.Option(
            "--hosting-namespace",
            multiple=True,
            metavar="NAME",
            heading=TOPOLOGY_HEADING,
            help="Namespace of this control plane in the hosting cluster. May be repeated.",
        ),
    ),
)


def profile_option(name: str, heading: str, profiles: tuple[str, ...] = _PROFILES[:6]) -> commands.Option:
    """The option that chooses a profile."""
    return commands.Option(
        name,
        type=click.Choice(profiles),
        default=profiles[0],
        show_default=True,
        heading=heading,
        help="The standard to check against.",
    )


def _checks(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    from bayplan.auditing import checks

    return [name for name in checks.ALL if name.startswith(typed)]


PROFILE = commands.OptionGroup(
    "profile_options",
    ProfileOptions,
    (
        profile_option("--profile", PROFILE_HEADING, _PROFILES),
        commands.Option("--ha", is_flag=True, heading=PROFILE_HEADING, help="The same as --profile ha."),
        commands.Option(
            "--require",
            multiple=True,
            shell_complete=_checks,
            metavar="CHECK",
            heading=PROFILE_HEADING,
            help="A check to require in addition to the profile, such as fd-room-zone. May be repeated.",
        ),
        commands.Option(
            "--require-stage",
            multiple=True,
            metavar="STAGE",
            heading=PROFILE_HEADING,
            help="Stage that the control plane must reach: none, machines, zones, clouds or sites if it must be "
            "distributed over several of them, loss-safe:zones (and so on) if it must survive the loss of one. May be "
            "repeated.",
        ),
        commands.Option(
            "--allow-undecided",
            is_flag=True,
            heading=PROFILE_HEADING,
            help="Pass required checks that the input leaves undecided.",
        ),
        commands.Option(
            "--fail-on",
            type=click.Choice(["fail", "warning"]),
            default="fail",
            show_default=True,
            heading=PROFILE_HEADING,
            help="The least verdict for which the exit code is 1: a failed or undecided required check, or also a "
            "recommendation that is not followed.",
        ),
        commands.Option(
            "--accept",
            metavar="FILE",
            type=click.Path(),
            heading=PROFILE_HEADING,
            help="Accepted findings: a list of {check, reason, expires: YYYY-MM-DD, nodes, cluster}. They stay "
            "findings, and do not decide the exit code until they expire.",
        ),
    ),
)
LOSSES = commands.OptionGroup(
    "losses",
    LossOptions,
    (
        commands.Option(
            "--lose",
            multiple=True,
            metavar="LEVEL|NAME",
            heading=LOSS_HEADING,
            help="Failure domain to lose: node, host, rack, zone, region, cloud, all of these (the default), or "
            "another property that nodes share: a label, kernel, os-image, kubelet, a column of the inventory. May be "
            "repeated.",
        ),
        commands.Option(
            "--reschedule/--no-reschedule",
            default=True,
            heading=LOSS_HEADING,
            help="Reschedule the pods that each loss displaces and show those that do not fit (the default), or only "
            "count the displaced pods.",
        ),
        commands.Option(
            "--exclude-workloads",
            metavar="REGEX",
            heading=LOSS_HEADING,
            help="Exclude workloads whose whole NAMESPACE/NAME matches.",
        ),
        commands.Option(
            "--quorum-workloads",
            metavar="REGEX",
            heading=LOSS_HEADING,
            help="Workloads that need a majority of their replicas, by NAMESPACE/NAME.",
        ),
    ),
)
