"""
Custom kinds that make pods: where their pod templates are, and how many pods are made from each.

`SHIPPED` has the popular ones; the configuration file adds others. A path names fields, `*` every item of a list or
map; a path of numbers is relative to the map that holds the template, and `..` leads one step up. What a kind does when
it is changed is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bayplan.wire.custom import CustomObject

GroupKind = tuple[str, str]
ANY, UP = "*", ".."
_MAX_VISITED = 100_000
_LISTS_OF_CONTAINERS = ("containers", "steps")


class TemplatePath(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """
    A pod template of a kind.

    `template` leads to it; where there is none, `else_template` does. The number of pods is that at `replicas`, else
    `default`, within `at_least` and `at_most` if these are set, less `minus`, times the number at `factor`.
    """

    template: str
    else_template: str = ""
    replicas: str = ""
    default: int = 1
    minus: int = 0
    factor: str = ""
    at_least: str = ""
    at_most: str = ""


class CustomKind(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """
    A kind in any of its versions.

    `suspended` leads to a field that is true while it runs no pods. `like` is the kind of Kubernetes that it works
    like, with the same fields.
    """

    group: str
    kind: str
    templates: tuple[TemplatePath, ...] = ()
    suspended: str = ""
    like: Literal["", "StatefulSet", "DaemonSet"] = ""


class FoundTemplate(msgspec.Struct, frozen=True):
    """One template of an object: its place, its content, and the number of pods; `part` tells it from the others."""

    path: str
    content: Any
    n_pods: int
    part: str


_REPLICATED = (TemplatePath(template="spec.template", replicas="replicas"),)


def _training(group: str, kind: str, replica_specs: str) -> CustomKind:
    return CustomKind(
        group=group,
        kind=kind,
        templates=(TemplatePath(template=f"spec.{replica_specs}.*.template", replicas="replicas"),),
        suspended="spec.runPolicy.suspend",
    )


def _ray(kind: str, cluster: str, *further: TemplatePath) -> CustomKind:
    workers = TemplatePath(
        template=f"{cluster}.workerGroupSpecs.*.template",
        replicas="replicas",
        default=0,
        at_least="minReplicas",
        at_most="maxReplicas",
        factor="numOfHosts",
    )
    head = TemplatePath(template=f"{cluster}.headGroupSpec.template")
    suspended = "" if kind == "RayService" else "spec.suspend"
    return CustomKind(group="ray.io", kind=kind, templates=(head, workers, *further), suspended=suspended)


_KRUISE, _KUBEFLOW = "apps.kruise.io", "kubeflow.org"
_GROUP_SIZE = "spec.leaderWorkerTemplate"
SHIPPED: tuple[CustomKind, ...] = (
    CustomKind(group="argoproj.io", kind="Rollout", templates=_REPLICATED),
    CustomKind(
        group="jobset.x-k8s.io",
        kind="JobSet",
        templates=(
            TemplatePath(
                template="spec.replicatedJobs.*.template.spec.template",
                replicas="parallelism",
                at_most="completions",
                factor="../../replicas",
            ),
        ),
        suspended="spec.suspend",
    ),
    CustomKind(
        group="leaderworkerset.x-k8s.io",
        kind="LeaderWorkerSet",
        templates=(
            TemplatePath(
                template=f"{_GROUP_SIZE}.leaderTemplate",
                else_template=f"{_GROUP_SIZE}.workerTemplate",
                replicas="../replicas",
            ),
            TemplatePath(template=f"{_GROUP_SIZE}.workerTemplate", replicas="size", minus=1, factor="../replicas"),
        ),
    ),
    _ray("RayCluster", "spec"),
    _ray("RayJob", "spec.rayClusterSpec", TemplatePath(template="spec.submitterPodTemplate")),
    _ray("RayService", "spec.rayClusterConfig"),
    _training(_KUBEFLOW, "PyTorchJob", "pytorchReplicaSpecs"),
    _training(_KUBEFLOW, "TFJob", "tfReplicaSpecs"),
    _training(_KUBEFLOW, "MPIJob", "mpiReplicaSpecs"),
    _training(_KUBEFLOW, "XGBoostJob", "xgbReplicaSpecs"),
    _training(_KUBEFLOW, "PaddleJob", "paddleReplicaSpecs"),
    _training(_KUBEFLOW, "JAXJob", "jaxReplicaSpecs"),
    _training(_KUBEFLOW, "MXJob", "mxReplicaSpecs"),
    CustomKind(group=_KUBEFLOW, kind="Notebook", templates=(TemplatePath(template="spec.template"),)),
    CustomKind(
        group="batch.volcano.sh",
        kind="Job",
        templates=(TemplatePath(template="spec.tasks.*.template", replicas="replicas"),),
    ),
    CustomKind(group=_KRUISE, kind="CloneSet", templates=_REPLICATED),
    CustomKind(group=_KRUISE, kind="StatefulSet", like="StatefulSet"),
    CustomKind(group=_KRUISE, kind="DaemonSet", like="DaemonSet"),
)


# Popular kinds of which it is known that they make no pods and change none.
WITHOUT_PODS: frozenset[GroupKind] = frozenset(
    (group, kind)
    for group, named in {
        "bitnami.com": ("SealedSecret",),
        "cert-manager.io": ("Certificate", "ClusterIssuer", "Issuer"),
        "external-secrets.io": ("ClusterSecretStore", "ExternalSecret", "SecretStore"),
        "monitoring.coreos.com": ("PodMonitor", "Probe", "PrometheusRule", "ServiceMonitor"),
        "networking.istio.io": ("DestinationRule", "ServiceEntry", "VirtualService"),
        "security.istio.io": ("AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"),
        "traefik.io": ("IngressRoute", "Middleware"),
    }.items()
    for kind in named
)


def table(further: Iterable[CustomKind] = ()) -> dict[GroupKind, CustomKind]:
    """The kinds by group and name; `further` ones replace shipped ones."""
    return {(one.group, one.kind): one for one in (*SHIPPED, *further)}


def configured(named: GroupKind, known: Mapping[GroupKind, CustomKind]) -> CustomKind | None:
    """The kind if the configuration describes it; None if it is a shipped one or not known."""
    found = known.get(named)
    return None if found is None or found in SHIPPED else found


def templates_of(kind: CustomKind, content: Mapping[str, Any]) -> Iterator[FoundTemplate]:
    """Every template of the object with the number of its pods."""
    for path, place, ancestors, part in _found(kind, content):
        yield FoundTemplate(place, ancestors[-1], _n_pods(path, ancestors[:-1]), part)


def miscounted(kind: CustomKind, content: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Fields from which the number of pods is computed and that hold no such number: the path and the value."""
    found = {}
    for path, place, ancestors, _ in _found(kind, content):
        for relative in (path.replicas, path.at_least, path.at_most, path.factor):
            value = _value(relative, ancestors[:-1]) if relative else None
            if value is not None and not _is_count(value):
                found[_located(relative, place)] = value
    yield from found.items()


def _found(kind: CustomKind, content: Mapping[str, Any]) -> Iterator[tuple[TemplatePath, str, Sequence[Any], str]]:
    for path in kind.templates or _REPLICATED:
        found = list(_walk(path.template, content))
        if not found and path.else_template:
            found = list(_walk(path.else_template, content))
        for place, ancestors, part in found:
            yield path, place, ancestors, part


def is_suspended(kind: CustomKind, content: Mapping[str, Any]) -> bool:
    """Whether the object asks for no pods until it is resumed."""
    return bool(kind.suspended) and any(values[-1] is True for _, values, _ in _walk(kind.suspended, content))


def makes_the_same(kind: CustomKind, one: CustomObject, other: object) -> bool:
    """Whether two objects of the kind make as many pods of the same templates; false if the other cannot be read."""
    if not isinstance(other, CustomObject):
        return False
    if kind.like:
        return has_the_same_spec(one, other)
    if is_suspended(kind, one.content) != is_suspended(kind, other.content):
        return False
    return list(templates_of(kind, one.content)) == list(templates_of(kind, other.content))


def has_the_same_spec(one: CustomObject, other: object) -> bool:
    """Whether the other object is known and asks for the same."""
    return isinstance(other, CustomObject) and bool(one.content.get("spec") == other.content.get("spec"))


def has_pod_template(content: object) -> bool:
    """Whether containers with images are described anywhere in it."""
    waiting, n_visited = [content], 0
    while waiting and n_visited < _MAX_VISITED:
        value = waiting.pop()
        n_visited += 1
        if isinstance(value, Mapping):
            if any(_has_image(one) for name in _LISTS_OF_CONTAINERS for one in _items(value.get(name))):
                return True
            if _has_image(value.get("container")):
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return bool(waiting)  # what is too large to look through may have one


def _has_image(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("image"), str)


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _walk(path: str, content: Any) -> Iterator[tuple[str, Sequence[Any], str]]:
    """For each match: its place, the values on the way to it and itself, and what `*` stands for."""
    found: list[tuple[str, list[Any], str]] = [("", [content], "")]
    for step in path.split("."):
        found = [one for place, values, part in found for one in _step(step, place, values, part)]
    return iter([(place, values, part) for place, values, part in found if values[-1] is not None])


def _step(step: str, place: str, values: list[Any], part: str) -> Iterator[tuple[str, list[Any], str]]:
    here = values[-1]
    if step != ANY:
        inner = here.get(step) if isinstance(here, Mapping) else None
        if inner is not None:
            yield f"{place}.{step}" if place else step, [*values, inner], part
    elif isinstance(here, Mapping):
        for key, inner in here.items():
            yield f"{place}.{key}", [*values, inner], str(key)
    else:
        for position, inner in enumerate(_items(here)):
            named = inner.get("name") or inner.get("groupName") if isinstance(inner, Mapping) else None
            yield f"{place}[{position}]", [*values, inner], str(named or position)


def _n_pods(path: TemplatePath, ancestors: Sequence[Any]) -> int:
    n_pods = _number(path.replicas, ancestors)
    n_pods = path.default if n_pods is None else n_pods
    least, most = _number(path.at_least, ancestors), _number(path.at_most, ancestors)
    n_pods = max(n_pods, n_pods if least is None else least)
    n_pods = min(n_pods, n_pods if most is None else most)
    factor = _number(path.factor, ancestors)
    return max(0, n_pods - path.minus) * (1 if factor is None else factor)


def _number(path: str, ancestors: Sequence[Any]) -> int | None:
    """The number at a path relative to the last of the values; None if there is none."""
    value = _value(path, ancestors) if path else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _value(path: str, ancestors: Sequence[Any]) -> Any:
    n_up, names = _steps(path)
    ancestors = ancestors[: len(ancestors) - n_up]
    value = ancestors[-1] if ancestors else None
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _located(path: str, place: str) -> str:
    """The path of a number from the root, for one that is relative to the parent of the template at a place."""
    n_up, names = _steps(path)
    for _ in range(n_up + 1):
        place = place[: place.rindex("[")] if place.endswith("]") else place.rpartition(".")[0]
    return ".".join(filter(None, (place, *names)))


def _steps(path: str) -> tuple[int, list[str]]:
    """How many values to go up, and the fields to go down from there."""
    steps = path.split("/")
    n_up = sum(step == UP for step in steps)
    return n_up, [name for part in steps[n_up:] for name in part.split(".")]
