"""Every object of the files and Lists of `validate`, examined as an API server of a version and the guard would."""

from __future__ import annotations

import fnmatch
import os
import pathlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from bayplan.enforcing import pod_guard
from bayplan.enforcing.pod_guard import GuardVerdict, PodLike
from bayplan.errors import Fault
from bayplan.mapping import pods
from bayplan.model.kubernetes_versions import KubernetesVersion
from bayplan.model.semantics import UPSTREAM, Semantics
from bayplan.model.terms import NAME_LABEL, AffinityTerms, PeerTerm
from bayplan.model.workloads import SpreadConstraint
from bayplan.reading import checking, files, manifest_trees, scheduler_config
from bayplan.reading.collecting import Collector
from bayplan.reading.documents import Document, Source
from bayplan.validating import (
    admission,
    ineffective_rules,
    placements,
    served_versions,
    structure_faults,
    warning_ids,
    warnings,
)
from bayplan.wire import kinds
from bayplan.writing.findings import (
    MALFORMED,
    UNKNOWN_FIELD,
    UNKNOWN_KIND,
    UNREADABLE,
    WARNING,
    ValidationFinding,
    ValidationReport,
)

SCHEDULER_KIND = "KubeSchedulerConfiguration"
GuardCheck = Callable[[Document], GuardVerdict]


class Examined(msgspec.Struct, frozen=True):
    """
    What to examine, and how.

    `rendered` is what a kustomization renders, or why it cannot be rendered, and what is in memory. Objects without a
    namespace are in `namespace`. Files that `ignored_paths` match, themselves or by a folder above them, are not read;
    findings with one of `ignored_ids` are counted and not reported.
    """

    paths: Sequence[str]
    recursive: bool
    namespace: str
    version: KubernetesVersion
    guard: GuardCheck
    semantics: Semantics = UPSTREAM
    rendered: Sequence[Source | Fault] = ()
    ignored_paths: Sequence[str] = ()
    ignored_ids: frozenset[str] = frozenset()


def examine(asked: Examined) -> ValidationReport:
    """All faults in the structure and the content of all objects."""
    searched = files.find_files(asked.paths, recursive=asked.recursive)
    found = [file for file in searched.files if not is_ignored(file, asked.ignored_paths)]
    in_tree = [file for file in found if asked.recursive and file not in searched.named]
    skipped = Counter({"ignored file": len(searched.files) - len(found)})
    by_place = manifest_trees.no_manifests(in_tree)
    run = _Examination(asked)
    run.findings += [ValidationFinding(fault, UNREADABLE) for fault in searched.faults]
    run.findings += [_warning(fault) for fault in searched.skipped]
    sources = [*asked.rendered, *(files.open_source(path, sys.stdin.buffer) for path in found if path not in by_place)]
    skipped.update(by_place.values())
    n_read = 0
    for source in sources:
        items = [source] if isinstance(source, Fault) else list(files.documents_of(source))
        named = source.file if isinstance(source, Fault) else source.name
        reason = manifest_trees.is_no_manifest(items) if named in in_tree else ""
        if reason:
            skipped[reason] += 1
            continue
        n_read += 1
        if not isinstance(source, Fault):
            items = items or [source.fault("the file has no object")]
        run.add(items)
    if sum(skipped.values()) and not n_read and not run.findings:
        run.findings.append(ValidationFinding(Fault("no file is a manifest", file=", ".join(asked.paths)), UNREADABLE))
    return run.report(n_read, +skipped)


def is_ignored(file: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern matches the file or a folder that holds it."""
    path = pathlib.PurePath(os.path.normpath(file))
    names = [str(one) for one in (path, *path.parents)]
    return any(fnmatch.fnmatchcase(name, os.path.normpath(one)) for one in patterns for name in names)


class _Examination:
    """The findings so far."""

    def __init__(self, asked: Examined) -> None:
        self._asked = asked
        # No object is kept: the collector only finds faults and duplicate names.
        sinks = dict.fromkeys((row.key for row in kinds.decoded()), _drop)
        self._collector = Collector(namespace=asked.namespace, strict=True, sinks=sinks)
        self._clusters, self._rules = _Clusters(), _RulesInEffect(asked)
        self._n_objects, self._unchecked = 0, Counter[str]()
        self.findings: list[ValidationFinding] = []

    def add(self, items: Sequence[Document | Fault]) -> None:
        """Examine what one file holds."""
        for item in items:
            self.findings.extend(self._findings(item))
            self._clusters.add(item)
            self._rules.add(item)
            if isinstance(item, Fault):
                continue
            if _is_checked(item, self._asked.version):
                self._n_objects += 1
            else:
                self._unchecked[item.kind] += 1
        self._collector.inputs.templates.clear()

    def report(self, n_files: int, skipped: Counter[str]) -> ValidationReport:
        self.findings.extend(map(_warning, (*self._clusters.unknown(), *self._rules.without_effect())))
        kept = [one for one in self.findings if one.reason not in self._asked.ignored_ids]
        n_ignored = len(self.findings) - len(kept)
        return ValidationReport(kept, self._n_objects, n_files, self._unchecked, skipped, n_ignored)

    def _findings(self, item: Document | Fault) -> Iterator[ValidationFinding]:
        """Faults in the structure; if there are none but unknown fields, also faults in the content."""
        if isinstance(item, Fault):
            yield ValidationFinding(item, UNREADABLE)
            return
        missing = served_versions.no_match(item.api_version, item.kind, self._asked.version)
        if missing:
            yield ValidationFinding(item.fault(missing, "apiVersion"), UNKNOWN_KIND)
            return
        faults = self._collector.faults
        faults.clear()
        self._collector.add(item)
        if not faults and not item.server_made and kinds.handling_of(item.api_version, item.kind).wire_type:
            faults.extend(checking.later_fields(item, self._asked.version))
        for fault in faults:
            yield ValidationFinding(fault, UNKNOWN_FIELD if _is_unknown_field(fault) else MALFORMED)
        if all(map(_is_unknown_field, faults)):
            unknown = {fault.path for fault in faults}
            found = _content_findings(item, self._asked)
            yield from (finding for finding in found if not _follows(finding.fault, unknown))


def _is_unknown_field(fault: Fault) -> bool:
    return structure_faults.UNKNOWN_FIELD_PREFIX in fault.message


def _warning(fault: Fault) -> ValidationFinding:
    return ValidationFinding(fault, warning_ids.id_of(fault.message), WARNING)


def _is_checked(document: Document, version: KubernetesVersion) -> bool:
    """Whether the kind is known; an object that is rejected because of its kind counts as checked."""
    found = kinds.handling_of(document.api_version, document.kind)
    has_template = found.row is not None and found.row.pod_path
    return (
        bool(found.wire_type or found.problem or has_template)
        or document.kind == SCHEDULER_KIND
        or bool(served_versions.no_match(document.api_version, document.kind, version))
    )


def _drop(_: object) -> None:
    pass


class _Clusters:
    """The clusters of the input, and the clusters that its policies name."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._named: list[tuple[Document, str, str]] = []

    def add(self, item: Document | Fault) -> None:
        if isinstance(item, Fault):
            return
        row = kinds.KINDS.get((item.api_version.partition("/")[0], item.kind))
        if row is not None and row.held_in == "clusters":
            self._known.add(item.name)
        elif row is not None and row.held_in == "policies":
            spec = (item.plain_if_decodable() or {}).get("spec")
            self._named += [(item, path, name) for path, name in placements.named_clusters(spec, "spec")]

    def unknown(self) -> Iterator[Fault]:
        """A fault for each named cluster that does not exist; none if the input has no clusters at all."""
        for document, path, name in self._named:
            if self._known and name not in self._known:
                yield document.fault(f"{name}: {placements.UNKNOWN_CLUSTER}", path)


class _RulesInEffect:
    """The rules of the pods and templates of the input, and what the input has that they may select."""

    def __init__(self, asked: Examined) -> None:
        self._namespace, self._semantics = asked.namespace, asked.semantics
        self._n_nodes, self._keys = 0, Counter[str]()
        self._namespaces: dict[str, dict[str, str]] = {}
        self._pods: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        self._rules: list[tuple[Document, PodLike, AffinityTerms, tuple[SpreadConstraint, ...]]] = []

    def add(self, item: Document | Fault) -> None:
        root = None if isinstance(item, Fault) else item.plain_if_decodable()
        if isinstance(item, Fault) or root is None:
            return
        if (item.api_version, item.kind) in (("v1", "Node"), ("v1", "Namespace")):
            metadata = root.get("metadata")
            written = metadata.get("labels") if isinstance(metadata, dict) else None
            labels = {str(key): str(value) for key, value in written.items()} if isinstance(written, dict) else {}
            if item.kind == "Node":
                self._n_nodes += 1
                self._keys.update(list(labels))
            else:
                self._namespaces[item.name] = labels
            return
        pod = pod_guard.read_pod_like(root, item.namespace or self._namespace)
        if pod is None:
            return
        labels = pod.metadata.labels or {}
        self._pods.add((pod.namespace, tuple(sorted(labels.items()))))
        terms, _ = pod_guard.terms_of(pod, labels)
        constraints = tuple(pods.spread_constraint(one, labels) for one in pod.spread or ())
        if not item.server_made and (terms or constraints):
            self._rules.append((item, pod, terms, constraints))

    def without_effect(self) -> Iterator[Fault]:
        """What has no effect among the rules that are about to be applied."""
        known = ineffective_rules.KnownObjects(
            self._n_nodes,
            self._keys,
            has_namespaces=bool(self._namespaces) or not self._n_nodes,
            selects=self._selects if self._n_nodes else None,  # without nodes it is no whole cluster
        )
        for document, pod, terms, constraints in self._rules:
            found = ineffective_rules.of_terms(terms, pod.namespace, self._semantics, known)
            for text in (*found, *ineffective_rules.of_constraints(constraints, known)):
                yield _located(document, pod.path + text)

    def _selects(self, term: PeerTerm) -> bool:
        return any(
            term.matches(dict(labels), name, {**self._namespaces.get(name, {}), NAME_LABEL: name}, terminating=False)
            for name, labels in self._pods
        )


def _follows(fault: Fault, unknown: set[str]) -> bool:
    """Whether a field is missing only because its name is misspelt, which is reported as an unknown field."""
    if fault.path in unknown:
        return True
    missing = fault.message.startswith(("Required value", 'Invalid value: ""'))
    parents = {path.rpartition(".")[0] for path in unknown}
    return missing and (fault.path in parents or fault.path.rpartition(".")[0] in parents)


def _content_findings(document: Document, asked: Examined) -> Iterator[ValidationFinding]:
    root, verdict = document.locate().root, asked.guard(document)
    causes = [*admission.validate_all(root, asked.version), *admission.validate_schema(root)]
    if asked.semantics.empty_topology_key_means_any:
        causes = admission.without_empty_keys(causes)
    for cause in (*causes, *verdict.causes):
        yield ValidationFinding(document.fault(cause.message, cause.field), cause.reason)
    if document.kind == SCHEDULER_KIND:
        yield from _scheduler_findings(document)
    for text in (*warnings.object_warnings(root), *verdict.warnings):
        yield _warning(_located(document, text))


def _scheduler_findings(document: Document) -> Iterator[ValidationFinding]:
    """Faults in the structure of a scheduler configuration, or else in its content."""
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
