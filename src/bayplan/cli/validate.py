"""`bayplan validate`: find offline what an API server, the guard or Bayplan itself would reject."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bayplan.cli import commands, configuration, guard_options, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.errors import Fault

if TYPE_CHECKING:
    from bayplan.enforcing.pod_guard import GuardVerdict
    from bayplan.reading.collecting import Collector
    from bayplan.reading.documents import Document
    from bayplan.validating.guard import GuardSettings
    from bayplan.writing.findings import ValidationFinding, ValidationReport

    GuardCheck = Callable[[Document], GuardVerdict]


@commands.command(
    "validate",
    summary=SUMMARIES["validate"],
    examples=(
        "bayplan validate -f app.yaml",
        "bayplan validate -f manifests/ -R -o sarif --output-file bayplan.sarif",
        "helm template . | bayplan validate -f -",
        "bayplan validate -f app.yaml --restrict all --exempt-group platform --as-group platform",
    ),
    details=(
        "For every kind that Bayplan reads, the names and types of all fields are checked. For pods, workloads with a "
        "pod template, PodDisruptionBudgets, and the policies and bindings of Karmada, the values are checked as an "
        "API server does: metadata, selectors, replica counts, containers with ports, resources and restart policies, "
        "affinity, topology spread, tolerations, scheduling gates, priorities, placements, volumes, mounts, probes, "
        "lifecycle hooks, environment, devices, security contexts. The values of update strategies and deadlines are "
        "not checked. Objects of other kinds are only counted. The guard then rejects required anti-affinity that "
        "covers all namespaces and is wider than a node; see --restrict. Exit code 0 if there are no errors, 2 if "
        "there are. Warnings are written to standard error and do not change the exit code."
    ),
    groups=(options.FILES, guard_options.GUARD, guard_options.REQUESTER, options.CONSOLE),
    params=(options.output("table", "json", "yaml", "sarif"), options.NAMESPACE, options.EXIT_ZERO),
)
def validate(
    *,
    output: str,
    namespace: str | None,
    exit_zero: bool,
    files: options.FileOptions,
    guard: guard_options.GuardOptions,
    requester: guard_options.RequesterOptions,
    console: Console,
) -> int:
    """Write the findings; exit code 2 if an object would be rejected."""
    files.check()
    report = examine(files, namespace or "default", _guard_check(guard.settings(), requester))
    for finding in report.warnings:
        console.warning(str(finding.fault), finding.fault)
    _write(report, output, console)
    # A file that cannot be read was not checked, so --exit-zero does not apply.
    return commands.EXIT_YES if not report.errors or (exit_zero and report.all_read) else commands.EXIT_BAD_INPUT


def _guard_check(settings: GuardSettings, asked: guard_options.RequesterOptions) -> GuardCheck:
    """A function: the verdict of the guard on a document, with the settings of this run."""
    from bayplan.enforcing import pod_guard
    from bayplan.validating.guard import Requester

    semantics = value_types.semantics_with(asked.semantics, asked.switch)
    requester = Requester(asked.as_user or "", asked.as_group)

    def check(document: Document) -> GuardVerdict:
        pod = pod_guard.read_pod_like(document.locate().root, document.namespace)
        return pod_guard.GuardVerdict() if pod is None else pod_guard.guard_verdict(pod, semantics, settings, requester)

    return check


def examine(given: options.FileOptions, namespace: str, guard: GuardCheck) -> ValidationReport:
    """All faults in the structure and the content of all objects."""
    from bayplan.reading import files
    from bayplan.reading.collecting import Collector
    from bayplan.wire import kinds
    from bayplan.writing.findings import UNREADABLE, WARNED, WARNING, ValidationFinding, ValidationReport

    searched = files.find_files(given.filename, recursive=given.recursive)
    # No object is kept: the collector only finds faults and duplicate names.
    sinks = dict.fromkeys((row.key for row in kinds.decoded()), _drop)
    collector = Collector(namespace=namespace, strict=True, sinks=sinks)
    clusters = _Clusters()
    findings = [ValidationFinding(fault, UNREADABLE) for fault in searched.faults]
    findings += [ValidationFinding(fault, WARNED, WARNING) for fault in searched.skipped]
    n_objects, unchecked = 0, Counter[str]()
    for path in searched.files:
        source = files.open_source(path, sys.stdin.buffer)
        if isinstance(source, Fault):
            findings.append(ValidationFinding(source, UNREADABLE))
            continue
        items = list(files.documents_of(source)) or [source.fault("the file has no object")]
        for item in items:
            findings.extend(_findings(item, collector, guard))
            clusters.add(item)
            if isinstance(item, Fault):
                continue
            if _is_checked(item):
                n_objects += 1
            else:
                unchecked[item.kind] += 1
        collector.inputs.templates.clear()
    findings.extend(ValidationFinding(fault, WARNED, WARNING) for fault in clusters.unknown())
    return ValidationReport(findings, n_objects, len(searched.files), unchecked)


def _is_checked(document: Document) -> bool:
    """Whether the kind is known; an object that is rejected because of its kind counts as checked."""
    from bayplan.wire import kinds

    found = kinds.handling_of(document.api_version, document.kind)
    has_template = found.row is not None and found.row.pod_path
    return bool(found.wire_type or found.problem or has_template) or document.kind == configuration.SCHEDULER_KIND


def _drop(_: object) -> None:
    pass


class _Clusters:
    """The clusters of the input, and the clusters that its policies name."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._named: list[tuple[Document, str, str]] = []

    def add(self, item: Document | Fault) -> None:
        from bayplan.validating import placements
        from bayplan.wire import kinds

        if isinstance(item, Fault):
            return
        row = kinds.KINDS.get((item.api_version.partition("/")[0], item.kind))
        if row is not None and row.held_in == "clusters":
            self._known.add(item.name)
        elif row is not None and row.held_in == "policies":
            spec = item.locate().root.get("spec")
            self._named += [(item, path, name) for path, name in placements.named_clusters(spec, "spec")]

    def unknown(self) -> Iterator[Fault]:
        """A fault for each named cluster that does not exist; none if the input has no clusters at all."""
        from bayplan.validating import placements

        for document, path, name in self._named:
            if self._known and name not in self._known:
                yield document.fault(f"{name}: {placements.UNKNOWN_CLUSTER}", path)


def _findings(item: Document | Fault, collector: Collector, guard: GuardCheck) -> Iterator[ValidationFinding]:
    """Faults in the structure; if there are none but unknown fields, also faults in the content."""
    from bayplan.validating import structure_faults
    from bayplan.writing.findings import MALFORMED, UNKNOWN_FIELD, UNREADABLE, ValidationFinding

    collector.faults.clear()
    collector.add(item)
    if isinstance(item, Fault):
        yield ValidationFinding(item, UNREADABLE)
        return
    for fault in collector.faults:
        yield ValidationFinding(
            fault, UNKNOWN_FIELD if structure_faults.UNKNOWN_FIELD_PREFIX in fault.message else MALFORMED
        )
    if all(structure_faults.UNKNOWN_FIELD_PREFIX in fault.message for fault in collector.faults):
        unknown = {fault.path for fault in collector.faults}
        yield from (finding for finding in _content_findings(item, guard) if not _follows(finding.fault, unknown))


def _follows(fault: Fault, unknown: set[str]) -> bool:
    """Whether a field is missing only because its name is misspelt, which is reported as an unknown field."""
    if fault.path in unknown:
        return True
    missing = fault.message.startswith(("Required value", 'Invalid value: ""'))
    parents = {path.rpartition(".")[0] for path in unknown}
    return missing and (fault.path in parents or fault.path.rpartition(".")[0] in parents)


def _content_findings(document: Document, guard: GuardCheck) -> Iterator[ValidationFinding]:
    from bayplan.validating import admission, warnings
    from bayplan.writing.findings import WARNED, WARNING, ValidationFinding

    root, verdict = document.locate().root, guard(document)
    for cause in (*admission.validate_all(root), *admission.validate_schema(root), *verdict.causes):
        yield ValidationFinding(document.fault(cause.message, cause.field), cause.reason)
    if document.kind == configuration.SCHEDULER_KIND:
        yield from _scheduler_findings(document)
    for text in (*warnings.object_warnings(root), *verdict.warnings):
        yield ValidationFinding(_located(document, text), WARNED, WARNING)


def _scheduler_findings(document: Document) -> Iterator[ValidationFinding]:
    """Faults in the structure of a scheduler configuration, or else in its content."""
    from bayplan.reading import scheduler_config
    from bayplan.validating import structure_faults
    from bayplan.writing.findings import MALFORMED, ValidationFinding

    root = document.locate().root
    undecodable = scheduler_config.check_structure(root)
    for one in undecodable:
        yield ValidationFinding(document.fault(structure_faults.message(one), one.path), MALFORMED)
    for text in () if undecodable else scheduler_config.validate_scheduler_config(root):
        yield ValidationFinding(_located(document, text), "FieldValueInvalid")


def _located(document: Document, text: str) -> Fault:
    """`path: message` as a fault at its line in the file."""
    path, _, message = text.partition(": ")
    return document.fault(message, path)


def _write(report: ValidationReport, output: str, console: Console) -> None:
    import bayplan
    from bayplan.writing import findings, tables, versioned

    if output == "sarif":
        console.answer(versioned.as_json(findings.sarif(report, bayplan.__version__)))
    elif output != "table":
        console.answer(versioned.written(findings.document(report), output))
    else:
        drawn = tables.rendered(findings.table(report), console.table_width) if report.errors else ""
        console.answer(f"{drawn}{findings.summary(report)}\n")
