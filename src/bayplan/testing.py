"""
Assertions for the tests of a repository's own manifests; a failed one explains itself.

    from bayplan.testing import assert_survives

    def test_web_survives_the_loss_of_any_zone():
        assert_survives("cluster.json", "web.yaml", loss_of="topology.kubernetes.io/zone", workload="deploy/web")

What runs is a cluster, or the path of a dump. Nothing here needs pytest; `bayplan.pytest_plugin` has a fixture for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from bayplan.errors import ArgumentError
from bayplan.library import arguments, workload_names
from bayplan.library.cluster import Cluster
from bayplan.library.plan import Plan, PlannedPod
from bayplan.library.validation import Validation, validate

if TYPE_CHECKING:
    from bayplan.library.state import Objects

__all__ = ["assert_fits", "assert_survives", "assert_valid"]

MAX_EXPLAINED = 3  # pods of a failure message
State: TypeAlias = "Cluster | str | os.PathLike[str]"


def assert_valid(*what: Objects, recursive: bool = False, **options: Any) -> Validation:
    """Assert that an API server would admit these manifests; the options are those of `bayplan.validate`."""
    __tracebackhide__ = True
    found = validate(*what, recursive=recursive, **options)
    if found.ok and not found._report.n_objects:  # noqa: SLF001
        raise ArgumentError(f"nothing was checked, so it would always be valid: {'; '.join(found.summary)}")
    if not found.ok:
        raise AssertionError("\n".join(map(str, found.errors)) or str(found))
    return found


def assert_fits(state: State, *changes: Objects, workload: str = "", strict: bool = False) -> Plan:
    """
    Assert that everything of a change is placed on what runs, and that its rollouts complete.

    With a `workload`, as KIND/NAME, its pods alone are judged. Without one, if `strict`, what cannot be judged is a no.
    """
    __tracebackhide__ = True
    cluster = _applied(state, changes)
    plan = cluster.place()
    if not plan.pods and not plan.rollouts and not plan.passes(strict=True):
        lines = "\n".join((*plan.summary, *plan.notes))
        raise ArgumentError(f"nothing of the change can be judged, so it would always fit:\n{lines}")
    if workload:
        unplaced = _unplaced(plan, _names(workload, cluster))
        passes = not unplaced
    else:
        unplaced, passes = [pod for pod in plan if not pod.placed and pod.of_change], plan.passes(strict=strict)
    if not passes:
        stuck = [f"{name}: {one.result}: {one.why}" for name, one in plan.rollouts.items() if not one.complete]
        raise AssertionError(_message(f"{workload or 'the change'} does not fit", unplaced, stuck or plan.summary))
    return plan


def assert_survives(state: State, *changes: Objects, loss_of: str, workload: str = "") -> Mapping[str, Plan]:
    """
    Assert that what a loss displaces fits elsewhere, whichever domain is lost.

    `loss_of` is the key of a node label, each of whose values is lost, one at a time. Or it is one loss: `node/NAME` or
    `KEY=VALUE`. With a `workload`, as KIND/NAME, all of its pods must have a node then; otherwise all pods that have
    one without the loss. Returns the plan of each loss.
    """
    __tracebackhide__ = True
    arguments.check_is("loss_of", loss_of, str)
    cluster = _applied(state, changes)
    names = _names(workload, cluster) if workload else None
    pending = set[str]() if names is not None else _pending(cluster)
    plans: dict[str, Plan] = {}
    failures = []
    for loss in _losses(cluster, loss_of):
        plan = plans[loss] = cluster.lose(loss).place()
        unplaced = [pod for pod in _unplaced(plan, names) if f"{pod.namespace}/{pod.name}" not in pending]
        if unplaced:
            failures.append(_message(f"{workload or 'what runs'} does not survive the loss of {loss}", unplaced, ()))
    if failures:
        raise AssertionError("\n\n".join(failures))
    return plans


def _applied(state: State, changes: Sequence[Objects]) -> Cluster:
    cluster = state if isinstance(state, Cluster) else Cluster.from_files(state)
    return cluster.apply(*changes) if changes else cluster


def _names(workload: str, cluster: Cluster) -> workload_names.WorkloadName:
    """The workload; an error if it has no pods, because an assertion about nothing would always hold."""
    arguments.check_is("workload", workload, str)
    pods = [pod for pod, _ in cluster._pods()]  # noqa: SLF001
    asked = workload_names.of_pods(workload, pods)
    namespaces = {pod.namespace for pod in pods if asked.matches_pod(pod)}
    if not namespaces:
        raise ArgumentError(f"no pod of {workload} is in the input", argument="workload")
    if len(namespaces) > 1:
        listed = ", ".join(sorted(namespaces))
        message = f"{workload} is in several namespaces ({listed}): choose one with Cluster.only(namespace=…)"
        raise ArgumentError(message, argument="workload")
    return asked


def _pending(cluster: Cluster) -> set[str]:
    """The pods that have no node without a loss; an error if these are all, or if there are none."""
    placed = {key: pod.placed for key, pod in cluster.place().pods.items()}
    if not any(placed.values()) and not any(cluster.pods.values()):
        raise ArgumentError("nothing has a node: no loss could show anything", argument="assert_survives")
    return {key for key, is_placed in placed.items() if not is_placed}


def _unplaced(plan: Plan, asked: workload_names.WorkloadName | None) -> list[PlannedPod]:
    return [
        pod
        for pod in plan
        if not pod.placed and (asked is None or asked.matches_pod(pod._placement.workload))  # noqa: SLF001
    ]


def _losses(cluster: Cluster, loss_of: str) -> list[str]:
    if "=" in loss_of or loss_of.startswith("node/"):
        return [loss_of]
    values = {labels[loss_of] for labels in cluster.nodes.values() if loss_of in labels}
    if not values:
        raise ArgumentError(f"no node has the label {loss_of}", argument="loss_of")
    return [f"{loss_of}={value}" for value in sorted(values)]


def _message(headline: str, unplaced: Sequence[PlannedPod], lines: Iterable[str]) -> str:
    """The headline, and an explanation for the first pods of each message."""
    by_message: dict[str, list[PlannedPod]] = {}
    for pod in unplaced:
        by_message.setdefault(pod.message, []).append(pod)
    parts = [f"{headline}:", *lines]
    for pods in list(by_message.values())[:MAX_EXPLAINED]:
        more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
        parts += ["", f"{pods[0].namespace}/{pods[0].name}{more}:", str(pods[0].explain())]
    if len(by_message) > MAX_EXPLAINED:
        parts += ["", f"and {len(by_message) - MAX_EXPLAINED} more reasons"]
    return "\n".join(parts)
