"""One audit, from its input to its report. The command line around it is in `audit`."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from bayplan.cli import options
from bayplan.cli.audit_options import LossOptions, ProfileOptions, TopologyOptions
from bayplan.cli.console import Console
from bayplan.errors import Fault, InputError

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
    from bayplan.writing.audit_reports import ClusterReport
    from bayplan.writing.provenance import Provenance, ReportInput

_BAR_WIDTH = 30


class AuditRun:
    """One audit from the input to the verdicts; it prints warnings about the input."""

    def __init__(
        self,
        sources: options.InputOptions,
        topology: TopologyOptions,
        profile_options: ProfileOptions,
        losses: LossOptions,
        console: Console,
        *,
        cluster: str = "",
    ) -> None:
        self._losses, self._console, self._cluster = losses, console, cluster
        self._catalogue, self._preferences = topology.catalogue(), losses.preferences()
        self._profile, self._stages = profile_options.chosen(), profile_options.stages()
        self._legacy = profile_options.is_legacy
        needs_index = losses.reschedule and not self._legacy
        self._inputs: list[ReportInput] = []
        self._accept = profile_options.accept
        self._allow_undecided = profile_options.allow_undecided
        self._fail_on_warning = profile_options.fail_on == "warning"
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
        fetching = fetching_of(sources)
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
        hosting = None
        if topology.hosting:
            hosting = audit_files.load_hosting(
                topology.hosting, topology.hosting_namespace, recursive=sources.recursive, on_open=self._add_input
            )
        known = (*given.nodes, *(hosting.nodes if hosting else ()))
        unknown = inventory.unknown_entries(content, known)
        warnings = (*given.warnings, *notes)
        if unknown:
            warnings += (inventory.unknown_entries_text(str(topology.inventory), unknown),)
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
        concerned = [one for one in accepted if one.cluster in ("", self._cluster)]
        found, notes = acceptance.accept(found, concerned, now().date().isoformat())
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
        date = now().isoformat().replace("+00:00", "Z")
        standard = self._profile.title
        return Provenance(inputs=(*live, *self._inputs), date=date, version=bayplan.__version__, standard=standard)

    def report(self, *, with_repair: bool) -> ClusterReport:
        """The verdicts, and what belongs to a report besides them."""
        from bayplan.writing.audit_reports import ClusterReport

        found = self.result()
        return ClusterReport(
            cluster=self._cluster,
            audit=found,
            passed=found.passed(allow_undecided=self._allow_undecided, fail_on_warning=self._fail_on_warning),
            allow_undecided=self._allow_undecided,
            notes=self.notes,
            places=self.given.line_by_node,
            provenance=self.provenance(),
            repair=self.repair_plan(found) if with_repair else None,
        )

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
            self._console.warning(f"{self._cluster}: {text}" if self._cluster else text)

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


def now() -> datetime:
    """The time in UTC, to the second; SOURCE_DATE_EPOCH makes reports reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError(Fault(f"SOURCE_DATE_EPOCH: expected a time in seconds since 1970, got {epoch!r}")) from None


def _bar(done: int, total: int) -> str:
    filled = _BAR_WIDTH * done // max(total, 1)
    return f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {done} of {total}"


def fetching_of(sources: options.InputOptions) -> AuditFetcher | None:
    """What lists the live cluster, if there is one."""
    if not sources.is_live:
        return None
    from bayplan.cli.audit_live import AuditFetcher

    return AuditFetcher(sources.open())
