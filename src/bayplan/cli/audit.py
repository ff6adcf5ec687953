"""`bayplan audit`: check that nodes run on separate machines, and what remains after the loss of one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import audit_labels, audit_options, commands, loading, options
from bayplan.cli.audit_options import LossOptions, ProfileOptions, TopologyOptions
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.errors import Fault, InputError

if TYPE_CHECKING:
    from bayplan.library.audits import AuditReport

_REPAIRABLE = ("table", "markdown", "json", "yaml", options.HTML)
_OF_ONE_CLUSTER = ("scs", "scs-report")


@commands.command(
    "audit",
    summary=SUMMARIES["audit"],
    examples=(
        "bayplan audit -f nodes.yaml",
        "bayplan audit --context production",
        "kubectl get nodes,pods,namespaces,pdb,pv,pvc,leases -A -o json | bayplan audit -f - --repair",
        "bayplan audit -f dump.json --inventory servers.json --ha -o markdown",
        "bayplan audit --cluster prod=prod.json --cluster test=test.json --accept accepted.yaml",
        "bayplan audit -f dump.json --lose zone --lose power-feed --require fd-room-zone",
        "bayplan audit labels -f dump.json --inventory servers.json --hash-key-file key",
    ),
    details=(
        "Nodes are enough for an answer; pods, leases, Machines, volumes, ConfigMaps and an inventory make it more "
        "precise. With pods in the input, the audit also shows which workloads each failure affects and whether the "
        "displaced pods fit on the remaining nodes. `audit labels` prints kubectl label commands, or manifests, "
        "from an inventory; labels that nodes have with another value are listed and not changed. "
        "Exit code 0 if every required check is PASS or N/A, 1 if one is FAIL or UNDECIDED."
    ),
    groups=(
        options.INPUT,
        audit_options.TOPOLOGY,
        audit_options.PROFILE,
        audit_options.LOSSES,
        options.CONSOLE,
    ),
    params=(
        commands.Argument(
            "what",
            required=False,
            type=click.Choice(["labels"]),
            metavar="[labels]",
            explained="Instead of the audit, print a kubectl label command for each node of --inventory.",
        ),
        options.output(
            "table", "json", "yaml", "junit", "sarif", "markdown", "scs", "scs-report", "prometheus", options.HTML
        ),
        commands.Option(
            "--subject", metavar="NAME", default="", help="With -o scs-report: name of the cluster in the report."
        ),
        commands.Option(
            "--hash-key-file",
            metavar="FILE",
            type=click.Path(),
            heading=audit_options.TOPOLOGY_HEADING,
            help="With `labels`: replace values by a hash with the key in this file.",
        ),
        commands.Option(
            "--overwrite",
            is_flag=True,
            heading=audit_options.TOPOLOGY_HEADING,
            help="With `labels`: change labels that nodes have with another value, instead of listing them.",
        ),
        commands.Option(
            "--cluster",
            multiple=True,
            metavar="NAME=PATH",
            heading="Input",
            help="File or directory of a cluster, and its name in the report. May be repeated: one report on all of "
            "them, and for files of one cluster.",
        ),
        commands.Option(
            "--repair",
            is_flag=True,
            heading=audit_options.PROFILE_HEADING,
            help="Add the fewest moves that make failed checks pass, and patches that spread vulnerable workloads.",
        ),
        options.EXIT_ZERO,
    ),
)
def audit(
    *,
    what: str | None,
    output: str,
    subject: str,
    hash_key_file: str | None,
    overwrite: bool,
    cluster: tuple[str, ...],
    repair: bool,
    exit_zero: bool,
    sources: options.InputOptions,
    topology: TopologyOptions,
    profile_options: ProfileOptions,
    losses: LossOptions,
    console: Console,
) -> int:
    """Run the checks on the input and write the verdicts."""
    from bayplan.library import fleet
    from bayplan.library.audits import AuditReport

    if what == "labels":
        if commands.was_typed("output") and output not in ("json", "yaml"):
            raise click.UsageError("`audit labels` prints shell commands, or manifests with -o json or yaml")
        label_options = audit_labels.LabelOptions(hash_key_file, overwrite, output)
        return audit_labels.write_labels(sources, topology, label_options, console)
    by_cluster = _sources_by_cluster(cluster, sources)
    if commands.was_typed("hash_key_file"):
        raise click.UsageError("--hash-key-file is an option of `audit labels`; an audit does not hash values")
    if overwrite:
        raise click.UsageError("--overwrite is an option of `audit labels`; an audit changes no labels")
    if repair and output not in _REPAIRABLE:
        raise click.UsageError(f"--repair needs one of the output formats {', '.join(_REPAIRABLE)}")
    if output == "scs-report" and not subject:
        raise click.UsageError("-o scs-report needs the name of the cluster: give --subject")
    if len(by_cluster) > 1 and output in _OF_ONE_CLUSTER:
        raise click.UsageError(f"-o {output} is a report on one cluster: give one --cluster")
    settings = audit_options.audit_settings(topology, profile_options, losses, recursive=sources.recursive)
    audits, faults = [], list[Fault]()
    for name, given in by_cluster.items():
        opened = fleet.cluster_of(loading.spec_of(given, None, options.configured_settings()))
        try:
            with loading.in_progress(opened, console) as state:
                audits.append(state.audit(settings, name=name, repair=repair))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(dict.fromkeys(faults))  # one of the inventory is found once for each cluster
    for one in audits:
        for text in one.notes:
            console.warning(f"{one.name}: {text}" if one.name else text)
    report = AuditReport(audits)
    code = commands.exit_code(report.ok, exit_zero=exit_zero)
    text = _written(report, output, subject, code, console)
    if output == options.HTML:
        paths = tuple(path for one in by_cluster.values() for path in (*one.filename, *one.state))
        text = loading.signed(text, msgspec.structs.replace(sources, filename=paths, state=()))
    console.answer(text)
    return code


def _sources_by_cluster(named: Sequence[str], sources: options.InputOptions) -> dict[str, options.InputOptions]:
    """What to read for each cluster; the one of -f, --state and --context has no name."""
    if not named:
        sources.check()
        return {"": sources}
    if sources.filename or sources.has_state:
        raise click.UsageError(
            "give either clusters by name with --cluster, or one cluster with -f, --state or --context"
        )
    paths: dict[str, list[str]] = {}
    for text in named:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"expected NAME=PATH, got {text!r}", param_hint="--cluster")
        paths.setdefault(name, []).append(path)
    return {name: msgspec.structs.replace(sources, filename=tuple(found)) for name, found in paths.items()}


def _written(report: AuditReport, output: str, subject: str, exit_code: int, console: Console) -> str:
    first = next(iter(report))
    match output:
        case "scs":
            return first.to_text(output)
        case "scs-report":  # it is published
            argv = commands.redacted_arguments(click.get_current_context().command, sys.argv[1:])
            return first.to_scs_report(subject, argv=argv, exit_code=exit_code)
        case "table":
            return report.to_text("all" if console.verbosity > 0 else output, width=console.table_width)
    return report.to_text(output)
