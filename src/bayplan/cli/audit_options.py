"""The options of `bayplan audit`, in groups: where nodes sit, by what to judge, what to lose. Knows no checks."""

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

TOPOLOGY_HEADING, JUDGING_HEADING, LOSING_HEADING = "Topology", "How to judge", "Losses"
_LEVELS = ("host", "rack", "zone", "region", "cloud")
_STAGES = ("none", "machines", "zones", "sites", "clouds")
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


class Topology(msgspec.Struct, frozen=True):
    """Where to look for what a node stands on."""

    inventory: str | None
    label_key: tuple[str, ...]
    zone_is_host: bool
    bare_metal: bool
    scenario: str | None
    hosting: tuple[str, ...]
    hosting_namespace: tuple[str, ...]

    def keys(self) -> dict[str, str]:
        """The user's key by level."""
        found = {}
        for text in self.label_key:
            level, equals, key = text.partition("=")
            if level not in _LEVELS or not equals or not key:
                expected = f"expected LEVEL=KEY with a level of {', '.join(_LEVELS)}, got {text!r}"
                raise click.BadParameter(expected, param_hint="--label-key")
            found[level] = key
        return found

    def check(self) -> None:
        """Refuse what would be of no effect."""
        if self.hosting_namespace and not self.hosting:
            raise click.UsageError(
                "--hosting-namespace is a namespace of the cluster that --hosting shows: give that too"
            )

    def catalogue(self) -> Catalogue:
        from bayplan.auditing.catalogue import Catalogue

        catalogue = Catalogue(zone_is_host=self.zone_is_host, bare_metal=self.bare_metal)
        for level, key in self.keys().items():
            catalogue = catalogue.preferring(level, key)
        return catalogue


class Judging(msgspec.Struct, frozen=True):
    """By which standard, and what more is asked."""

    profile: str
    ha: bool
    require: tuple[str, ...]
    require_stage: tuple[str, ...]
    allow_undecided: bool

    @property
    def is_legacy(self) -> bool:
        """Whether the answer is the retired script's: one verdict, and nothing else."""
        return self.profile.startswith("legacy") and not self.ha

    def chosen(self) -> AuditProfile:
        """The profile, with what is required beyond it."""
        from bayplan.auditing import checks, profiles

        if self.ha and self.profile != "ha" and commands.was_typed("ha") and commands.was_typed("profile"):
            raise click.UsageError(f"--ha stands for --profile ha, and --profile is {self.profile}: give one of them")
        unknown = [name for name in self.require if name not in checks.ALL]
        if unknown:
            expected = f"no check {unknown[0]}; docs/reference/audit.md and -o json list them"
            raise click.BadParameter(expected, param_hint="--require")
        name = "ha" if self.ha else "legacy=head" if self.profile == "legacy" else self.profile
        return profiles.requiring(profiles.PROFILES[name], self.require)

    def stages(self) -> list[tuple[str, str]]:
        """The stages asked for, each with its sense."""
        found = []
        for text in self.require_stage:
            name = text.removeprefix(_LOSS_SAFE)
            if name not in _STAGES:
                expected = f"expected one of {', '.join(_STAGES)}, or loss-safe: and one of them, got {text!r}"
                raise click.BadParameter(expected, param_hint="--require-stage")
            found.append(("loss-safe" if text.startswith(_LOSS_SAFE) else "distributed", name))
        return found


class Losing(msgspec.Struct, frozen=True):
    """What may fail, and what workloads need then."""

    lose: tuple[str, ...]
    reschedule: bool
    exclude_workloads: str | None
    quorum_workloads: str | None

    def levels(self) -> list[str]:
        """What fails at once: levels, and whatever else nodes share."""
        from bayplan.auditing.survival import ALL_LEVELS

        return [level for name in self.lose or (ALL,) for level in (ALL_LEVELS if name == ALL else (name,))]

    def named(self) -> frozenset[str]:
        """What is no level: it may be a column of the inventory."""
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
        raise click.BadParameter(f"no regular expression: {error}", param_hint=option) from None


TOPOLOGY = commands.OptionGroup(
    "topology",
    Topology,
    (
        commands.Option(
            "--inventory",
            metavar="FILE",
            type=click.Path(),
            heading=TOPOLOGY_HEADING,
            help="Where machines stand: node: {host: …, zone: …}, or openstack server list --long -f json.",
        ),
        commands.Option(
            "--label-key",
            multiple=True,
            metavar="LEVEL=KEY",
            heading=TOPOLOGY_HEADING,
            help="The label that tells host, rack, zone, region or cloud here. May be repeated.",
        ),
        commands.Option("--zone-is-host", is_flag=True, heading=TOPOLOGY_HEADING, help="Zone labels name hypervisors."),
        commands.Option(
            "--bare-metal", is_flag=True, heading=TOPOLOGY_HEADING, help="Every node is a machine of its own."
        ),
        commands.Option(
            "--scenario", metavar="NAME", heading=TOPOLOGY_HEADING, help="Which scenario of a file of labels by node."
        ),
        commands.Option(
            "--hosting",
            multiple=True,
            metavar="PATH",
            type=click.Path(),
            heading=TOPOLOGY_HEADING,
            help="Nodes and pods of the cluster that the control plane runs on as pods (Gardener, Kamaji, HyperShift).",
        ),
        commands.Option(
            "--hosting-namespace",
            multiple=True,
            metavar="NAME",
            heading=TOPOLOGY_HEADING,
            help="The namespace there that is this control plane's. May be repeated.",
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
        help="The standard to judge by.",
    )


def _checks(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    from bayplan.auditing import checks

    return [name for name in checks.ALL if name.startswith(typed)]


JUDGING = commands.OptionGroup(
    "judging",
    Judging,
    (
        profile_option("--profile", JUDGING_HEADING, _PROFILES),
        commands.Option("--ha", is_flag=True, heading=JUDGING_HEADING, help="The same as --profile ha."),
        commands.Option(
            "--require",
            multiple=True,
            shell_complete=_checks,
            metavar="CHECK",
            heading=JUDGING_HEADING,
            help="A check that must hold whatever the profile says, such as fd-room-zone. May be repeated.",
        ),
        commands.Option(
            "--require-stage",
            multiple=True,
            metavar="STAGE",
            heading=JUDGING_HEADING,
            help="none, machines, zones, sites or clouds: over what it must be distributed; loss-safe:zones: the "
            "loss of what it must survive. May be repeated.",
        ),
        commands.Option(
            "--allow-undecided", is_flag=True, heading=JUDGING_HEADING, help="Let pass what the data does not decide."
        ),
    ),
)
LOSING = commands.OptionGroup(
    "losing",
    Losing,
    (
        commands.Option(
            "--lose",
            multiple=True,
            metavar="LEVEL|NAME",
            heading=LOSING_HEADING,
            help="What fails at once: node, host, rack, zone, region, cloud, all of these (the default), or anything "
            "else that nodes share: a label, kernel, os-image, kubelet, a column of the inventory. May be repeated.",
        ),
        commands.Option(
            "--reschedule/--no-reschedule",
            default=True,
            heading=LOSING_HEADING,
            help="Place what each loss displaces again and say what finds no room (the default), or only count.",
        ),
        commands.Option(
            "--exclude-workloads",
            metavar="REGEX",
            heading=LOSING_HEADING,
            help="Leave out workloads whose NAMESPACE/NAME it matches as a whole.",
        ),
        commands.Option(
            "--quorum-workloads",
            metavar="REGEX",
            heading=LOSING_HEADING,
            help="Workloads that need a majority of their replicas, by NAMESPACE/NAME.",
        ),
    ),
)
