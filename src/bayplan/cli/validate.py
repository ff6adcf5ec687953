"""`bayplan validate`: everything that an API server, the guard or Bayplan itself would refuse, found offline."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bayplan.cli import commands, configuration, guarding, options, outcomes
from bayplan.cli.console import Console
from bayplan.errors import Fault

if TYPE_CHECKING:
    from bayplan.enforcing.pod_guard import GuardVerdict
    from bayplan.reading.collecting import Collector
    from bayplan.reading.documents import Document
    from bayplan.validating.guard import GuardSettings
    from bayplan.writing.findings import ValidationFinding, ValidationReport

    Judge = Callable[[Document], GuardVerdict]


@commands.command(
    "validate",
    summary="Check manifests as an API server would, without one.",
    examples=(
        "bayplan validate -f app.yaml",
        "bayplan validate -f manifests/ -R -o sarif --output-file bayplan.sarif",
        "helm template . | bayplan validate -f -",
        "bayplan validate -f app.yaml --restrict all --exempt-group platform --as-group platform",
    ),
    details=(
        "Of every kind that Bayplan reads: names and types of all fields. Of pods, what makes pods, "
        "PodDisruptionBudgets, Karmada's policies and bindings also what an API server would refuse in what decides "
        "about placing: metadata, selectors, counts, containers with their ports, resources and restart policies, "
        "affinity, spread, tolerations, gates, priorities, placements; and in how pods run: volumes, mounts, probes, "
        "hooks, environment, devices, security, names. Not checked beyond names and types: update strategies, "
        "deadlines. Objects of other kinds are only counted. "
        "Then what the guard would refuse: hard anti-affinity across all namespaces may not reach beyond a node. "
        "Exit code 0 if nothing was found, 2 if something was. Warnings go to standard error and change nothing."
    ),
    groups=(options.FILES, guarding.RESTRICTING, guarding.ASKING, options.CONSOLE),
    params=(options.output("table", "json", "yaml", "sarif"), options.NAMESPACE, options.EXIT_ZERO),
)
def validate(
    *,
    output: str,
    namespace: str | None,
    exit_zero: bool,
    files: options.Files,
    restricting: guarding.Restricting,
    asking: guarding.Asking,
    console: Console,
) -> int:
    """Write what was found: 2 if anything would be refused."""
    files.check()
    report = examine(files, namespace or "default", _judge(restricting.settings(), asking))
    for finding in report.warnings:
        console.warning(str(finding.fault), finding.fault)
    _write(report, output, console)
    # Whatever was asked for, a file that nobody could read is no report on it.
    return outcomes.YES if not report.errors or (exit_zero and report.all_read) else outcomes.BAD_INPUT


def _judge(settings: GuardSettings, asking: guarding.Asking) -> Judge:
    """What the guard says of a document, by the settings of this run."""
    from bayplan.enforcing import pod_guard as reading

    semantics, requester = asking.parsed_semantics(), asking.requester()

    def judge(document: Document) -> GuardVerdict:
        pod = reading.read_pod_like(document.locate().root, document.namespace)
        return reading.GuardVerdict() if pod is None else reading.guard_verdict(pod, semantics, settings, requester)

    return judge


def examine(given: options.Files, namespace: str, judge: Judge) -> ValidationReport:
    """Everything wrong with the structure and the content of all objects."""
    from bayplan.reading import files
    from bayplan.reading.collecting import Collector
    from bayplan.wire import kinds
    from bayplan.writing.findings import UNREADABLE, WARNED, WARNING, ValidationFinding, ValidationReport

    paths, faults = files.find(given.filename, recursive=given.recursive)
    # Nothing is kept: what counts is whether an object is the first of its name, and the faults.
    sinks = dict.fromkeys((*kinds.BUILT_IN, *kinds.KARMADA), _drop)
    collector = Collector(namespace=namespace, strict=True, sinks=sinks)
    clusters = _Clusters()
    findings = [ValidationFinding(fault, UNREADABLE) for fault in faults]
    n_objects, unchecked = 0, Counter[str]()
    for path in paths:
        source = files.open_source(path, sys.stdin.buffer)
        if isinstance(source, Fault):
            findings.append(ValidationFinding(source, UNREADABLE))
            continue
        items = list(files.documents_of(source)) or [source.fault("the file holds no object")]
        for item in items:
            findings.extend(_of_item(item, collector, judge))
            clusters.add(item)
            if isinstance(item, Fault):
                continue
            if _is_checked(item):
                n_objects += 1
            else:
                unchecked[item.kind] += 1
        collector.inputs.templates.clear()
    findings.extend(ValidationFinding(fault, WARNED, WARNING) for fault in clusters.unknown())
    return ValidationReport(findings, n_objects, len(paths), unchecked)


def _is_checked(document: Document) -> bool:
    """Whether anybody here knows the kind; one that is refused for its kind was looked at as well."""
    from bayplan.wire import kinds

    found = kinds.handling_of(document.api_version, document.kind)
    return bool(found.wire_type or found.problem) or document.kind in ("CronJob", configuration.SCHEDULER_KIND)


def _drop(_: object) -> None:
    pass


class _Clusters:
    """Which clusters the input has, and where policies name which."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._named: list[tuple[Document, str, str]] = []

    def add(self, item: Document | Fault) -> None:
        from bayplan.validating import placements

        if isinstance(item, Fault) or not item.api_version.partition("/")[0].endswith(".karmada.io"):
            return
        if item.kind == "Cluster":
            self._known.add(item.name)
        elif item.kind.endswith("PropagationPolicy"):
            spec = item.locate().root.get("spec")
            self._named += [(item, path, name) for path, name in placements.clusters_named(spec, "spec")]

    def unknown(self) -> Iterator[Fault]:
        """Names of clusters that are not there; none where the input has no clusters at all."""
        from bayplan.validating import placements

        for document, path, name in self._named:
            if self._known and name not in self._known:
                yield document.fault(f"{name}: {placements.UNKNOWN}", path)


def _of_item(item: Document | Fault, collector: Collector, judge: Judge) -> Iterator[ValidationFinding]:
    """What is wrong with the structure; if it is sound but for misspelt names, also what is wrong with the content."""
    from bayplan.reading import checking
    from bayplan.writing.findings import MALFORMED, UNKNOWN_FIELD, UNREADABLE, ValidationFinding

    collector.faults.clear()
    collector.add(item)
    if isinstance(item, Fault):
        yield ValidationFinding(item, UNREADABLE)
        return
    for fault in collector.faults:
        yield ValidationFinding(fault, UNKNOWN_FIELD if checking.UNKNOWN in fault.message else MALFORMED)
    sound = all(checking.UNKNOWN in fault.message for fault in collector.faults)
    misspelt = {fault.path for fault in collector.faults}
    if sound:
        yield from (finding for finding in _of_content(item, judge) if not _follows(finding.fault, misspelt))


def _follows(fault: Fault, misspelt: set[str]) -> bool:
    """Whether something is missing only because its name was misspelt, which is said already."""
    if fault.path in misspelt:
        return True
    missing = fault.message.startswith(("Required value", 'Invalid value: ""'))
    around = {_parent(path) for path in misspelt}
    return missing and (fault.path in around or _parent(fault.path) in around)


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _of_content(document: Document, judge: Judge) -> Iterator[ValidationFinding]:
    from bayplan.validating import admission, scheduler_config, warnings
    from bayplan.writing.findings import WARNED, WARNING, ValidationFinding

    root, verdict = document.locate().root, judge(document)
    for cause in (*admission.complete_causes(root), *admission.schema_causes(root), *verdict.causes):
        yield ValidationFinding(document.fault(cause.message, cause.field), cause.reason)
    if document.kind == configuration.SCHEDULER_KIND:
        for text in scheduler_config.faults(root):
            yield ValidationFinding(_placed(document, text), "FieldValueInvalid")
    for text in (*warnings.of_object(root), *verdict.warnings):
        yield ValidationFinding(_placed(document, text), WARNED, WARNING)


def _placed(document: Document, text: str) -> Fault:
    """`path: message` at its place in the file."""
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
