"""`bayplan audit`: do the nodes really sit on separate machines, and what survives losing one?"""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import audit_answer, audit_options, commands, options, outcomes
from bayplan.cli.audit_options import Judging, Losing, Topology
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.auditing.audit import Audit
    from bayplan.auditing.audit_input import AuditInput, ObservedNode
    from bayplan.auditing.layout import Layout
    from bayplan.auditing.repairing.repair_proposal import Repair
    from bayplan.auditing.survivability import FailureEvent
    from bayplan.auditing.survival import Rescheduling, Survival
    from bayplan.auditing.workload_groups import Workloads
    from bayplan.cli.audit_live import AuditFetching
    from bayplan.reading.audit_files import PlaceableObjects

_REPAIRABLE = ("table", "markdown", "json", "yaml")
_BAR = 30


@commands.command(
    "audit",
    summary="Check that nodes sit on separate machines, and what survives losing one.",
    examples=(
        "bayplan audit -f nodes.yaml",
        "bayplan audit --context production",
        "kubectl get nodes,pods,pdb,pv,pvc,leases -A -o json | bayplan audit -f - --repair",
        "bayplan audit -f dump.json --inventory servers.json --ha -o markdown",
        "bayplan audit -f dump.json --lose zone --lose power-feed --require fd-room-zone",
        "bayplan audit labels --inventory servers.yaml --hash-key-file key",
    ),
    details=(
        "Nodes alone give an answer; pods, leases, Machines, volumes, ConfigMaps and an inventory make it better. With "
        "pods it also says what each failure takes with it, and whether the scheduler finds room for what was "
        "displaced. Exit code 0 if every required check is PASS or N/A, 1 if one is FAIL or UNDECIDED. "
        "`audit labels` prints kubectl label lines from an inventory."
    ),
    groups=(
        options.SOURCES,
        audit_options.TOPOLOGY,
        audit_options.JUDGING,
        audit_options.LOSING,
        options.CONSOLE,
    ),
    params=(
        commands.Argument(
            "what",
            required=False,
            type=click.Choice(["labels"]),
            metavar="[labels]",
            explained="Do not judge, but print a kubectl label line for each node of --inventory.",
        ),
        options.output("table", "json", "yaml", "junit", "sarif", "markdown", "scs", "scs-report", "prometheus"),
        commands.Option(
            "--subject", metavar="NAME", default="", help="With -o scs-report: the name of the cluster in the report."
        ),
        commands.Option(
            "--hash-key-file",
            metavar="FILE",
            type=click.Path(),
            heading=audit_options.TOPOLOGY_HEADING,
            help="With `labels`: hide values by a hash with the key in this file.",
        ),
        commands.Option(
            "--repair",
            is_flag=True,
            heading=audit_options.JUDGING_HEADING,
            help="Add the fewest moves that would mend what failed, and patches that spread weak workloads.",
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
    repair: bool,
    exit_zero: bool,
    sources: options.Sources,
    topology: Topology,
    judging: Judging,
    losing: Losing,
    console: Console,
) -> int:
    """Judge the layout that the files show, and write the verdicts."""
    if what == "labels":
        if commands.was_typed("output"):
            raise click.UsageError("`audit labels` prints lines for a shell and has no other form: leave out -o")
        return _labels(sources, topology, hash_key_file, console)
    sources.check()
    topology.check()
    if commands.was_typed("hash_key_file"):
        raise click.UsageError("--hash-key-file hides values in what `audit labels` prints; an audit hides nothing")
    if repair and output not in _REPAIRABLE:
        raise click.UsageError(f"a repair plan can be written as {', '.join(_REPAIRABLE)}")
    if output == "scs-report" and not subject:
        raise click.UsageError("the report says whom it is about: give --subject")
    found = _Run(sources, topology, judging, losing, console)
    result = found.judged()
    mended = found.mended(result) if repair else None
    passed = result.passed(allow_undecided=judging.allow_undecided)
    code = outcomes.of(passed, exit_zero=exit_zero)
    context = audit_answer.ReportContext(
        passed=passed,
        allow_undecided=judging.allow_undecided,
        subject=subject,
        exit_code=code,
        notes=found.notes,
        places=found.given.line_by_node,
    )
    console.answer(audit_answer.written(result, output, context, console, mended))
    return code


class _Run:
    """One audit from the files to the verdicts; what is odd is said on the way."""

    def __init__(
        self, sources: options.Sources, topology: Topology, judging: Judging, losing: Losing, console: Console
    ) -> None:
        self._losing, self._console = losing, console
        self._catalogue, self._preferences = topology.catalogue(), losing.preferences()
        self._profile, self._stages = judging.chosen(), judging.stages()
        self._legacy = judging.is_legacy
        wants_index = losing.reschedule and not self._legacy
        self.given, self._placeable = _read(sources, topology, losing, console, wants_index=wants_index)
        self._rescheduling: Rescheduling | None = None
        self._workloads: Workloads | None = None
        self.notes: list[str] = []

    def judged(self) -> Audit:
        from bayplan.auditing import audit as auditing
        from bayplan.auditing import surveying, workload_groups
        from bayplan.auditing.audit_input import unlisted_text

        layout = surveying.layout_of(self.given, self._catalogue)
        self._say([*self.given.warnings, *unlisted_text(self.given.unlisted), *layout.notes])
        if self._legacy:
            return auditing.audit(layout, self._profile)
        self._workloads = workload_groups.workloads_of(self.given, layout, self._preferences)
        return auditing.audit(
            layout,
            self._profile,
            required_stages=self._stages,
            workloads=self._workloads,
            survival=self._survival(layout),
        )

    def mended(self, result: Audit) -> Repair:
        from bayplan.auditing.repairing import repair_proposal

        with self._console.progress() as line:
            return repair_proposal.propose_repair(
                result,
                required_stages=self._stages,
                workloads=self._workloads,
                rescheduling=self._rescheduling,
                on_step=lambda done, total: line.show(lambda: f"trying stanzas {_bar(done, total)}"),
            )

    def _say(self, texts: list[str]) -> None:
        self.notes += texts
        for text in texts:
            self._console.warning(text)

    def _survival(self, layout: Layout) -> Survival:
        from bayplan.auditing import survival

        asked = self._losing.levels()
        replicas = None if self._workloads is None else self._workloads.all
        levels = survival.survey(layout, replicas, asked)
        for name in sorted(self._losing.named() - {one.level for one in levels}):
            self._say([f"no node has {name}: its loss means nothing"])
        self._rescheduling, note = self._rescheduled_by()
        if self._rescheduling is not None and replicas is not None:
            with self._console.progress() as line:

                def step(done: int, total: int, event: FailureEvent) -> None:
                    line.show(lambda: f"losing {event.level} {event.domain} {_bar(done, total)}")

                levels = survival.reschedule(levels, replicas, self._rescheduling, step)
        return survival.Survival(
            asked=tuple(asked),
            levels=tuple(levels),
            risks=survival.risks(layout, levels),
            rescheduled=self._rescheduling is not None,
            note=note,
        )

    def _rescheduled_by(self) -> tuple[Rescheduling | None, str]:
        """What pods are placed again with, or why they are not."""
        from bayplan.auditing.survival import Rescheduling

        if self._workloads is None:
            return None, "no pods were given"
        if self._placeable is None:
            return None, "placing again was not asked for"
        index = self._placeable.cluster().index
        bare = [name for name, slot in index.slots.by_name.items() if not index.slots.at(slot).allocatable]
        if len(bare) == len(index.slots.by_name):
            return None, "nodes do not say what they can give (status.allocatable)"
        if bare:
            self._say([f"{len(bare)} nodes do not say what they can give, and take no pods: {', '.join(bare[:3])}"])
        return Rescheduling(
            index=index, rules=options.configured_rules(), lost_with_node=self._workloads.lost_with_node
        ), ""


def _bar(done: int, total: int) -> str:
    filled = _BAR * done // max(total, 1)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}] {done} of {total}"


def _read(
    sources: options.Sources, topology: Topology, losing: Losing, console: Console, *, wants_index: bool
) -> tuple[AuditInput, PlaceableObjects | None]:
    from bayplan.reading import audit_files, inventory
    from bayplan.reading.files import ReadOptions

    placeable = audit_files.PlaceableObjects() if wants_index else None
    fetching = _fetching(sources)
    with console.progress() as line:
        given = audit_files.load(
            ReadOptions(
                sources.filename,
                recursive=sources.recursive,
                progress=lambda step: line.show(lambda: f"reading {step.file}: {step.objects_read} objects"),
                live=fetching.sources() if fetching else (),
            ),
            scenario=topology.scenario or "",
            placeable=placeable,
            unlisted=fetching.unlisted if fetching else (),
        )
    content = inventory.load_inventory(topology.inventory, losing.named()) if topology.inventory else {}
    unknown = inventory.unknown_entries(content, given.nodes)
    warnings = given.warnings
    if unknown:
        warnings += (inventory.unknown_text(str(topology.inventory), unknown),)
    hosting = None
    if topology.hosting:
        hosting = audit_files.load_hosting(topology.hosting, topology.hosting_namespace, recursive=sources.recursive)
    return msgspec.structs.replace(given, inventory=content, warnings=warnings, hosting=hosting), placeable


def _fetching(sources: options.Sources) -> AuditFetching | None:
    if not sources.cluster.is_given:
        return None
    from bayplan.cli.audit_live import AuditFetching

    return AuditFetching(sources.cluster.open())


def _labels(sources: options.Sources, topology: Topology, hash_key_file: str | None, console: Console) -> int:
    from bayplan.errors import Fault, InputError
    from bayplan.reading import audit_files, inventory
    from bayplan.reading.files import ReadOptions
    from bayplan.writing import audit_labels

    if not topology.inventory:
        raise click.UsageError("labels come from an inventory: give one with --inventory")
    key = ""
    if hash_key_file:
        try:
            key = pathlib.Path(hash_key_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise InputError(Fault(f"cannot be read: {error.strerror or error}", file=hash_key_file)) from None
        except UnicodeDecodeError:
            raise InputError(Fault("expected a key of text, got other bytes", file=hash_key_file)) from None
        if not key:
            raise InputError(Fault("the key is empty", file=hash_key_file))
    content = inventory.load_inventory(topology.inventory)
    fetching = _fetching(sources)
    nodes: Sequence[ObservedNode] = ()
    if sources.filename or fetching:
        live = fetching.sources() if fetching else ()
        nodes = audit_files.load(ReadOptions(sources.filename, recursive=sources.recursive, live=live)).nodes
    named = inventory.by_node(content, nodes)
    console.answer(audit_labels.commands(named, hash_key=key, keys=topology.keys()))
    return outcomes.YES
