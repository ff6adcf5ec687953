"""The options of `bayplan audit` in groups: topology, profile and simulated losses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands

if TYPE_CHECKING:
    from bayplan.auditing.catalogue import Catalogue
    from bayplan.auditing.profiles import AuditProfile
    from bayplan.auditing.workload_groups import ReplicaPreferences

TOPOLOGY_HEADING, PROFILE_HEADING, LOSS_HEADING = "Topology", "Checks", "Losses"
_LEVELS = ("host", "rack", "zone", "region", "cloud")
_STAGES = ("none", "machines", "zones", "clouds", "sites")
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
_LOSS_SAFE = "loss-safe:"
ALL = "all"


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

    def catalogue(self) -> Catalogue:
        from bayplan.auditing.catalogue import Catalogue

        catalogue = Catalogue(
            zone_is_host=self.zone_is_host, bare_metal=self.bare_metal, inventory_revealed=self.reveal_inventory
        )
        for level, key in self.keys().items():
            catalogue = catalogue.preferring(level, key)
        return catalogue


class ProfileOptions(msgspec.Struct, frozen=True):
    """Which checks are required."""

    profile: str
    ha: bool
    require: tuple[str, ...]
    require_stage: tuple[str, ...]
    allow_undecided: bool
    fail_on: str
    accept: str | None

    @property
    def is_legacy(self) -> bool:
        """Whether to answer as the retired SCS script did: with a single verdict."""
        return self.profile.startswith("legacy") and not self.ha

    def chosen(self) -> AuditProfile:
        """The profile, with the checks of --require added."""
        from bayplan.auditing import checks, profiles

        if self.ha and self.profile != "ha" and commands.was_typed("ha") and commands.was_typed("profile"):
            raise click.UsageError(f"--ha is --profile ha, but --profile is {self.profile}: give one of them")
        unknown = [name for name in self.require if name not in checks.ALL]
        if unknown:
            from bayplan.reading import acceptances

            near = (
                acceptances.nearest(unknown[0], checks.ALL) or "; docs/reference/audit.md and -o json list the checks"
            )
            expected = f"there is no check {unknown[0]}{near}"
            raise click.BadParameter(expected, param_hint="--require")
        name = "ha" if self.ha else "legacy=head" if self.profile == "legacy" else self.profile
        return profiles.requiring(profiles.PROFILES[name], self.require)

    def stages(self) -> list[tuple[str, str]]:
        """The required stages, each with its meaning: distributed or loss-safe."""
        found = []
        for text in self.require_stage:
            name = text.removeprefix(_LOSS_SAFE)
            if name not in _STAGES:
                expected = f"expected one of {', '.join(_STAGES)}, or loss-safe: and one of them, got {text!r}"
                raise click.BadParameter(expected, param_hint="--require-stage")
            found.append(("loss-safe" if text.startswith(_LOSS_SAFE) else "distributed", name))
        return found


class LossOptions(msgspec.Struct, frozen=True):
    """Which losses are simulated, and what workloads need to survive them."""

    lose: tuple[str, ...]
    reschedule: bool
    exclude_workloads: str | None
    quorum_workloads: str | None

    def levels(self) -> list[str]:
        """What fails at once: levels, and other properties that nodes share."""
        from bayplan.auditing.survival import ALL_LEVELS

        return [level for name in self.lose or (ALL,) for level in (ALL_LEVELS if name == ALL else (name,))]

    def named(self) -> frozenset[str]:
        """The names that are not levels; they may be columns of the inventory."""
        from bayplan.auditing.survival import ALL_LEVELS

        return frozenset(self.lose) - {ALL, *ALL_LEVELS}

    def preferences(self) -> ReplicaPreferences:
        from bayplan.auditing.workload_groups import ReplicaPreferences

        return ReplicaPreferences(
            _pattern(self.exclude_workloads, "--exclude-workloads"),
            _pattern(self.quorum_workloads, "--quorum-workloads"),
        )


def _pattern(text: str | None, option: str) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise click.BadParameter(f"not a regular expression: {error}", param_hint=option) from None


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
