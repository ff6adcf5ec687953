"""`bayplan validate`: find offline what an API server, the guard or Bayplan itself would reject."""

from __future__ import annotations

import difflib
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from bayplan.cli import commands, guard_options, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.enforcing.pod_guard import GuardVerdict
    from bayplan.model.kubernetes_versions import KubernetesVersion
    from bayplan.model.semantics import Semantics
    from bayplan.reading.documents import Document
    from bayplan.validating.guard import GuardSettings
    from bayplan.writing.findings import ValidationReport

_FORMATS = ("table", "json", "yaml", "sarif", "junit", "markdown")
_ERRORS, _WARNINGS = "error", "warning"


@commands.command(
    "validate",
    summary=SUMMARIES["validate"],
    examples=(
        "bayplan validate -f app.yaml",
        "bayplan validate -f clusters/ -R --kubernetes-version 1.37",
        "bayplan validate -k overlays/prod --fail-on warning",
        "bayplan validate -f manifests/ -R --ignore manifests/vendor --ignore NullLabelSelector -o junit",
        "helm template . | bayplan validate -f -",
        "bayplan validate -f app.yaml --restrict all --exempt-group platform --as-group platform",
    ),
    details=(
        "For every kind that Bayplan reads, the names and types of all fields are checked. For pods, workloads with a "
        "pod template, PodDisruptionBudgets, and the policies and bindings of Karmada, the values are checked as an "
        "API server does: metadata, selectors, replica counts, containers with ports, resources and restart policies, "
        "affinity, topology spread, tolerations, scheduling gates, priorities, placements, volumes, mounts, probes, "
        "lifecycle hooks, environment, devices, security contexts, update strategies and deadlines. Versions of kinds "
        "that the API server does not serve are rejected. Objects of other kinds are only counted. The guard then "
        "rejects required anti-affinity that covers all namespaces and is wider than a node; see --restrict. With -R, "
        "files that are no manifests (kustomizations, patches, Helm values and templates) are skipped and counted. "
        "Exit code 0 if there are no errors, 1 if there are, 2 if a file cannot be read. Warnings are written to "
        "standard error and change the exit code only with --fail-on warning."
    ),
    groups=(options.FILES, guard_options.GUARD, guard_options.REQUESTER, options.CONSOLE),
    params=(
        commands.Option(
            "-k",
            "--kustomize",
            multiple=True,
            metavar="DIR",
            type=click.Path(),
            heading="Input",
            help="Directory of a kustomization, rendered by kubectl or kustomize, which must be on the PATH. May be "
            "repeated.",
        ),
        commands.Option(
            "--ignore",
            multiple=True,
            metavar="PATH|ID",
            heading="Input",
            help="File, directory or pattern that is not read, or id of findings that are not reported. May be "
            "repeated.",
        ),
        options.KUBERNETES_VERSION,
        options.output(*_FORMATS),
        options.NAMESPACE,
        commands.Option(
            "--fail-on",
            type=click.Choice([_ERRORS, _WARNINGS]),
            default=_ERRORS,
            show_default=True,
            heading="Output and messages",
            help="The least severity for which the exit code is 1.",
        ),
        options.EXIT_ZERO,
    ),
)
def validate(
    *,
    kustomize: tuple[str, ...],
    ignore: tuple[str, ...],
    kubernetes_version: KubernetesVersion,
    output: str,
    namespace: str | None,
    fail_on: str,
    exit_zero: bool,
    files: options.FileOptions,
    guard: guard_options.GuardOptions,
    requester: guard_options.RequesterOptions,
    console: Console,
) -> int:
    """Write the findings; exit code 1 if an object would be rejected, 2 if a file cannot be read."""
    if not kustomize:
        files.check()
    from bayplan.cli import examine_files
    from bayplan.reading import kustomizing

    ignored_paths, ignored_ids = _ignored(ignore)
    semantics = value_types.semantics_with(requester.semantics, requester.switch)
    report = examine_files.examine(
        examine_files.Examined(
            files.filename,
            files.recursive,
            namespace or "default",
            kubernetes_version,
            _guard_check(guard.settings(), requester, semantics),
            semantics,
            [kustomizing.render(folder) for folder in kustomize],
            ignored_paths,
            ignored_ids,
        )
    )
    for finding in report.warnings:
        console.warning(str(finding.fault), finding.fault)
    _write(report, output, kubernetes_version, console)
    if not report.all_read:  # a file that cannot be read was not checked, so --exit-zero does not apply
        return commands.EXIT_BAD_INPUT
    is_valid = not report.errors and not (fail_on == _WARNINGS and report.warnings)
    return commands.exit_code(is_valid, exit_zero=exit_zero)


def _ignored(given: Sequence[str]) -> tuple[list[str], frozenset[str]]:
    """The paths and the ids of --ignore; what is neither is a usage error, because it would ignore nothing."""
    from bayplan.writing.findings import MEANINGS

    ids = {one for one in given if one in MEANINGS}
    paths = [one for one in given if one not in ids]
    for path in paths:
        if "*" not in path and not pathlib.Path(path).exists():
            near = difflib.get_close_matches(path, MEANINGS, n=1)
            advice = f", did you mean {near[0]}?" if near else ""
            raise click.BadParameter(
                f"{path!r} is neither a file or directory nor the id of a finding{advice}", param_hint="--ignore"
            )
    return paths, frozenset(ids)


def _guard_check(
    settings: GuardSettings, asked: guard_options.RequesterOptions, semantics: Semantics
) -> Callable[[Document], GuardVerdict]:
    """A function: the verdict of the guard on a document, with the settings of this run."""
    from bayplan.enforcing import pod_guard
    from bayplan.validating.guard import Requester

    requester = Requester(asked.as_user or "", asked.as_group)

    def check(document: Document) -> GuardVerdict:
        pod = pod_guard.read_pod_like(document.locate().root, document.namespace)
        return pod_guard.GuardVerdict() if pod is None else pod_guard.guard_verdict(pod, semantics, settings, requester)

    return check


def _write(report: ValidationReport, output: str, version: str, console: Console) -> None:
    import bayplan
    from bayplan.writing import findings, tables, validation_formats, versioned

    match output:
        case "sarif":
            console.answer(versioned.as_json(validation_formats.sarif(report, bayplan.__version__)))
        case "junit":
            console.answer(validation_formats.junit(report))
        case "markdown":
            console.answer(validation_formats.markdown(report))
        case "table":
            drawn = tables.rendered(findings.table(report), console.table_width) if report.errors else ""
            console.answer(f"{drawn}{findings.summary(report)}\n")
        case _:
            console.answer(versioned.written(findings.document(report, version), output))
