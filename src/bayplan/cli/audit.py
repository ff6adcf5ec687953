"""`bayplan audit`: do the nodes really sit on separate machines, and which rules does that meet?"""

from __future__ import annotations

import pathlib
import re
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, options, outcomes
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.auditing.audit import Audit
    from bayplan.auditing.catalogue import Catalogue
    from bayplan.reading.inventory import Found

_TOPOLOGY, _JUDGING = "Topology", "How to judge"
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


class Topology(msgspec.Struct, frozen=True):
    """Where to look for what a node stands on."""

    inventory: str | None
    label_key: tuple[str, ...]
    zone_is_host: bool
    bare_metal: bool
    scenario: str | None

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
    require_stage: tuple[str, ...]
    allow_undecided: bool
    exclude_workloads: str | None

    def name(self) -> str:
        if self.ha:
            return "ha"
        return "legacy=head" if self.profile == "legacy" else self.profile

    def excluded(self) -> re.Pattern[str] | None:
        try:
            return None if self.exclude_workloads is None else re.compile(self.exclude_workloads)
        except re.error as error:
            raise click.BadParameter(f"no regular expression: {error}", param_hint="--exclude-workloads") from None

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


TOPOLOGY = commands.OptionGroup(
    "topology",
    Topology,
    (
        commands.Option(
            "--inventory",
            metavar="FILE",
            type=click.Path(),
            heading=_TOPOLOGY,
            help="Where machines stand: node: {host: …, zone: …}, or openstack server list --long -f json.",
        ),
        commands.Option(
            "--label-key",
            multiple=True,
            metavar="LEVEL=KEY",
            heading=_TOPOLOGY,
            help="The label that tells host, rack, zone, region or cloud here. May be repeated.",
        ),
        commands.Option("--zone-is-host", is_flag=True, heading=_TOPOLOGY, help="Zone labels name hypervisors."),
        commands.Option("--bare-metal", is_flag=True, heading=_TOPOLOGY, help="Every node is a machine of its own."),
        commands.Option(
            "--scenario", metavar="NAME", heading=_TOPOLOGY, help="Which scenario of a file of labels by node."
        ),
    ),
)
JUDGING = commands.OptionGroup(
    "judging",
    Judging,
    (
        commands.Option(
            "--profile",
            type=click.Choice(_PROFILES),
            default=_PROFILES[0],
            show_default=True,
            heading=_JUDGING,
            help="The standard to judge by.",
        ),
        commands.Option("--ha", is_flag=True, heading=_JUDGING, help="The same as --profile ha."),
        commands.Option(
            "--require-stage",
            multiple=True,
            metavar="STAGE",
            heading=_JUDGING,
            help="none, machines, zones, sites or clouds: over what it must be distributed; loss-safe:zones: the "
            "loss of what it must survive. May be repeated.",
        ),
        commands.Option(
            "--allow-undecided", is_flag=True, heading=_JUDGING, help="Let pass what the data does not decide."
        ),
        commands.Option(
            "--exclude-workloads",
            metavar="REGEX",
            heading=_JUDGING,
            help="Leave out workloads whose NAMESPACE/NAME it matches as a whole.",
        ),
    ),
)


@commands.command(
    "audit",
    summary="Check that nodes sit on separate machines, and what that proves.",
    examples=(
        "bayplan audit -f nodes.yaml",
        "bayplan audit -f dump.json --inventory servers.json --ha -o markdown",
        "bayplan audit labels --inventory servers.yaml --hash-key-file key",
    ),
    details=(
        "Nodes alone give an answer; pods, leases, Machines, ConfigMaps and an inventory make it better. Exit code 0 "
        "if every required check is PASS or N/A, 1 if one is FAIL or UNDECIDED. `audit labels` prints kubectl label "
        "lines from an inventory."
    ),
    groups=(options.SOURCES, TOPOLOGY, JUDGING, options.CONSOLE),
    params=(
        click.Argument(["what"], required=False, type=click.Choice(["labels"]), metavar="[labels]"),
        options.output("table", "json", "yaml", "junit", "sarif", "markdown", "scs"),
        commands.Option(
            "--hash-key-file",
            metavar="FILE",
            type=click.Path(),
            heading=_TOPOLOGY,
            help="With `labels`: hide values by a hash with the key in this file.",
        ),
        commands.Option(
            "--repair", is_flag=True, heading=_JUDGING, help="Add the fewest moves that would mend what failed."
        ),
        options.EXIT_ZERO,
    ),
)
def audit(
    *,
    what: str | None,
    output: str,
    hash_key_file: str | None,
    repair: bool,
    exit_zero: bool,
    sources: options.Sources,
    topology: Topology,
    judging: Judging,
    console: Console,
) -> int:
    """Judge the layout that the files show, and write the verdicts."""
    if what == "labels":
        return _labels(sources, topology, hash_key_file, console)
    sources.check()
    if repair and output not in ("table", "markdown", "json", "yaml"):
        raise click.UsageError("a repair plan can be written as table, markdown, json or yaml")
    found, result = _judged(sources, topology, judging, console)
    passed = result.passed(allow_undecided=judging.allow_undecided)
    planned = _plan(result) if repair else None
    console.answer(_written(result, found, output, judging, console, planned=planned))
    return outcomes.of(passed, exit_zero=exit_zero)


def _labels(sources: options.Sources, topology: Topology, hash_key_file: str | None, console: Console) -> int:
    from bayplan.errors import Fault, InputError
    from bayplan.reading import inventory
    from bayplan.writing import audit_labels

    if not topology.inventory:
        raise click.UsageError("labels come from an inventory: give one with --inventory")
    key = ""
    if hash_key_file:
        try:
            key = pathlib.Path(hash_key_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=hash_key_file)) from None
        if not key:
            raise InputError(Fault("the key is empty", file=hash_key_file))
    content = inventory.load_inventory(topology.inventory)
    nodes = inventory.load(sources.filename, recursive=sources.recursive).nodes if sources.filename else []
    named = inventory.by_node(content, nodes)
    console.answer(audit_labels.commands(named, hash_key=key, keys=topology.keys()))
    return outcomes.YES


def _judged(sources: options.Sources, topology: Topology, judging: Judging, console: Console) -> tuple[Found, Audit]:
    from bayplan.auditing import audit as auditing
    from bayplan.auditing import profiles, surveying
    from bayplan.reading import inventory

    catalogue, stages, excluded = topology.catalogue(), judging.stages(), judging.excluded()
    found = inventory.load(sources.filename, recursive=sources.recursive, scenario=topology.scenario or "")
    content = inventory.load_inventory(topology.inventory) if topology.inventory else {}
    unknown = inventory.unknown_entries(content, found.nodes)
    for text in found.warnings:
        console.warning(text)
    if unknown:
        console.warning(f"{topology.inventory} names {len(unknown)} unknown nodes: {', '.join(unknown[:5])}")
    layout = surveying.layout_of(found.survey(content), catalogue)
    for text in layout.notes:
        console.warning(text)
    workloads = surveying.workloads_of(found.pods, excluded) if found.pods else None
    profile = profiles.PROFILES[judging.name()]
    return found, auditing.audit(layout, profile, required_stages=stages, workloads=workloads)


def _plan(result: Audit) -> dict[str, list[str]]:
    """The moves that would let the required checks pass, and how to carry them out."""
    from bayplan.auditing.repairing import demands, repair, texts

    asked = demands.demands_of(one.id for one in result.results if one.required)
    plan = repair.plan(result.layout, asked)
    return {
        "steps": texts.summary(plan),
        "clusterApi": texts.cluster_api(plan, result.layout),
        "openstack": texts.openstack(plan, result.layout),
    }


def _told(planned: dict[str, list[str]] | None) -> str:
    if planned is None:
        return ""
    titles = {"steps": "Repair plan", "clusterApi": "With Cluster API", "openstack": "With OpenStack"}
    parts = [
        "\n".join([f"{titles[key]}:", *(f"  {line}" for line in lines)]) for key, lines in planned.items() if lines
    ]
    return "\n" + "\n\n".join(parts) + "\n"


def _written(
    result: Audit,
    found: Found,
    output: str,
    judging: Judging,
    console: Console,
    *,
    planned: dict[str, list[str]] | None,
) -> str:
    import bayplan
    from bayplan.writing import audit_formats, audit_report, tables, versioned

    passed = result.passed(allow_undecided=judging.allow_undecided)
    if output == "junit":
        return audit_formats.junit(result)
    if output == "sarif":
        file = next(iter(found.place_by_node.values()))[0]
        return versioned.as_json(audit_formats.sarif(result, bayplan.__version__, found.place_by_node, file))
    if output == "markdown":
        return audit_report.markdown(result, passed=passed) + (
            f"```\n{_told(planned).strip()}\n```\n" if planned else ""
        )
    if output == "scs":
        return audit_formats.scs(result, allow_undecided=judging.allow_undecided)
    if output != "table":
        document = audit_report.document(result, passed=passed)
        return versioned.written(document if planned is None else {**document, "repair": planned}, output)
    drawn = [audit_report.matrix(result.layout), audit_report.checks_table(result)]
    texts = [tables.rendered(table, console.table_width) for table in drawn]
    return "\n".join([*texts, f"{audit_report.summary(result, passed=passed)}\n"]) + _told(planned)
