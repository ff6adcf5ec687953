"""One audit, from its input to its report. Does not know how the report is shown."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from bayplan.errors import ArgumentError, Fault, InputError
from bayplan.library import settings as deciding
from bayplan.library.audit_settings import AuditSettings
from bayplan.library.inputs import Materials, Show

if TYPE_CHECKING:
    from bayplan.auditing.audit import Audit
    from bayplan.auditing.audit_input import AuditInput
    from bayplan.auditing.layout import Layout
    from bayplan.auditing.repairing.repair_proposal import Repair
    from bayplan.auditing.survivability import FailureEvent
    from bayplan.auditing.survival import Rescheduling, Survival
    from bayplan.auditing.workload_groups import ReplicaPreferences, Workloads
    from bayplan.reading.audit_files import PlaceableObjects
    from bayplan.reading.documents import Source
    from bayplan.writing.audit_reports import ClusterReport
    from bayplan.writing.provenance import Provenance, ReportInput

_BAR_WIDTH = 30


class AuditRun:
    """One audit of the cluster of some materials; `name` is that of the cluster in the report, and may be empty."""

    def __init__(self, materials: Materials, settings: AuditSettings, name: str, show: Show) -> None:
        self._materials, self._settings, self._cluster, self._show = materials, settings, name, show
        self._profile, self._stages = settings.chosen_profile(), settings.stages()
        self._catalogue, self._preferences = settings.catalogue(), _preferences(settings)
        self._inputs: list[ReportInput] = []
        self._given, self._placeable = self._read()
        self._rescheduling: Rescheduling | None = None
        self._workloads: Workloads | None = None
        self._notes: list[str] = []

    def _read(self) -> tuple[AuditInput, PlaceableObjects | None]:
        from bayplan.reading import audit_files, inventory

        settings = self._settings
        placeable = audit_files.PlaceableObjects() if settings.reschedule and not settings.is_legacy else None
        given = self._materials.read_audited(
            self._show, scenario=settings.scenario, placeable=placeable, on_open=self._add_input
        )
        content: dict[str, dict[str, str]] = {}
        notes: list[str] = []
        file = os.fspath(settings.inventory)
        if file:
            content, notes = inventory.load_inventory(file, settings.named_losses(), self._add_input)
        hosting = None
        if settings.hosting:
            hosting = audit_files.load_hosting(
                [os.fspath(path) for path in settings.hosting],
                settings.hosting_namespaces,
                recursive=settings.hosting_recursive,
                on_open=self._add_input,
            )
        known = (*given.nodes, *(hosting.nodes if hosting else ()))
        unknown = inventory.unknown_entries(content, known)
        warnings = (*given.warnings, *notes)
        if unknown:
            warnings += (inventory.unknown_entries_text(file, unknown),)
        return msgspec.structs.replace(given, inventory=content, warnings=warnings, hosting=hosting), placeable

    def report(self, *, with_repair: bool) -> ClusterReport:
        """The verdicts, and what belongs to a report besides them."""
        from bayplan.writing.audit_reports import ClusterReport

        settings = self._settings
        found = self._result()
        repair = self._repair_plan(found) if with_repair else None
        return ClusterReport(
            cluster=self._cluster,
            audit=found,
            passed=found.passed(
                allow_undecided=settings.allow_undecided, fail_on_warning=settings.fail_on == "warning"
            ),
            allow_undecided=settings.allow_undecided,
            notes=self._notes,
            places=self._given.line_by_node,
            provenance=self._provenance(),
            repair=repair,
        )

    def _result(self) -> Audit:
        from bayplan.auditing import audit as auditing
        from bayplan.auditing import surveying, workload_groups
        from bayplan.auditing.audit_input import unlisted_text

        layout = surveying.layout_of(self._given, self._catalogue)
        self._notes += [*self._given.warnings, *unlisted_text(self._given.unlisted), *layout.notes]
        if self._settings.is_legacy:
            return self._accepted(auditing.run_audit(layout, self._profile))
        self._workloads = workload_groups.workloads_of(self._given, layout, self._preferences)
        found = auditing.run_audit(
            layout,
            self._profile,
            required_stages=self._stages,
            workloads=self._workloads,
            survival=self._survival(layout),
        )
        return self._accepted(found)

    def _accepted(self, found: Audit) -> Audit:
        if not self._settings.accept:
            return found
        from bayplan.auditing import acceptance, checks
        from bayplan.reading import acceptances

        known = [*checks.ALL, *(result.id for result in found.results if result.id not in checks.ALL)]
        accepted = acceptances.load_acceptances(os.fspath(self._settings.accept), known, self._add_input)
        concerned = [one for one in accepted if one.cluster in ("", self._cluster)]
        found, notes = acceptance.accept(found, concerned, now().date().isoformat())
        self._notes += notes
        return found

    def _add_input(self, source: Source) -> None:
        from bayplan.writing import provenance

        self._inputs.append(provenance.hashed(source))

    def _provenance(self) -> Provenance:
        """What the report is made from, once everything is read."""
        import bayplan
        from bayplan.writing.provenance import Provenance, ReportInput

        name = self._materials.spec.live_name
        live = [ReportInput(f"cluster of {name}")] if name else []
        date = now().isoformat().replace("+00:00", "Z")
        standard = self._profile.title
        return Provenance(inputs=(*live, *self._inputs), date=date, version=bayplan.__version__, standard=standard)

    def _repair_plan(self, result: Audit) -> Repair:
        from bayplan.auditing.repairing import repair_proposal

        return repair_proposal.propose_repair(
            result,
            required_stages=self._stages,
            workloads=self._workloads,
            rescheduling=self._rescheduling,
            on_step=lambda done, total: self._show(lambda: f"trying patches {_bar(done, total)}"),
        )

    def _survival(self, layout: Layout) -> Survival:
        from bayplan.auditing import survival

        asked, named = self._settings.lost_levels(), self._settings.named_losses()
        replicas = None if self._workloads is None else self._workloads.all
        levels = survival.survey_losses(layout, replicas, asked)
        for name in sorted(named - {one.level for one in levels}):
            self._notes.append(f"no node has {name}: its loss is not simulated")
        self._rescheduling, note = self._rescheduling_inputs()
        if self._rescheduling is not None and replicas is not None:

            def step(done: int, total: int, event: FailureEvent) -> None:
                self._show(lambda: f"losing {event.level} {event.domain} {_bar(done, total)}")

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
            named = ", ".join(bare[:3])
            self._notes.append(f"{len(bare)} nodes have no status.allocatable and take no pods: {named}")
        engine = Engine(index, deciding.rules(self._materials.spec.settings))
        policy = evicting.policy(cluster.disruption_budgets, index, cluster.spread_context)
        lost = self._workloads.lost_with_node
        how = Rescheduling(engine=engine, spread_context=cluster.spread_context, policy=policy, lost_with_node=lost)
        return how, ""


def _preferences(settings: AuditSettings) -> ReplicaPreferences:
    from bayplan.auditing.workload_groups import ReplicaPreferences

    return ReplicaPreferences(
        _pattern("exclude_workloads", settings.exclude_workloads),
        _pattern("quorum_workloads", settings.quorum_workloads),
    )


def _pattern(argument: str, text: str) -> re.Pattern[str] | None:
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ArgumentError(f"not a regular expression: {error}", argument=argument) from None


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
