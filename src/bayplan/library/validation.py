"""What an API server, the guard or Bayplan itself would reject, as a value."""

from __future__ import annotations

import difflib
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bayplan.errors import ArgumentError, Fault
from bayplan.library import arguments, inputs
from bayplan.library import settings as deciding
from bayplan.library.answers import DOCUMENT_FORMATS, Answer
from bayplan.library.settings import Settings

if TYPE_CHECKING:
    from bayplan.enforcing.pod_guard import GuardVerdict
    from bayplan.library.state import Objects
    from bayplan.model.semantics import Semantics
    from bayplan.reading.documents import Document
    from bayplan.validating.guard import GuardSettings
    from bayplan.writing.chosen_output import Arrangement
    from bayplan.writing.findings import ValidationFinding, ValidationReport


class Problem(msgspec.Struct, frozen=True):
    """
    One thing that is wrong: the id of its reason, the object, the field path, and the message.

    `severity` is "error" or "warning". `line` is 0 where it is not known.
    """

    severity: str
    reason: str
    file: str
    line: int
    object: str
    field: str
    message: str

    def __str__(self) -> str:
        return str(self.fault)

    @property
    def fault(self) -> Fault:
        """The same as errors carry it."""
        return Fault(self.message, file=self.file, line=self.line, subject=self.object, path=self.field)


class Validation(Answer, msgspec.Struct, frozen=True, eq=False):
    """
    The answer of `validate`: all problems. Iterating gives them.

    `complete` is false if a file could not be read, which was then not checked.
    """

    problems: tuple[Problem, ...]
    complete: bool
    summary: tuple[str, ...]
    _report: ValidationReport
    _version: str
    _formats = ("table", *DOCUMENT_FORMATS, "sarif", "junit", "markdown")

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)

    def __len__(self) -> int:
        return len(self.problems)

    @property
    def errors(self) -> tuple[Problem, ...]:
        """What would be rejected."""
        return tuple(one for one in self.problems if one.severity == "error")

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What would be admitted and is probably a mistake."""
        return tuple(one for one in self.problems if one.severity == "warning")

    @property
    def ok(self) -> bool:
        """Whether nothing would be rejected, nothing else failed that was to, and everything could be read."""
        return self.complete and not any(map(self._report.is_failure, self._report.findings))

    def passes(self, *, fail_on: Literal["error", "warning"] = "error") -> bool:
        """Whether the answer is yes; with `fail_on` "warning" only if there are no warnings either."""
        arguments.check_choice("fail_on", fail_on, ("error", "warning"))
        return self.complete and not self.errors and not (fail_on == "warning" and self.warnings)

    def _document(self) -> dict[str, Any]:
        from bayplan.writing import findings

        return findings.document(self._report, self._version)

    def _rows(self) -> Iterable[Mapping[str, Any]]:
        rows: list[Mapping[str, Any]] = self.to_dict()["findings"]
        return rows

    def _text(self, output: str, width: int | None, _: Arrangement) -> str:
        import bayplan
        from bayplan.writing import findings, tables, validation_formats, versioned

        report = self._report
        match output:
            case "sarif":
                return versioned.as_json(validation_formats.sarif(report, bayplan.__version__))
            case "junit":
                return validation_formats.junit(report)
            case "markdown":
                return validation_formats.markdown(report)
        drawn = tables.rendered(findings.table(report), width) if report.errors else ""
        return f"{drawn}{findings.summary(report)}\n"

    def _summary(self) -> str:
        return "; ".join(self.summary)


def validate(
    *what: Objects,
    recursive: bool = False,
    namespace: str = "default",
    settings: Settings | None = None,
    kustomize: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    ignore: Iterable[str] = (),
    guard: Mapping[str, Any] | None = None,
    as_user: str = "",
    as_groups: Iterable[str] = (),
    fail_on: Literal["error", "warning"] = "error",
) -> Validation:
    """
    What an API server, the guard or Bayplan would reject in manifests, without a cluster.

    The manifests are files, directories, objects as dictionaries, and directories of a kustomization. `ignore` has
    paths that are not read and ids of problems that are not reported. `guard` is the section of that name of the
    configuration file; the guard is asked on behalf of `as_user` and `as_groups`. With `fail_on` "warning",
    the answer is a yes only if there are no warnings either.
    """
    import msgspec

    from bayplan.library import examining
    from bayplan.reading import kustomizing
    from bayplan.validating import structure_faults
    from bayplan.validating.guard import GuardSettings
    from bayplan.writing import findings

    settings = settings or Settings()
    arguments.check_namespace(namespace)
    arguments.check_is("settings", settings, Settings)
    arguments.check_is("guard", guard or {}, Mapping)
    arguments.check_choice("fail_on", fail_on, ("error", "warning"))
    given = arguments.given(what, recursive=recursive)
    folders = arguments.given(kustomize).paths
    if not given and not folders:
        raise ArgumentError("nothing to validate: give at least one path or object")
    ignored_paths, ignored_ids = _ignored(ignore)
    semantics, version = deciding.semantics_of(settings), deciding.version_of(settings)
    written = arguments.plain("guard", guard or {})
    for fault in structure_faults.faults(written, GuardSettings, "guard"):
        raise ArgumentError(str(fault))
    limits = msgspec.convert(written, GuardSettings)
    report = examining.examine(
        examining.Examined(
            given.paths,
            recursive,
            namespace,
            version,
            _guard_check(limits, as_user, arguments.several("as_groups", as_groups), semantics),
            semantics,
            [*map(kustomizing.render, folders), *inputs.sources_of(given.lists)],
            ignored_paths,
            ignored_ids,
        )
    )
    report = msgspec.structs.replace(report, fail_on=fail_on)
    return Validation(
        problems=tuple(map(_problem, report.findings)),
        complete=report.all_read,
        summary=tuple(findings.summary(report).splitlines()),
        _report=report,
        _version=version,
    )


def _problem(one: ValidationFinding) -> Problem:
    fault = one.fault
    return Problem(one.severity, one.reason, fault.file, fault.line, fault.subject, fault.path, fault.message)


def _ignored(given: Iterable[str]) -> tuple[list[str], frozenset[str]]:
    """The paths and the ids that are ignored; what is neither is an error, because it would ignore nothing."""
    from bayplan.writing.findings import MEANINGS

    given = arguments.several("ignore", given)
    ids = {one for one in given if one in MEANINGS}
    paths = [one for one in given if one not in ids]
    for path in paths:
        if "*" not in path and not pathlib.Path(path).exists():
            near = difflib.get_close_matches(path, MEANINGS, n=1)
            advice = f", did you mean {near[0]}?" if near else ""
            message = f"{path!r} is neither a file or directory nor the id of a finding{advice}"
            raise ArgumentError(message, argument="ignore")
    return paths, frozenset(ids)


def _guard_check(
    settings: GuardSettings, user: str, groups: tuple[str, ...], semantics: Semantics
) -> Callable[[Document], GuardVerdict]:
    """A function: the verdict of the guard on a document."""
    from bayplan.enforcing import pod_guard
    from bayplan.validating.guard import Requester

    requester = Requester(user, groups)

    def check(document: Document) -> GuardVerdict:
        pod = pod_guard.read_pod_like(document.locate().root, document.namespace)
        return pod_guard.GuardVerdict() if pod is None else pod_guard.guard_verdict(pod, semantics, settings, requester)

    return check
