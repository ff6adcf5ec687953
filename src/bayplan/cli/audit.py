"""`bayplan audit`: check that nodes run on separate machines, and what remains after the loss of one."""

from __future__ import annotations

import os
import pathlib
import sys
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import audit_options, commands, options
from bayplan.cli.audit_options import LossOptions, ProfileOptions, TopologyOptions
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.auditing.audit import Audit
    from bayplan.auditing.audit_input import AuditInput
    from bayplan.auditing.layout import Layout
    from bayplan.auditing.repairing.repair_proposal import Repair
    from bayplan.auditing.survivability import FailureEvent
    from bayplan.auditing.survival import Rescheduling, Survival
    from bayplan.auditing.workload_groups import Workloads
    from bayplan.cli.audit_live import AuditFetcher
    from bayplan.reading.audit_files import PlaceableObjects
    from bayplan.reading.documents import Source
    from bayplan.wire.observed import ObservedNode
    from bayplan.writing.provenance import Provenance, ReportInput

_REPAIRABLE = ("table", "markdown", "json", "yaml")
_BAR_WIDTH = 30


@commands.command(
    "audit",
    summary=SUMMARIES["audit"],
    examples=(
        "bayplan audit -f nodes.yaml",
        "bayplan audit --context production",
        "kubectl get nodes,pods,pdb,pv,pvc,leases -A -o json | bayplan audit -f - --repair",
        "bayplan audit -f dump.json --inventory servers.json --ha -o markdown",
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
        options.output("table", "json", "yaml", "junit", "sarif", "markdown", "scs", "scs-report", "prometheus"),
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
    repair: bool,
    exit_zero: bool,
    sources: options.InputOptions,
    topology: TopologyOptions,
    profile_options: ProfileOptions,
    losses: LossOptions,
    console: Console,
) -> int:
    """Run the checks on the input and write the verdicts."""
    if what == "labels":
        if commands.was_typed("output") and output not in ("json", "yaml"):
            raise click.UsageError("`audit labels` prints shell commands, or manifests with -o json or yaml")
        return _labels(sources, topology, LabelOptions(hash_key_file, overwrite, output), console)
    sources.check()
    topology.check()
    if commands.was_typed("hash_key_file"):
        raise click.UsageError("--hash-key-file is an option of `audit labels`; an audit does not hash values")
    if overwrite:
        raise click.UsageError("--overwrite is an option of `audit labels`; an audit changes no labels")
    if repair and output not in _REPAIRABLE:
        raise click.UsageError(f"--repair needs one of the output formats {', '.join(_REPAIRABLE)}")
    if output == "scs-report" and not subject:
        raise click.UsageError("-o scs-report needs the name of the cluster: give --subject")
    found = _AuditRun(sources, topology, profile_options, losses, console)
    result = found.result()
    plan = found.repair_plan(result) if repair else None
    passed = result.passed(
        allow_undecided=profile_options.allow_undecided, fail_on_warning=profile_options.fail_on == "warning"
    )
    code = commands.exit_code(passed, exit_zero=exit_zero)
    context = ReportContext(
        passed=passed,
        allow_undecided=profile_options.allow_undecided,
        subject=subject,
        exit_code=code,
        notes=found.notes,
        places=found.given.line_by_node,
        provenance=found.provenance(),
    )
    console.answer(_written(result, output, context, console, plan))
    return code


class _AuditRun:
    """One audit from the input to the verdicts; it prints warnings about the input."""

    def __init__(
        self,
        sources: options.InputOptions,
        topology: TopologyOptions,
        profile_options: ProfileOptions,
        losses: LossOptions,
        console: Console,
    ) -> None:
        self._losses, self._console = losses, console
        self._catalogue, self._preferences = topology.catalogue(), losses.preferences()
        self._profile, self._stages = profile_options.chosen(), profile_options.stages()
        self._legacy = profile_options.is_legacy
        needs_index = losses.reschedule and not self._legacy
        self._inputs: list[ReportInput] = []
        self._accept = profile_options.accept
        self._live = sources.context or "the current context" if sources.is_live else ""
        self.given, self._placeable = self._read(sources, topology, needs_index=needs_index)
        self._rescheduling: Rescheduling | None = None
        self._workloads: Workloads | None = None
        self.notes: list[str] = []

    def _read(
        self, sources: options.InputOptions, topology: TopologyOptions, *, needs_index: bool
    ) -> tuple[AuditInput, PlaceableObjects | None]:
        from bayplan.reading import audit_files, inventory
        from bayplan.reading.files import ReadOptions

        placeable = audit_files.PlaceableObjects() if needs_index else None
        fetching = _fetching(sources)
        with self._console.progress() as show:
            given = audit_files.load(
                ReadOptions(
                    sources.filename,
                    recursive=sources.recursive,
                    progress=lambda step: show(lambda: f"reading {step.file}: {step.objects_read} objects"),
                    state=sources.state,
                    live=fetching.sources() if fetching else (),
                ),
                scenario=topology.scenario or "",
                placeable=placeable,
                unlisted=fetching.unlisted if fetching else (),
                on_open=self._add_input,
            )
        content: dict[str, dict[str, str]] = {}
        notes: list[str] = []
        if topology.inventory:
            content, notes = inventory.load_inventory(topology.inventory, self._losses.named(), self._add_input)
        unknown = inventory.unknown_entries(content, given.nodes)
        warnings = (*given.warnings, *notes)
        if unknown:
            warnings += (inventory.unknown_entries_text(str(topology.inventory), unknown),)
        hosting = None
        if topology.hosting:
            hosting = audit_files.load_hosting(
                topology.hosting, topology.hosting_namespace, recursive=sources.recursive, on_open=self._add_input
            )
        return msgspec.structs.replace(given, inventory=content, warnings=warnings, hosting=hosting), placeable

    def result(self) -> Audit:
        from bayplan.auditing import audit as auditing
        from bayplan.auditing import surveying, workload_groups
        from bayplan.auditing.audit_input import unlisted_text

        layout = surveying.layout_of(self.given, self._catalogue)
        self._warn([*self.given.warnings, *unlisted_text(self.given.unlisted), *layout.notes])
        if self._legacy:
            return self._accepted(auditing.run_audit(layout, self._profile))
        self._workloads = workload_groups.workloads_of(self.given, layout, self._preferences)
        found = auditing.run_audit(
            layout,
            self._profile,
            required_stages=self._stages,
            workloads=self._workloads,
            survival=self._survival(layout),
        )
        return self._accepted(found)

    def _accepted(self, found: Audit) -> Audit:
        if not self._accept:
            return found
        from bayplan.auditing import acceptance, checks
        from bayplan.reading import acceptances

        known = [*checks.ALL, *(result.id for result in found.results if result.id not in checks.ALL)]
        accepted = acceptances.load_acceptances(self._accept, known, self._add_input)
        found, notes = acceptance.accept(found, accepted, _now().date().isoformat())
        self._warn(notes)
        return found

    def _add_input(self, source: Source) -> None:
        from bayplan.writing import provenance

        self._inputs.append(provenance.hashed(source))

    def provenance(self) -> Provenance:
        """What the report is made from, once everything is read."""
        import bayplan
        from bayplan.writing.provenance import Provenance, ReportInput

        live = [ReportInput(f"cluster of {self._live}")] if self._live else []
        date = _now().isoformat().replace("+00:00", "Z")
        standard = self._profile.title
        return Provenance(inputs=(*live, *self._inputs), date=date, version=bayplan.__version__, standard=standard)

    def repair_plan(self, result: Audit) -> Repair:
        from bayplan.auditing.repairing import repair_proposal

        with self._console.progress() as show:
            return repair_proposal.propose_repair(
                result,
                required_stages=self._stages,
                workloads=self._workloads,
                rescheduling=self._rescheduling,
                on_step=lambda done, total: show(lambda: f"trying patches {_bar(done, total)}"),
            )

    def _warn(self, texts: list[str]) -> None:
        self.notes += texts
        for text in texts:
            self._console.warning(text)

    def _survival(self, layout: Layout) -> Survival:
        from bayplan.auditing import survival

        asked = self._losses.levels()
        replicas = None if self._workloads is None else self._workloads.all
        levels = survival.survey_losses(layout, replicas, asked)
        for name in sorted(self._losses.named() - {one.level for one in levels}):
            self._warn([f"no node has {name}: its loss is not simulated"])
        self._rescheduling, note = self._rescheduling_inputs()
        if self._rescheduling is not None and replicas is not None:
            with self._console.progress() as show:

                def step(done: int, total: int, event: FailureEvent) -> None:
                    show(lambda: f"losing {event.level} {event.domain} {_bar(done, total)}")

                levels = survival.reschedule(levels, replicas, self._rescheduling, step)
        return survival.Survival(
            asked=tuple(asked),
            levels=tuple(levels),
            risks=survival.risks(layout, levels),
            rescheduled=self._rescheduling is not None,
            note=note,
        )

    def _rescheduling_inputs(self) -> tuple[Rescheduling | None, str]:
        """The engine to reschedule displaced pods with, or the reason why they are not rescheduled."""
        from bayplan.auditing.survival import Rescheduling
        from bayplan.engine.engine import Engine
        from bayplan.placing import evicting

        if self._workloads is None:
            return None, "the input has no pods"
        if self._placeable is None:
            return None, "rescheduling is off (--no-reschedule)"
        cluster = self._placeable.cluster()
        index = cluster.index
        bare = [name for name, slot in index.slots.by_name.items() if not index.slots.at(slot).allocatable]
        if len(bare) == len(index.slots.by_name):
            return None, "the nodes have no status.allocatable"
        if bare:
            self._warn([f"{len(bare)} nodes have no status.allocatable and take no pods: {', '.join(bare[:3])}"])
        engine, lost = Engine(index, options.configured_rules()), self._workloads.lost_with_node
        policy = evicting.policy(cluster.disruption_budgets, index, cluster.spread_context)
        how = Rescheduling(engine=engine, spread_context=cluster.spread_context, policy=policy, lost_with_node=lost)
        return how, ""


def _now() -> datetime:
    """The time in UTC, to the second; SOURCE_DATE_EPOCH makes reports reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC).replace(microsecond=0)


def _bar(done: int, total: int) -> str:
    filled = _BAR_WIDTH * done // max(total, 1)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done} of {total}"


def _fetching(sources: options.InputOptions) -> AuditFetcher | None:
    if not sources.is_live:
        return None
    from bayplan.cli.audit_live import AuditFetcher

    return AuditFetcher(sources.open())


class LabelOptions(msgspec.Struct, frozen=True):
    """What `audit labels` prints, and how."""

    hash_key_file: str | None
    overwrite: bool
    output: str

    def hash_key(self) -> str:
        """The key of the file; empty if values are not hashed."""
        from bayplan.errors import Fault, InputError

        if not self.hash_key_file:
            return ""
        try:
            key = pathlib.Path(self.hash_key_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=self.hash_key_file)) from None
        except UnicodeDecodeError:
            raise InputError(Fault("expected a key in UTF-8, got other bytes", file=self.hash_key_file)) from None
        if not key:
            raise InputError(Fault("the key is empty", file=self.hash_key_file))
        return key


def _labels(
    sources: options.InputOptions, topology: TopologyOptions, label_options: LabelOptions, console: Console
) -> int:
    from bayplan.reading import audit_files, inventory
    from bayplan.reading.files import ReadOptions
    from bayplan.writing import audit_labels, versioned

    if not topology.inventory:
        raise click.UsageError("`audit labels` needs an inventory: give one with --inventory")
    key = label_options.hash_key()
    content, notes = inventory.load_inventory(topology.inventory)
    fetching = _fetching(sources)
    nodes: Sequence[ObservedNode] = ()
    if sources.filename or sources.has_state:
        live = fetching.sources() if fetching else ()
        read = ReadOptions(sources.filename, recursive=sources.recursive, state=sources.state, live=live)
        nodes = audit_files.load(read).nodes
    found = audit_labels.changes(
        inventory.by_node(content, nodes),
        present={node.metadata.name: node.metadata.labels or {} for node in nodes},
        hash_key=key,
        keys=topology.keys(),
    )
    overwrite = label_options.overwrite
    for text in [*notes, *(line for one in found if not overwrite for line in audit_labels.differing_text(one))]:
        console.warning(text)
    if label_options.output == "table":
        console.answer(audit_labels.commands(found, overwrite=overwrite))
    else:
        items = audit_labels.manifests(found, overwrite=overwrite)
        content_of_list = {"apiVersion": "v1", "kind": "List", "items": items}
        console.answer(versioned.written(content_of_list, label_options.output))
    return commands.EXIT_YES


class ReportContext(msgspec.Struct, frozen=True, kw_only=True):
    """What reports contain besides the verdicts."""

    passed: bool
    allow_undecided: bool
    subject: str
    exit_code: int
    notes: Sequence[str]
    places: Mapping[str, tuple[str, int]]
    provenance: Provenance


def _written(result: Audit, output: str, context: ReportContext, console: Console, repair: Repair | None) -> str:
    from bayplan.writing import audit_formats, audit_report, versioned

    made_from = context.provenance
    match output:
        case "junit":
            return audit_formats.junit(result, allow_undecided=context.allow_undecided, provenance=made_from)
        case "sarif":
            file = next(iter(context.places.values()))[0]
            return versioned.as_json(audit_formats.sarif(result, context.places, file, made_from))
        case "markdown":
            return audit_report.markdown(result, passed=context.passed, repair=repair, provenance=made_from)
        case "scs":
            return audit_formats.scs(result, allow_undecided=context.allow_undecided, provenance=made_from)
        case "scs-report":
            return _scs_report(result, context)
        case "prometheus":
            return audit_formats.prometheus(result, passed=context.passed, provenance=made_from)
        case "table":
            return _tables(result, context, console, repair)
    document = audit_report.document(
        result, passed=context.passed, notes=context.notes, repair=repair, provenance=made_from
    )
    return versioned.written(document, output)


def _tables(result: Audit, context: ReportContext, console: Console, repair: Repair | None) -> str:
    from bayplan.writing import audit_report, survival_report, tables

    drawn = [
        audit_report.matrix(result.layout),
        audit_report.checks_table(result, with_inapplicable=console.verbosity > 0),
    ]
    if result.survival is not None and result.survival.levels:
        drawn += [survival_report.levels_table(result.survival), survival_report.events_table(result.survival)]
    texts = [tables.rendered(table, console.table_width) for table in drawn if table.rows]
    texts += [text for text in (audit_report.todo_text(result),) if text]
    texts.append(f"{audit_report.summary(result, passed=context.passed)}\n")
    if repair is not None:
        texts.append(audit_report.repair_text(repair, result))
    texts.append("".join(f"{tables.printable(line)}\n" for line in context.provenance.lines()))
    return "\n".join(texts)


def _scs_report(result: Audit, context: ReportContext) -> str:
    from bayplan.writing import audit_formats

    lines = audit_formats.scs(
        result, allow_undecided=context.allow_undecided, provenance=context.provenance
    ).splitlines()
    results = audit_formats.scs_results(result, allow_undecided=context.allow_undecided)
    run = audit_formats.ScsRun(
        subject=context.subject,
        checked_at=_now().replace(tzinfo=None),  # the dates of the SCS runner have no time zone
        argv=commands.redacted_arguments(click.get_current_context().command, sys.argv[1:]),  # the report is published
        exit_code=context.exit_code,
        run_id=str(uuid.uuid4()),
        invocation_id=str(uuid.uuid4()),
    )
    return audit_formats.scs_report_text(audit_formats.scs_report(lines, results, run))
