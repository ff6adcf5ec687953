"""The options that several commands share, each under the name that kubectl gave it. Knows nothing of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli import configuration
from bayplan.cli.commands import Option, OptionGroup
from bayplan.cli.connecting import CONNECTING, Connecting
from bayplan.cli.console import Console

if TYPE_CHECKING:
    from bayplan.mapping.workload_terms import LabelKeys
    from bayplan.model.labels import Selector
    from bayplan.model.semantics import Semantics
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_pods import RulesOf
    from bayplan.rules.rule import Rule

_INPUT, _SCOPE, _DECIDING, _TALKING = "Input", "Scope", "How to decide", "Output and messages"


class Sources(msgspec.Struct, frozen=True):
    """Where objects are read from: files, a cluster, or files on top of a cluster."""

    filename: tuple[str, ...]
    recursive: bool
    cluster: Connecting

    def check(self) -> None:
        """Refuse to read nothing at all."""
        if not self.filename and not self.cluster.is_given:
            raise click.UsageError(
                "nothing to read: give a file or a directory with -f, - for standard input, or a cluster with "
                f"--context{self.cluster.advice()}"
            )


def _sources(*, filename: tuple[str, ...], recursive: bool, **cluster: Any) -> Sources:
    return Sources(filename, recursive, Connecting(**cluster))


class Files(msgspec.Struct, frozen=True):
    """Where objects are read from by commands that only look at what somebody wrote."""

    filename: tuple[str, ...]
    recursive: bool

    def check(self) -> None:
        """Refuse to read nothing at all."""
        if not self.filename:
            raise click.UsageError("nothing to read: give a file or a directory with -f, or - for standard input")


class Scope(msgspec.Struct, frozen=True):
    """Which of the waiting workloads are meant; the others are neither placed nor shown."""

    namespace: str | None
    all_namespaces: bool
    selector: str | None

    @property
    def for_unnamed(self) -> str:
        """The namespace of objects that name none."""
        return self.namespace or "default"

    def includes(self, workload: Workload, selector: Selector | None) -> bool:
        """Whether the workload is in the namespace and has the labels."""
        here = self.all_namespaces or self.namespace is None or workload.namespace == self.namespace
        return here and (selector is None or selector.matches(workload.labels))

    def parsed_selector(self) -> Selector | None:
        """What -l stands for; None without it."""
        from bayplan.cli import selector_text

        return None if self.selector is None else selector_text.parse(self.selector)


class Deciding(msgspec.Struct, frozen=True):
    """By which rules and with which seed to decide."""

    semantics: str
    switch: tuple[str, ...]
    seed: str
    affinity_label_keys: str | None
    anti_affinity_label_keys: str | None

    def parsed_semantics(self) -> Semantics:
        """The preset with the switches set on it."""
        from bayplan.cli import switches

        return switches.semantics(self.semantics, self.switch)

    def label_keys(self) -> LabelKeys:
        """The keys that workload terms in a fleet may look for."""
        from bayplan.mapping.workload_terms import LabelKeys

        return LabelKeys(_keys(self.affinity_label_keys), _keys(self.anti_affinity_label_keys))


def _keys(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(key.strip() for key in text.split(",") if key.strip())


def configured_rules_of() -> RulesOf:
    """The rules for each workload: those of the configuration's profile for its `schedulerName`."""
    found = {"default-scheduler": configured_rules()}

    def rules_of(workload: Workload) -> tuple[Rule, ...]:
        name = workload.scheduler_name or "default-scheduler"
        if name not in found:
            found[name] = configured_rules(name)
        return found[name]

    return rules_of


def configured_rules(scheduler_name: str = "default-scheduler") -> tuple[Rule, ...]:
    """The rules of the configuration's profile for a scheduler, else of its first; else kube-scheduler's defaults."""
    from bayplan.rules import profiles

    found = configuration.current()
    if found.scheduler is None:
        return profiles.pod_rules()
    from bayplan.errors import Fault, InputError
    from bayplan.reading import scheduler_config

    try:
        return profiles.pod_rules(scheduler_config.profile_of(found.scheduler, scheduler_name))
    except InputError as error:
        faults = [Fault(f.message, file=found.file, subject=f.subject, path=f.path) for f in error.faults]
        raise InputError(faults) from None


def _console(
    *, color: str, no_color: bool, verbose: int, quiet: bool, log_format: str, output_file: str | None
) -> Console:
    return Console("never" if no_color else color, -1 if quiet else verbose, log_format, output_file or "")


def _take_configuration(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    configuration.apply(ctx, path)


def _switches(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    from bayplan.cli import switches

    return [f"{name}=" for name in switches.names() if name.startswith(typed)]


FILES = OptionGroup(
    "files",
    Files,
    (
        Option(
            "-f",
            "--filename",
            multiple=True,
            metavar="PATH",
            type=click.Path(allow_dash=True),
            heading=_INPUT,
            help="File or directory with manifests or a dump of kubectl get; - for standard input. May be repeated.",
        ),
        Option("-R", "--recursive", is_flag=True, heading=_INPUT, help="Look into subdirectories too."),
    ),
)
SOURCES = OptionGroup("sources", _sources, (*FILES.options, *CONNECTING.options))

NAMESPACE = Option(
    "-n", "--namespace", metavar="NAME", heading=_SCOPE, help="Only this namespace; also that of objects naming none."
)
SCOPE = OptionGroup(
    "scope",
    Scope,
    (
        NAMESPACE,
        Option("-A", "--all-namespaces", is_flag=True, heading=_SCOPE, help="Every namespace: the default."),
        Option("-l", "--selector", metavar="SELECTOR", heading=_SCOPE, help="Only these labels: app=web,tier!=db."),
    ),
)

DECIDING = OptionGroup(
    "deciding",
    Deciding,
    (
        Option(
            "--semantics",
            type=click.Choice(["upstream", "design"]),
            default="upstream",
            show_default=True,
            heading=_DECIDING,
            help="Decide as kube-scheduler does, or as the design of affinity was first written.",
        ),
        Option(
            "--switch",
            multiple=True,
            shell_complete=_switches,
            metavar="NAME=VALUE",
            heading=_DECIDING,
            help="Set one difference between the two. May be repeated.",
        ),
        Option("--seed", default="", metavar="TEXT", heading=_DECIDING, help="Breaks ties between equal nodes."),
        Option(
            "--affinity-label-keys",
            metavar="KEY,…",
            heading=_DECIDING,
            help="In a fleet: the labels that workload affinity may look for; unset, all.",
        ),
        Option(
            "--anti-affinity-label-keys",
            metavar="KEY,…",
            heading=_DECIDING,
            help="The same for workload anti-affinity.",
        ),
    ),
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
            callback=_take_configuration,
            heading=_DECIDING,
            help="BayplanConfiguration (defaults for options) or KubeSchedulerConfiguration.",
        ),
        Option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            show_default=True,
            heading=_TALKING,
            help="Colours and drawn tables; auto is at a terminal without NO_COLOR.",
        ),
        Option("--no-color", is_flag=True, heading=_TALKING, help="The same as --color=never."),
        Option("--output-file", metavar="FILE", type=click.Path(), heading=_TALKING, help="Write the answer there."),
        Option("-v", "--verbose", count=True, heading=_TALKING, help="Say more."),
        Option("-q", "--quiet", is_flag=True, heading=_TALKING, help="Say nothing but answers and errors."),
        Option(
            "--log-format",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            heading=_TALKING,
            help="Form of what goes to standard error.",
        ),
    ),
)


def output(*forms: str, **settings: Any) -> Option:
    """The -o of a command; the first form is its default."""
    return Option(
        "-o",
        "--output",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        heading=_TALKING,
        help="Form of the answer.",
        **settings,
    )


EXIT_ZERO = Option("--exit-zero", is_flag=True, heading=_TALKING, help="Exit 0 even if the answer is no.")
