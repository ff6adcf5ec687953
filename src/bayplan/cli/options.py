"""
Options that several commands share, under kubectl's names where kubectl has the option.

It does not know the commands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from bayplan.cli import configuration, value_types
from bayplan.cli.commands import Option, OptionGroup
from bayplan.cli.connection_options import CONNECTION, ConnectionOptions
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.library.inputs import Scope
    from bayplan.library.settings import Settings
    from bayplan.mapping.bindings import LabelKeys
    from bayplan.model.workloads import Workload
    from bayplan.rules.rule import AnyRule
    from bayplan.writing.chosen_output import Arrangement

DEFAULT_SCHEDULER = "default-scheduler"
_INPUT, _SCOPE, _DECISIONS, _OUTPUT = "Input", "Scope", "Scheduling", "Output and messages"


class InputOptions(ConnectionOptions, frozen=True):
    """
    Where objects are read from: files of what is about to be applied, and files or a live cluster of what runs.

    Files of the former alone may be both.
    """

    filename: tuple[str, ...]
    recursive: bool
    state: tuple[str, ...]

    @property
    def is_live(self) -> bool:
        """Whether a live cluster is read; a kubectl plugin without files reads that of the current context."""
        if self.filename or self.state:
            return bool(self.context or self.kubeconfig or self.server)
        return self.names_cluster or _is_kubectl_plugin()

    @property
    def has_state(self) -> bool:
        """Whether what runs is given apart from what is about to be applied."""
        return bool(self.state) or self.is_live

    @property
    def has_change(self) -> bool:
        """Whether something is about to be applied on a state that is given apart from it."""
        return self.has_state and bool(self.filename)

    def check(self) -> None:
        """Raise a usage error if there is nothing to read, or if two options exclude each other."""
        if not self.filename and not self.has_state:
            raise click.UsageError(
                "nothing to read: give a file or a directory with -f or --state, - for standard input, or a cluster "
                f"with --context{self.advice()}"
            )
        if self.state and self.is_live:
            raise click.UsageError("give what runs either with --state or with --context, not both")
        if "-" in self.filename and "-" in self.state:
            raise click.UsageError("standard input can be read only once: give - to one of -f and --state")


def _is_kubectl_plugin() -> bool:
    """Whether the program was called as `kubectl bayplan`."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and (ctx.find_root().info_name or "").startswith("kubectl ")


class FileOptions(msgspec.Struct, frozen=True):
    """Where objects are read from by commands that read files only."""

    filename: tuple[str, ...]
    recursive: bool

    def check(self) -> None:
        """Raise a usage error if there is nothing to read."""
        if not self.filename:
            raise click.UsageError("nothing to read: give a file or a directory with -f, or - for standard input")


class ScopeOptions(msgspec.Struct, frozen=True):
    """Which pending workloads are placed and shown; the others are left out."""

    namespace: str | None
    all_namespaces: bool
    selector: str | None

    def scope(self) -> Scope:
        """The same for the library."""
        from bayplan.library.inputs import Scope

        return Scope(None if self.all_namespaces else self.namespace, self.selector)

    def predicate(self) -> Callable[[Workload], bool]:
        """Whether a workload is in the namespace and matches the selector; raises ArgumentError for a bad selector."""
        includes = self.scope().includes()
        return lambda workload: includes(workload.namespace, workload.labels)


class DecisionOptions(msgspec.Struct, frozen=True):
    """The semantics and the seed of decisions."""

    semantics: Literal["upstream", "design"]
    kubernetes_version: str
    switch: tuple[str, ...]
    seed: str
    affinity_label_keys: str | None
    anti_affinity_label_keys: str | None

    def label_keys(self) -> LabelKeys:
        """The label keys that workload affinity and anti-affinity in a fleet may use."""
        from bayplan.library import settings

        return settings.label_keys(self.settings())

    def settings(self, hpa: AssumedLoad = "current") -> Settings:
        """The same for the library, with what the configuration file says of the scheduler and of custom kinds."""
        return msgspec.structs.replace(
            configured_settings(),
            semantics=self.semantics,
            switches=value_types.switches(self.switch),
            kubernetes_version=self.kubernetes_version,
            seed=self.seed,
            hpa=hpa,
            affinity_label_keys=_keys(self.affinity_label_keys),
            anti_affinity_label_keys=_keys(self.anti_affinity_label_keys),
        )


def _keys(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(key.strip() for key in text.split(",") if key.strip())


def configured_settings() -> Settings:
    """The scheduler and the custom kinds of the configuration file, and the version of --kubernetes-version."""
    from bayplan.library.settings import Settings

    ctx = click.get_current_context(silent=True)
    if ctx is None:
        return Settings()
    found = configuration.current(ctx)
    return Settings(
        kubernetes_version=ctx.params.get("kubernetes_version") or "",
        scheduler=found.scheduler,
        scheduler_file=found.file,
        custom_kinds=found.custom_kinds or (),
    )


def configured_rules(scheduler_name: str = DEFAULT_SCHEDULER) -> tuple[AnyRule, ...]:
    """The rules of the configuration's profile for a scheduler, else of its first; else kube-scheduler's defaults."""
    from bayplan.library import settings

    return settings.rules(configured_settings(), scheduler_name)


def _console(
    *, color: str, no_color: bool, verbose: int, quiet: bool, log_format: str, output_file: str | None
) -> Console:
    return Console("never" if no_color else color, -1 if quiet else verbose, log_format, output_file or "")


def _complete_namespace(ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
    from bayplan.cli import name_completion

    return name_completion.complete_namespace(ctx, param, typed)


def _complete_switch(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    from bayplan.model.semantics import Semantics

    names = [field.encode_name for field in msgspec.structs.fields(Semantics)]
    return [f"{name}=" for name in names if name.startswith(typed)]


FILES = OptionGroup(
    "files",
    FileOptions,
    (
        Option(
            "-f",
            "--filename",
            multiple=True,
            metavar="PATH",
            type=click.Path(allow_dash=True),
            heading=_INPUT,
            help="File or directory with manifests or the output of kubectl get; - for standard input. May be "
            "repeated.",
        ),
        Option(
            "-R",
            "--recursive",
            is_flag=True,
            heading=_INPUT,
            help="Read directories recursively; no link out of them is followed.",
        ),
    ),
)
STATE = Option(
    "--state",
    multiple=True,
    metavar="PATH",
    type=click.Path(allow_dash=True),
    heading=_INPUT,
    help="File or directory of what runs, such as the output of kubectl get. It is read, not validated, and -f is what "
    "is about to be applied on it. May be repeated.",
)
INPUT = OptionGroup("sources", InputOptions, (*FILES.options, STATE, *CONNECTION.options))

NAMESPACE = Option(
    "-n",
    "--namespace",
    metavar="NAME",
    type=value_types.Name(),
    shell_complete=_complete_namespace,
    heading=_SCOPE,
    help="Only this namespace. Objects without a namespace are read as if they were in it.",
)
SCOPE = OptionGroup(
    "scope",
    ScopeOptions,
    (
        NAMESPACE,
        Option("-A", "--all-namespaces", is_flag=True, heading=_SCOPE, help="All namespaces. This is the default."),
        Option(
            "-l",
            "--selector",
            metavar="SELECTOR",
            heading=_SCOPE,
            help="Only workloads that match this label selector, such as app=web,tier!=db.",
        ),
    ),
)

KUBERNETES_VERSION = Option(
    "--kubernetes-version",
    metavar="VERSION",
    type=value_types.KnownVersion(),
    default="1.36",
    show_default=True,
    heading=_DECISIONS,
    help="Version of Kubernetes, whose scheduler and API server decide: 1.36 or 1.37. For a live cluster the default "
    "is that of its API server, or the nearest known one.",
)
DECISIONS = OptionGroup(
    "decisions",
    DecisionOptions,
    (
        Option(
            "--semantics",
            type=click.Choice(["upstream", "design"]),
            default="upstream",
            show_default=True,
            heading=_DECISIONS,
            help="upstream: decide as kube-scheduler and karmada-scheduler do. design: decide as the design documents "
            "say.",
        ),
        KUBERNETES_VERSION,
        Option(
            "--switch",
            multiple=True,
            shell_complete=_complete_switch,
            metavar="NAME=VALUE",
            heading=_DECISIONS,
            help="Set one of the differences between the two semantics. May be repeated.",
        ),
        Option(
            "--seed", default="", metavar="TEXT", heading=_DECISIONS, help="Seed for the choice between equal scores."
        ),
        Option(
            "--affinity-label-keys",
            metavar="KEY,…",
            heading=_DECISIONS,
            help="For fleets: the label keys that workload affinity may use. By default, all.",
        ),
        Option(
            "--anti-affinity-label-keys",
            metavar="KEY,…",
            heading=_DECISIONS,
            help="For fleets: the label keys that workload anti-affinity may use. By default, all.",
        ),
    ),
)

HPA = Option(
    "--hpa",
    type=click.Choice(["min", "current", "max"]),
    default="current",
    show_default=True,
    heading=_DECISIONS,
    help="Replicas that a HorizontalPodAutoscaler gives its target. current: as many as the target asks for, within "
    "the limits, and the minimum if it does not say. min, max: the limits.",
)

CONSOLE = OptionGroup(
    "console",
    _console,
    (
        Option(
            "--config",
            metavar="FILE",
            type=click.Path(),
            is_eager=True,
            expose_value=False,
            callback=configuration.apply,
            heading=_DECISIONS,
            help="A BayplanConfiguration (defaults for options) or a KubeSchedulerConfiguration.",
        ),
        Option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            heading=_OUTPUT,
            help="Use colors and drawn tables. auto: only at a terminal, and not if NO_COLOR is set.",
        ),
        Option("--no-color", is_flag=True, heading=_OUTPUT, help="The same as --color=never."),
        Option(
            "--output-file",
            metavar="FILE",
            type=click.Path(),
            heading=_OUTPUT,
            help="Write the answer to this file instead of standard output.",
        ),
        Option("-v", "--verbose", count=True, heading=_OUTPUT, help="Print more messages."),
        Option("-q", "--quiet", is_flag=True, heading=_OUTPUT, help="Print only answers and errors."),
        Option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            heading=_OUTPUT,
            help="Format of the messages on standard error.",
        ),
    ),
)


def output(*formats: str, **settings: Any) -> Option:
    """The -o of a command; the first format is the default. One that ends in `=` takes a template."""
    return Option(
        "-o",
        "--output",
        type=value_types.OutputFormat(formats),
        default=formats[0],
        show_default=True,
        heading=_OUTPUT,
        help="Output format.",
        **settings,
    )


JSONPATH, CUSTOM_COLUMNS, CSV, HTML = "jsonpath=", "custom-columns=", "csv", "html"


def _arrangement(*, no_headers: bool, sort_by: str) -> Arrangement:
    from bayplan.writing.chosen_output import Arrangement

    return Arrangement(headers=not no_headers, sort_by=sort_by)


ARRANGEMENT = OptionGroup(
    "arrangement",
    _arrangement,
    (
        Option("--no-headers", is_flag=True, heading=_OUTPUT, help="Write tables without headers."),
        Option(
            "--sort-by",
            default="",
            metavar="COLUMN|PATH",
            type=value_types.FieldPath(),
            heading=_OUTPUT,
            help="Sort by a column of the table or, with an output made of the document, by a field of the items such "
            "as .name.",
        ),
    ),
)
EXIT_ZERO = Option("--exit-zero", is_flag=True, heading=_OUTPUT, help="Exit with code 0 even if the answer is no.")
NO_PREEMPTION = Option("--no-preemption", is_flag=True, heading=_DECISIONS, help="Let no pod preempt others.")
CHANGE, ALL = "change", "all"
GATE = Option(
    "--gate",
    type=click.Choice([CHANGE, ALL]),
    default=CHANGE,
    show_default=True,
    heading=_OUTPUT,
    help="Which workloads decide the exit code. change: those of -f and what follows from a what-if, if --state "
    "or --context gives what runs apart from it. all: also what was pending before.",
)
STRICT = Option(
    "--strict", is_flag=True, heading=_OUTPUT, help="Exit with code 1 also if something could not be judged."
)
