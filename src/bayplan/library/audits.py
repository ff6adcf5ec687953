"""The audit of a cluster as a value, and the report on several clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import arguments
from bayplan.library.answers import DOCUMENT_FORMATS, Answer

if TYPE_CHECKING:
    from bayplan.auditing.audit import CheckResult
    from bayplan.writing.audit_reports import ClusterReport
    from bayplan.writing.chosen_output import Arrangement

_OF_SEVERAL = ("table", "all", *DOCUMENT_FORMATS, "junit", "sarif", "markdown", "prometheus", "html")


class AuditCheck(msgspec.Struct, frozen=True):
    """
    The verdict of one check: "PASS", "FAIL", "WARN", "UNDECIDED" or "N/A".

    Only `required` checks decide whether the cluster passes. `nodes` and `workloads` are concerned by the finding,
    `evidence` says what it is based on, `fix` what to do. An `accepted` finding has the reason for which it is.
    """

    id: str
    title: str
    source: str
    verdict: str
    required: bool
    message: str
    nodes: tuple[str, ...]
    workloads: tuple[str, ...]
    evidence: str
    fix: str
    accepted: str
    accepted_until: str


class ClusterAudit(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `Cluster.audit`: the verdict of every check. Iterating gives the checks.

    `stage` says what the control plane is distributed over and what it survives; empty where the profile has no stages.
    The text "all" also has checks that do not apply, "scs" is that of the test suite of SCS.
    """

    name: str
    checks: tuple[AuditCheck, ...]
    stage: str
    ok: bool
    notes: tuple[str, ...]
    _report: ClusterReport
    _formats = (*_OF_SEVERAL, "scs")

    def __iter__(self) -> Iterator[AuditCheck]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    @property
    def failed(self) -> tuple[AuditCheck, ...]:
        """The required checks that are FAIL or UNDECIDED, and not accepted."""
        return tuple(
            one for one in self.checks if one.required and one.verdict in ("FAIL", "UNDECIDED") and not one.accepted
        )

    def _document(self) -> dict[str, Any]:
        return AuditReport([self])._document()  # noqa: SLF001

    def to_scs_report(self, subject: str, *, argv: Sequence[str] = (), exit_code: int | None = None) -> str:
        """The report on a run of the test suite of SCS, in YAML; `subject` is the name of the cluster in it."""
        import uuid

        from bayplan.library import audit_run
        from bayplan.writing import audit_formats, audit_reports

        if not subject:
            raise ArgumentError("give the name of the cluster", argument="subject")
        report = self._report
        run = audit_formats.ScsRun(
            subject=subject,
            checked_at=audit_run.now().replace(tzinfo=None),  # the dates of the SCS runner have no time zone
            argv=list(argv),
            exit_code=(0 if self.ok else 1) if exit_code is None else exit_code,
            run_id=str(uuid.uuid4()),
            invocation_id=str(uuid.uuid4()),
        )
        results = audit_formats.scs_results(report.audit, allow_undecided=report.allow_undecided)
        lines = audit_reports.scs(report).splitlines()
        return audit_formats.scs_report_text(audit_formats.scs_report(lines, results, run))

    def samples(self) -> list[tuple[str, Mapping[str, str], int]]:
        """The gauges of -o prometheus: name, labels and value."""
        from bayplan.writing import audit_formats

        found = audit_formats.gauge_samples(self._report.audit, passed=self.ok)
        return [(name, dict(labels), value) for name, labels, value in found]

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        return [{name: getattr(one, name) for name in AuditCheck.__struct_fields__} for one in self.checks]

    def _text(self, output: str, width: int | None, arrangement: Arrangement) -> str:
        if output == "scs":
            from bayplan.writing import audit_reports

            return audit_reports.scs(self._report)
        return AuditReport([self])._text(output, width, arrangement)  # noqa: SLF001

    def _summary(self) -> str:
        from bayplan.writing import audit_report

        return audit_report.summary(self._report.audit, passed=self.ok)


def audit_of(report: ClusterReport) -> ClusterAudit:
    """The value of a report."""
    return ClusterAudit(
        name=report.cluster,
        checks=tuple(map(_check, report.audit.results)),
        stage=str(report.audit.stage or ""),
        ok=report.passed,
        notes=tuple(report.notes),
        _report=report,
    )


def _check(one: CheckResult) -> AuditCheck:
    fields = msgspec.structs.asdict(one)
    return AuditCheck(**{name: fields[name] for name in AuditCheck.__struct_fields__})


class AuditReport(Answer):
    """Audits in one report, those of several clusters with their names. Iterating gives them."""

    __slots__ = ("_audits",)
    _formats = _OF_SEVERAL

    def __init__(self, audits: ClusterAudit | Iterable[ClusterAudit]) -> None:
        self._audits = (audits,) if isinstance(audits, ClusterAudit) else tuple(audits)
        if not self._audits:
            raise ArgumentError("give at least one audit", argument="audits")
        for one in self._audits:
            arguments.check_is("audits", one, ClusterAudit)
        names = [one.name for one in self._audits]
        if len(names) > 1 and ("" in names or len(set(names)) < len(names)):
            raise ArgumentError("each of several clusters needs a name of its own: audit(name=…)", argument="audits")

    def __iter__(self) -> Iterator[ClusterAudit]:
        return iter(self._audits)

    def __len__(self) -> int:
        return len(self._audits)

    @property
    def ok(self) -> bool:
        """Whether all clusters pass."""
        return all(one.ok for one in self._audits)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import audit_reports

        return audit_reports.content([one._report for one in self._audits])  # noqa: SLF001

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        return [{"cluster": one.name, **row} for one in self._audits for row in one._rows()]  # noqa: SLF001

    def _text(self, output: str, width: int | None, _: Arrangement) -> str:
        from bayplan.writing import audit_reports

        reports = [one._report for one in self._audits]  # noqa: SLF001
        match output:
            case "junit":
                return audit_reports.junit(reports)
            case "sarif":
                return audit_reports.sarif(reports)
            case "markdown":
                return audit_reports.markdown(reports)
            case "prometheus":
                return audit_reports.prometheus(reports)
            case "html":
                from bayplan.library import drawn

                pictures = [drawn.of_audit(report.audit) for report in reports]
                return audit_reports.html_page(reports, pictures)
        return audit_reports.text(reports, with_inapplicable=output == "all", width=width)

    def _summary(self) -> str:
        passed = sum(one.ok for one in self._audits)
        return f"{passed} of {len(self)} clusters pass"
