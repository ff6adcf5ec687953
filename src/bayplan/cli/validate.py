"""`bayplan validate`: find offline what an API server, the guard or Bayplan itself would reject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click
import msgspec

from bayplan.cli import commands, guard_options, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.model.kubernetes_versions import KubernetesVersion

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
    fail_on: Literal["error", "warning"],
    exit_zero: bool,
    files: options.FileOptions,
    guard: guard_options.GuardOptions,
    requester: guard_options.RequesterOptions,
    console: Console,
) -> int:
    """Write the findings; exit code 1 if an object would be rejected, 2 if a file cannot be read."""
    if not kustomize:
        files.check()
    from bayplan.library.settings import Settings
    from bayplan.library.validation import validate as validated

    settings = Settings(
        semantics=requester.semantics,
        switches=value_types.switches(requester.switch),
        kubernetes_version=kubernetes_version,
    )
    answer = validated(
        *files.filename,
        recursive=files.recursive,
        namespace=namespace or "default",
        settings=settings,
        kustomize=kustomize,
        ignore=ignore,
        guard=msgspec.to_builtins(guard.settings()),
        as_user=requester.as_user or "",
        as_groups=requester.as_group,
        fail_on=fail_on,
    )
    for warning in answer.warnings:
        console.warning(str(warning), warning.fault)
    console.answer(answer.to_text(output, width=console.table_width))
    if not answer.complete:  # a file that cannot be read was not checked, so --exit-zero does not apply
        return commands.EXIT_BAD_INPUT
    return commands.exit_code(answer.ok, exit_zero=exit_zero)
