"""`bayplan explain`: the verdict of every rule on every target for one workload, and the changes that would help."""

from __future__ import annotations

import collections
import difflib
import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import commands, fix_manifests, loading, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console
from bayplan.cli.what_if_options import WHAT_IF, WhatIfOptions
from bayplan.errors import InputError

if TYPE_CHECKING:
    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.controllers.desired_state import ObjectKey
    from bayplan.engine.engine import EngineOf
    from bayplan.explaining.explanation import Explanation
    from bayplan.explaining.fixes import EvictionPolicy
    from bayplan.explaining.patches import ManifestSource
    from bayplan.indexing.placement_index import PlacementIndex
    from bayplan.model.workloads import Workload, WorkloadKey
    from bayplan.placing.place_pods import PodPlacement
    from bayplan.placing.what_if import BlockedEviction
    from bayplan.preempting.preemption import Preemption
    from bayplan.reading.cluster import LoadedCluster
    from bayplan.reading.fleet import Fleet

_ANY_KIND = "pod"  # a bare name is read as a pod's; in a fleet it matches a template of any kind


@functools.cache
def _pod_suffixes() -> dict[str, str]:
    """Kind → what follows its name in the names of its pods."""
    from bayplan.wire import kinds

    rows = [(names, row) for names in kinds.PodNames for row in kinds.KINDS.values() if row.pod_names is names]
    return {row.kind.lower(): names.value for names, row in rows}


@functools.cache
def _binding_kinds() -> frozenset[str]:
    """The names and short names of the kinds of bindings."""
    from bayplan.wire import kinds

    return frozenset(name for row in kinds.held_in("bindings") for name in (row.kind.lower(), row.short_name))


@functools.cache
def _short_names() -> dict[str, str]:
    """Short name → kind, of everything but bindings."""
    from bayplan.wire import kinds

    named = {row.short_name: row.kind.lower() for row in kinds.KINDS.values() if row.short_name}
    return {short: kind for short, kind in named.items() if short not in _binding_kinds()}


class ExplainRequest(msgspec.Struct, frozen=True):
    """The workload to explain; an empty namespace matches any."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"

    def matches_pod(self, name: str) -> bool:
        """Whether a pod of this name is requested."""
        return re.fullmatch(re.escape(self.name) + _pod_suffixes()[self.kind], name) is not None

    def names(self, key: ObjectKey) -> bool:
        """Whether the controller itself is requested."""
        return (self.kind, self.name) == (key.kind.lower(), key.name) and self.namespace in ("", key.namespace)

    def matches_binding(self, workload: Workload) -> bool:
        """Whether a binding is requested, by its own name or by the name of its template."""
        binding = workload.binding
        if binding is None or workload.terminating:
            return False
        if self.kind in _binding_kinds():
            return workload.name == self.name
        if self.kind == binding.kind.lower().removesuffix("s") and binding.name == self.name:
            return True
        return self.kind == _ANY_KIND and self.name in (binding.name, workload.name)


class ExplainedWorkload(msgspec.Struct, frozen=True):
    """The explanation, and where the workload runs now; empty if it is pending."""

    explanation: Explanation
    current: str = ""


def _complete_workload(ctx: click.Context, param: click.Parameter, typed: str) -> list[str]:
    from bayplan.cli import name_completion

    return name_completion.complete_workload(ctx, param, typed)


@commands.command(
    "explain",
    summary=SUMMARIES["explain"],
    examples=(
        "bayplan explain pod/web-4 -n shop -f cluster.yaml",
        "bayplan explain deploy/web --state cluster.json -f web.yaml",
        "bayplan explain pod/web-4 -f cluster.json -o json",
        "bayplan explain deploy/web -f cluster.json --apply-fix 1 > web.yaml",
        "bayplan explain deploy/web --state cluster.json --lose node/worker-1",
        "bayplan explain deployment/shop -f fleet/",
    ),
    details=(
        "Workloads that are before it in the scheduling queue are placed first, as `place` does. A running pod is "
        "explained as if it were scheduled again. For a controller, the first of its pods that is unschedulable is "
        "explained. Exit code 0 if the workload fits or would preempt others, 1 if it is unschedulable."
    ),
    groups=(options.INPUT, options.SCOPE, options.DECISIONS, WHAT_IF, options.CONSOLE),
    params=(
        commands.Argument(
            "workload",
            metavar="KIND/NAME",
            nargs=-1,
            required=True,
            shell_complete=_complete_workload,
            explained="The workload to explain, also as KIND NAME or KIND.GROUP/NAME. NAME or NAMESPACE/NAME is a pod.",
        ),
        commands.Option(
            "--all-targets", "--all", is_flag=True, help="Show every node and every peer instead of a summary."
        ),
        commands.Option("--alone", is_flag=True, help="Ignore the other pending workloads."),
        fix_manifests.APPLY_FIX,
        options.NO_PREEMPTION,
        options.output("text", "json", "yaml", options.JSONPATH),
        options.EXIT_ZERO,
        options.HPA,
    ),
)
def explain(
    *,
    workload: tuple[str, ...],
    all_targets: bool,
    alone: bool,
    apply_fix: int | None,
    no_preemption: bool,
    output: str,
    exit_zero: bool,
    hpa: AssumedLoad,
    sources: options.InputOptions,
    scope: options.ScopeOptions,
    decisions: options.DecisionOptions,
    what_if: WhatIfOptions,
    console: Console,
) -> int:
    """Write the explanation; exit code 1 if the workload is unschedulable."""
    written = written_as_one(workload)
    asked, engines, in_scope = parse(written), options.configured_engines(), scope.predicate()
    sources.check()
    has_manifests = apply_fix is not None or output != "text"
    stdin = fix_manifests.repeatable_input(sources) if has_manifests else None
    found = loading.load(sources, scope, decisions, console, assumed_load=hpa, what_if=what_if, stdin=stdin)
    from bayplan.reading.fleet import Fleet

    workloads = [*found.pending, *(record.workload for record in found.index.records.values())]
    asked = with_namespace(asked, written, workloads)

    def is_included(one: Workload) -> bool:
        return in_scope(one) and asked.namespace in ("", one.namespace)

    if isinstance(found, Fleet):
        explained = explain_binding(asked, found, is_included, alone=alone)
    elif asked.kind in _pod_suffixes():
        explained = explain_pod(
            asked, found, engines(found.index), is_included, alone=alone, preempts=not no_preemption
        )
    else:  # only in a fleet can a workload be of any kind
        expected = f"expected KIND/NAME with a kind of {', '.join(_pod_suffixes())}, or NAMESPACE/NAME of a pod"
        raise click.BadParameter(f"{expected}; got {written!r}", param_hint="KIND/NAME")
    if not isinstance(found, Fleet):
        key = explained.explanation.workload
        everything = (*found.pending, *(record.workload for record in found.index.records.values()))
        loading.warn_of_ineffective_rules((one for one in everything if one.key == key), found, console)
    if stdin is not None and not isinstance(found, Fleet):
        namespace = scope.namespace or "default"
        with fix_manifests.manifest_source(explained.explanation, sources, namespace, found, stdin) as source:
            if apply_fix is not None:
                fix_manifests.write_changed(apply_fix, explained.explanation, source, output, console)
                return commands.EXIT_YES
            _write(explained, output, console, source=source)
    elif apply_fix is not None:
        raise click.UsageError("--apply-fix is for pods: the input is a fleet")
    else:
        _write(explained, output, console, every=all_targets)
    runs = bool(explained.explanation.target or explained.explanation.nominated)
    return commands.exit_code(runs, exit_zero=exit_zero)


def _write(
    explained: ExplainedWorkload,
    output: str,
    console: Console,
    *,
    source: ManifestSource | None = None,
    every: bool = False,
) -> None:
    from bayplan.writing import chosen_output, explanations

    found, current = explained.explanation, explained.current
    if output == "text":
        console.answer(explanations.text(found, current=current, every=every, width=console.table_width))
    else:
        console.answer(chosen_output.document(explanations.document(found, current=current, source=source), output))


def written_as_one(words: Sequence[str]) -> str:
    """`KIND NAME` as `KIND/NAME`; raises a usage error for more than one workload."""
    if len(words) > 2 or (len(words) == 2 and "/" in "".join(words)):
        raise click.BadParameter(
            f"expected one workload as KIND/NAME or KIND NAME, got {' '.join(words)!r}", param_hint="KIND/NAME"
        )
    return "/".join(words)


def parse(text: str) -> ExplainRequest:
    """`KIND/NAME` in kubectl's spelling, `KIND.GROUP/NAME` too; raises a usage error if the name is missing."""
    kind, slash, name = text.rpartition("/")
    if not name or (slash and not kind):
        raise click.BadParameter(f"expected KIND/NAME, got {text!r}", param_hint="KIND/NAME")
    kind = _without_group(kind)
    singular = kind.lower().removesuffix("s") if kind.lower() not in _short_names() else kind.lower()
    return ExplainRequest(_short_names().get(singular, singular) if slash else "pod", name)


def _without_group(written: str) -> str:
    """`deployment.apps` and `deployment.v1.apps` as `deployment`; a group that no such kind has is left as it is."""
    from bayplan.wire import kinds

    kind, _, rest = written.partition(".")
    version, _, group = rest.partition(".")
    for row in kinds.KINDS.values():
        is_group = rest == row.group or (version, group) == (row.version, row.group)
        if row.group and is_group and kind.lower() in (row.kind.lower(), row.plural, row.short_name):
            return kind
    return written


def with_namespace(asked: ExplainRequest, text: str, workloads: Sequence[Workload]) -> ExplainRequest:
    """The request, read as `NAMESPACE/NAME` if the part before the slash is a namespace of the input and not a kind."""
    before, slash, _ = text.rpartition("/")
    template_kinds = {one.binding.kind.lower() for one in workloads if one.binding is not None}
    is_kind = asked.kind in _pod_suffixes() or asked.kind in template_kinds
    if slash and not is_kind and any(one.namespace == before for one in workloads):
        return ExplainRequest("pod", asked.name, before)
    return asked


def explain_pod(
    asked: ExplainRequest,
    cluster: LoadedCluster,
    engine_of: EngineOf,
    is_included: Callable[[Workload], bool],
    *,
    alone: bool,
    preempts: bool,
) -> ExplainedWorkload:
    """The explanation of the requested pod; raises InputError if there is none, or if there are several."""
    from bayplan.explaining import explanation
    from bayplan.mapping import pods
    from bayplan.placing import recreating

    def is_asked(workload: Workload) -> bool:
        return asked.matches_pod(workload.name) and is_included(workload)

    pending = [workload for workload in cluster.pending if is_asked(workload)]
    refused = [one for one in cluster.refused if is_asked(pods.workload_of(one.pod))]
    running = [record for record in cluster.index.records.values() if is_asked(record.workload)]
    updated = [one for one in cluster.rollouts if any(map(asked.matches_pod, one.pods)) or asked.names(one.key)]
    namespaces = {one.namespace for one in pending} | {one.workload.namespace for one in running}
    _check_one_namespace(namespaces | {one.pod.metadata.namespace for one in refused}, str(asked))
    if pending or refused or updated or cluster.draining or cluster.gone:
        if alone:
            cluster.pending, cluster.rollouts = pending, updated
        found = _explain_placed(is_asked, pending, cluster, engine_of, preempts=preempts)
        if found is not None:
            return ExplainedWorkload(found)
    if running:
        recreated = recreating.as_recreated(running[0], cluster.index, cluster.spread_context)
        explained = explanation.explain(recreated, engine_of(recreated), policy=cluster.eviction_policy())
        return ExplainedWorkload(explained, running[0].shares[0][0])
    raise InputError(f"no pod of {asked} is in the input{_advice(asked, cluster)}")


def _explain_placed(
    is_asked: Callable[[Workload], bool],
    pending: Sequence[Workload],
    cluster: LoadedCluster,
    engine_of: EngineOf,
    *,
    preempts: bool,
) -> Explanation | None:
    """The explanation of the first requested pod that is unschedulable, else of the first requested pod, if any."""
    from bayplan.explaining import explanation
    from bayplan.placing import place_cluster
    from bayplan.placing.place_cluster import PlacingOptions

    preempting: list[Explanation] = []

    def explain_preemption(workload: Workload, found: Preemption) -> None:
        """Before its victims leave, for the first requested pod that preempts."""
        if not preempting and is_asked(workload):
            now = explanation.explain(workload, engine_of(workload), policy=cluster.eviction_policy())
            preempting.append(msgspec.structs.replace(now, nominated=found.target, victims=found.victims))

    chosen = PlacingOptions(
        preempts=preempts,
        on_preemption=explain_preemption,
        # What comes after it in the queue does not concern it.
        until=lambda placed: all(one.key in placed and placed[one.key].target for one in pending),
    )
    answer = place_cluster.place(cluster, engine_of, chosen)
    requested = [one for one in answer.placements if is_asked(one.workload)]
    if answer.blocked and all(one.target for one in requested):
        stays = _explain_blocked(is_asked, answer.blocked, cluster.index)
        if stays is not None:
            return stays
    for placement in sorted(requested, key=lambda one: bool(one.target)):
        if placement.target and preempting:
            return preempting[0]
        return _explanation_of(placement, engine_of, cluster.eviction_policy())
    return None


def _explain_blocked(
    is_asked: Callable[[Workload], bool], blocked: Sequence[BlockedEviction], index: PlacementIndex
) -> Explanation | None:
    """Why a requested pod stays on a node to drain, if one does."""
    from bayplan.explaining import explanation

    for one in blocked:
        here = [
            key for key in index.workloads_on(index.slots.by_name[one.node]) if is_asked(index.records[key].workload)
        ]
        if here:
            stays = one.pod if one.pod in here else here[0]
            why = one.why if stays == one.pod else f"{one.pod}: {one.why}"
            message = f"{stays} stays on {one.node}, which cannot be drained: {why}"
            return explanation.Explanation(stays, "", message, [], [])
    return None


def _explanation_of(placement: PodPlacement, engine_of: EngineOf, policy: EvictionPolicy) -> Explanation:
    from bayplan.explaining import explanation
    from bayplan.writing import placements

    workload = placement.workload
    if placement.refused or placement.lost:
        return explanation.Explanation(workload.key, "", placements.message_of(placement), [], [])
    found = explanation.explain(workload, engine_of(workload), policy=policy)
    if placement.target:
        return found
    # A pod with scheduling gates may fit, but it is not scheduled, and one that is not judged may not fit.
    return msgspec.structs.replace(found, target="", message=placement.message)


def _check_one_namespace(namespaces: set[str], asked: str) -> None:
    if len(namespaces) > 1:
        raise InputError(f"{asked} is in several namespaces ({', '.join(sorted(namespaces))}): choose one with -n")


def _advice(asked: ExplainRequest, cluster: LoadedCluster) -> str:
    """The end of the message: the same name outside the scope, another kind with the name, or similar names."""
    workloads = [*cluster.pending, *(record.workload for record in cluster.index.records.values())]
    elsewhere = sorted({one.key for one in workloads if asked.matches_pod(one.name)})
    if elsewhere:
        shown = ", ".join(elsewhere[:3]) + (" …" if len(elsewhere) > 3 else "")
        return f" in the requested scope; there is {shown}"
    names = {one.name for one in workloads}
    others = [ExplainRequest(kind, asked.name) for kind in _pod_suffixes()]
    same_name = [str(other) for other in others if any(other.matches_pod(name) for name in names)]
    near = same_name or difflib.get_close_matches(asked.name, sorted(names), n=3)
    return f", did you mean {' or '.join(near)}?" if near else ""


def explain_binding(
    asked: ExplainRequest, fleet: Fleet, is_included: Callable[[Workload], bool], *, alone: bool
) -> ExplainedWorkload:
    """The explanation of the requested binding; raises InputError if there is none, or if there are several."""
    from bayplan.assigning.cluster_ranking import FleetEngine
    from bayplan.explaining import explanation
    from bayplan.placing import fleet_fixes, place_bindings
    from bayplan.rules import profiles

    engine = FleetEngine(fleet.index, profiles.fleet_rules())
    placed = {key: record.shares for key, record in fleet.index.records.items()}
    known = {w.key: w for w in (*(r.workload for r in fleet.index.records.values()), *fleet.pending)}
    workload = _only([w for w in known.values() if is_included(w) and asked.matches_binding(w)], asked, known)
    queue = [one.key for one in fleet.pending]
    place = queue.index(workload.key) if not alone and workload.key in queue else 0
    collections.deque(place_bindings.place_all(fleet.pending[:place], engine), maxlen=0)
    if not alone and workload.key in queue and place_bindings.may_find_a_peer(workload, engine):
        collections.deque(place_bindings.place_all(fleet.pending[place + 1 :], engine), maxlen=0)
    current = ", ".join(f"{target}:{n}" if n else target for target, n in placed.get(workload.key, ()))
    explained = explanation.explain_binding(workload, engine)
    return ExplainedWorkload(msgspec.structs.replace(explained, fixes=fleet_fixes.find(workload, engine)), current)


def _only(matching: Sequence[Workload], asked: ExplainRequest, known: dict[WorkloadKey, Workload]) -> Workload:
    shown = asked.name if asked.kind == _ANY_KIND else f"{asked.kind}/{asked.name}"
    if not matching:
        names = {f"{w.binding.kind.lower()}/{w.binding.name}" for w in known.values() if w.binding}
        near = difflib.get_close_matches(shown, names, n=3)
        advice = f", did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"no binding of {shown} is in the input or would be created from it{advice}")
    _check_one_namespace({w.namespace for w in matching}, shown)
    if len(matching) > 1:
        listed = ", ".join(sorted(w.name for w in matching))
        raise InputError(f"{shown} matches several bindings ({listed}): give the kind too")
    return matching[0]
