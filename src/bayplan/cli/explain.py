"""`bayplan explain`: one workload, every target, every rule, the pods in the way, and what would help."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, explain_fleet, loading, options, outcomes
from bayplan.cli.console import Console
from bayplan.errors import InputError

if TYPE_CHECKING:
    from bayplan.explaining.explanation import Explanation
    from bayplan.model.workloads import Workload
    from bayplan.placing.place_pods import RulesOf
    from bayplan.reading.cluster import LoadedCluster

# How the pods of each kind are called, after its own name.
_PODS_OF = {
    "pod": "",
    "deployment": r"-[a-z0-9]+-[a-z0-9]{5}",
    "replicaset": r"-[a-z0-9]{5}",
    "replicationcontroller": r"-[a-z0-9]{5}",
    "daemonset": r"-[a-z0-9]{5}",
    "statefulset": r"-[0-9]+",
    "job": r"(-[0-9]+)?-[a-z0-9]{5}",
}
_SHORT = {"po": "pod", "deploy": "deployment", "rs": "replicaset", "rc": "replicationcontroller"} | {
    "ds": "daemonset",
    "sts": "statefulset",
    "cm": "configmap",
    "svc": "service",
    "pvc": "persistentvolumeclaim",
}


class ExplainRequest(msgspec.Struct, frozen=True):
    """What the user wants to know about; a bare name is a pod's. Without a namespace, any is meant."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"

    def means(self, name: str) -> bool:
        """Whether a pod of this name is asked about."""
        return re.fullmatch(re.escape(self.name) + _PODS_OF[self.kind], name) is not None


class Subject(msgspec.Struct, frozen=True):
    """The workload to explain, and where it runs now; empty if it waits."""

    explanation: Explanation
    current: str = ""


@commands.command(
    "explain",
    summary="Say for one workload where it goes, or what is in its way on every node.",
    examples=(
        "bayplan explain pod/web-4 -n shop -f cluster.yaml",
        "bayplan explain deploy/web -f cluster.json -f web.yaml",
        "bayplan explain pod/web-4 -f cluster.json -o json",
        "bayplan explain deployment/shop -f fleet/",
    ),
    details=(
        "What waits before it in the queue is placed first, as `place` does; a pod that runs is explained as if it "
        "were placed anew. Of a controller the first pod that fits nowhere is told. Exit code 0 if it fits, 1 if not."
    ),
    groups=(options.SOURCES, options.SCOPE, options.DECIDING, options.CONSOLE),
    params=(
        commands.Argument(
            "workload", metavar="KIND/NAME", explained="Whom to explain; a bare name, or NAMESPACE/NAME, is a pod's."
        ),
        commands.Option("--all-targets", "--all", is_flag=True, help="Show every node and every peer, however many."),
        commands.Option("--alone", is_flag=True, help="As if nothing else were waiting."),
        options.output("text", "json", "yaml"),
        options.EXIT_ZERO,
    ),
)
def explain(
    *,
    workload: str,
    all_targets: bool,
    alone: bool,
    output: str,
    exit_zero: bool,
    sources: options.Sources,
    scope: options.Scope,
    deciding: options.Deciding,
    console: Console,
) -> int:
    """Write the explanation: 1 if the workload fits nowhere."""
    asked, rules_of, selector = parse(workload), options.configured_rules_of(), scope.parsed_selector()
    found = loading.load(sources, scope, deciding, console)
    from bayplan.reading.fleet import Fleet

    workloads = [*found.pending, *(record.workload for record in found.index.records.values())]
    asked = settled(asked, workload, workloads)

    def included(one: Workload) -> bool:
        return scope.includes(one, selector) and asked.namespace in ("", one.namespace)

    if isinstance(found, Fleet):
        subject = Subject(*explain_fleet.find(asked.kind, asked.name, found, included, alone=alone))
    else:
        check_has_pods(asked, workload)
        subject = find(asked, found, rules_of, included, alone=alone)
    console.answer(_written(subject, output, every=all_targets))
    return outcomes.of(bool(subject.explanation.target), exit_zero=exit_zero)


def parse(text: str) -> ExplainRequest:
    """`KIND/NAME` in kubectl's spelling; raises a usage error where there is no name."""
    kind, slash, name = text.rpartition("/")
    if not name:
        raise click.BadParameter(f"expected KIND/NAME, got {text!r}", param_hint="KIND/NAME")
    singular = kind.lower().removesuffix("s") if kind.lower() not in _SHORT else kind.lower()
    return ExplainRequest(_SHORT.get(singular, singular) if slash else "pod", name)


def settled(asked: ExplainRequest, text: str, workloads: Sequence[Workload]) -> ExplainRequest:
    """`NAMESPACE/NAME`, as answers call workloads, where what stands before the slash is a namespace and no kind."""
    before, slash, _ = text.rpartition("/")
    of_bindings = {one.binding.kind.lower() for one in workloads if one.binding is not None}
    is_kind = asked.kind in _PODS_OF or asked.kind in of_bindings
    if slash and not is_kind and any(one.namespace == before for one in workloads):
        return ExplainRequest("pod", asked.name, before)
    return asked


def check_has_pods(asked: ExplainRequest, text: str) -> None:
    """Raises a usage error for a kind that has no pods; in a fleet, every kind may be propagated."""
    if asked.kind not in _PODS_OF:
        known = ", ".join(_PODS_OF)
        expected = f"expected KIND/NAME with a kind of {known}, or NAMESPACE/NAME of a pod"
        raise click.BadParameter(f"{expected}; got {text!r}", param_hint="KIND/NAME")


def find(
    asked: ExplainRequest,
    cluster: LoadedCluster,
    rules_of: RulesOf,
    included: Callable[[Workload], bool],
    *,
    alone: bool,
) -> Subject:
    """The explanation of what is asked about; raises InputError if there is no such workload, or more than one."""
    waiting = [w for w in cluster.pending if asked.means(w.name) and included(w)]
    running = [r for r in cluster.index.records.values() if asked.means(r.workload.name) and included(r.workload)]
    _check_one_namespace({w.namespace for w in waiting} | {r.workload.namespace for r in running}, asked)
    if waiting:
        return Subject(_of_waiting(waiting, cluster, rules_of, alone=alone))
    if running:
        from bayplan.explaining import explanation

        found = explanation.explain(running[0].workload, cluster.index, rules_of(running[0].workload))
        return Subject(found, running[0].shares[0][0])
    raise InputError(f"no pod of {asked} is in the input{_advice(asked, cluster)}")


def _of_waiting(waiting: Sequence[Workload], cluster: LoadedCluster, rules_of: RulesOf, *, alone: bool) -> Explanation:
    """Of those asked about the first that fits nowhere, else the first of all."""
    from bayplan.explaining import explanation
    from bayplan.placing import place_pods

    keys = {workload.key for workload in waiting}
    for placement in place_pods.place_all(waiting if alone else cluster.pending, cluster.index, rules_of):
        workload = placement.workload
        keys.discard(workload.key)
        if workload in waiting and not placement.target:
            found = explanation.explain(workload, cluster.index, rules_of(workload))
            # A gated pod would fit, perhaps, but nobody tries it.
            return msgspec.structs.replace(found, target="", message=placement.message)
        if not keys:
            break
    return explanation.explain(waiting[0], cluster.index, rules_of(waiting[0]))


def _check_one_namespace(namespaces: set[str], asked: ExplainRequest) -> None:
    if len(namespaces) > 1:
        listed = ", ".join(sorted(namespaces))
        raise InputError(f"{asked} is in several namespaces ({listed}): say which with -n")


def _advice(asked: ExplainRequest, cluster: LoadedCluster) -> str:
    """What may have been meant: the same elsewhere, another kind of that name, or another name."""
    workloads = [*cluster.pending, *(record.workload for record in cluster.index.records.values())]
    elsewhere = sorted({one.key for one in workloads if asked.means(one.name)})
    if elsewhere:
        shown = ", ".join(elsewhere[:3]) + (" …" if len(elsewhere) > 3 else "")
        return f" as asked for; there is {shown}"
    names = {one.name for one in workloads}
    others = [ExplainRequest(kind, asked.name) for kind in _PODS_OF]
    meant = [str(other) for other in others if any(other.means(name) for name in names)]
    near = meant or difflib.get_close_matches(asked.name, sorted(names), n=3)
    return f", did you mean {' or '.join(near)}?" if near else ""


def _written(subject: Subject, output: str, *, every: bool) -> str:
    from bayplan.writing import explanations, versioned

    if output == "text":
        return explanations.text(subject.explanation, current=subject.current, every=every)
    return versioned.written(explanations.document(subject.explanation, current=subject.current), output)
