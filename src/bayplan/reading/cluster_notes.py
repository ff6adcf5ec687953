"""What is said about the input of a cluster: what was skipped, created or set aside, and what is not judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from bayplan.controllers.created_objects import CreatedObjects, key_of
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.groups import KUEUE_LABEL, VOLCANO_ANNOTATION
from bayplan.reading.collecting import Inputs
from bayplan.reading.pod_sink import PodSink
from bayplan.wire import kinds
from bayplan.wire.kinds import Trait

ENFORCED, PRIVILEGED = "pod-security.kubernetes.io/enforce", "privileged"
_MAX_NAMES_SHOWN = 3


def notes_of(
    inputs: Inputs, sink: PodSink, index: PlacementIndex, created: CreatedObjects, further: Iterable[str]
) -> list[str]:
    """All notes, in the order in which they are shown; `further` are those of autoscalers and admission."""
    return [
        *inputs.hints,
        *inputs.state_notes(),
        *_of_pods(sink, created, index),
        *_of_objects(inputs),
        *further,
        *_of_assumptions(inputs),
        *_not_judged(inputs, created),
    ]


def enforced_standards(inputs: Inputs, created: CreatedObjects) -> list[tuple[str, str]]:
    """The namespaces in which pods are created and a pod security standard is enforced, with its level."""
    if not inputs.namespaces:
        return []
    used = {pod.metadata.namespace for pod in created.pods} if inputs.change is None else set()
    making = {row.kind for row in kinds.KINDS.values() if row.pod_path is not None}
    custom = {key_of(one) for one in inputs.custom_objects}
    used |= {key.namespace for key in inputs.change or () if key.kind in making or key in custom}
    levels = ((one.metadata.name, (one.metadata.labels or {}).get(ENFORCED, "")) for one in inputs.namespaces)
    return [(name, level) for name, level in levels if name in used and level not in ("", PRIVILEGED)]


def _of_pods(sink: PodSink, created: CreatedObjects, index: PlacementIndex) -> Iterator[str]:
    yield from _unplaceable(sink)
    if created.pods:
        counted = "1 pod was" if len(created.pods) == 1 else f"{len(created.pods)} pods were"
        yield f"{counted} created for controllers whose pods are not in the input"
    by_others = Counter[str]()
    for pod in (*sink.pending, *created.pods):
        if KUEUE_LABEL in (pod.metadata.labels or ()):
            by_others["Kueue"] += 1
        elif VOLCANO_ANNOTATION in (pod.metadata.annotations or ()):
            by_others["Volcano"] += 1
    for name, n in sorted(by_others.items()):
        counted = "1 pod is" if n == 1 else f"{n} pods are"
        yield f"{counted} in groups of {name}, to which these groups are left: the pods are placed one by one here"
    unknown = sorted({target for _, target in sink.running if target not in index.slots.by_name})
    if unknown:
        shown = ", ".join(unknown[:_MAX_NAMES_SHOWN]) + (" …" if len(unknown) > _MAX_NAMES_SHOWN else "")
        noun = "an unknown node" if len(unknown) == 1 else f"{len(unknown)} unknown nodes"
        yield f"pods on {noun} ({shown}) are not counted"


def _unplaceable(sink: PodSink) -> Iterator[str]:
    """Pods of which something cannot be read; they would never be placed, and their terms are not known."""
    for key, reason in list(sink.unplaceable.items())[:_MAX_NAMES_SHOWN]:
        yield f"Pod {key} would not be placed again: {reason}"
    n_more = len(sink.unplaceable) - _MAX_NAMES_SHOWN
    if n_more > 0:
        yield f"{n_more} more {'pod' if n_more == 1 else 'pods'} would not be placed again for such a reason"


def _of_objects(inputs: Inputs) -> Iterator[str]:
    if inputs.clusters:
        yield "clusters, policies and bindings are ignored: this answer is about nodes"
    elif inputs.policies or inputs.bindings:
        yield "policies and bindings are ignored without clusters: add the output of kubectl get clusters -o yaml"
    admitting = {row.kind for row in kinds.having(Trait.ADMITS)}
    for text, counts in (
        ("ignored, because placements do not depend on them", _counts(inputs.skipped, without=admitting)),
        ("not judged: what these may change in pods, or refuse", _counts(inputs.skipped, only=admitting)),
        ("not read, because their kinds are not known; if they make pods, these are missing", _counts(inputs.unknown)),
    ):
        if counts:
            yield f"{text}: {counts}"


def _of_assumptions(inputs: Inputs) -> Iterator[str]:
    for key in inputs.assumed_changed:
        yield (
            f"{key.kind} {key.namespace}/{key.name} is not in the state, but its pods are: "
            "they are replaced as if its template had changed"
        )


def _not_judged(inputs: Inputs, created: CreatedObjects) -> Iterator[str]:
    for name, level in enforced_standards(inputs, created):
        yield f"not judged: what the pod security standard {level} refuses in namespace {name}"
    for made_by, reason in created.not_judged_objects:
        named = f"{made_by.namespace}/{made_by.name}".lstrip("/")
        yield f"not judged: the pods of {made_by.kind} {named}: {reason}"


def _counts(
    counted: Counter[str], *, only: AbstractSet[str] | None = None, without: AbstractSet[str] = frozenset()
) -> str:
    found = sorted((kind, n) for kind, n in counted.items() if kind not in without and (only is None or kind in only))
    return ", ".join(f"{n} {kind}" for kind, n in found)
