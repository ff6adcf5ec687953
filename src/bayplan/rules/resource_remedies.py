"""
What would lift the rejection of a node by NodeResourcesFit: smaller requests, or pods that leave the node.

A node that could not hold the pod even without every pod that may go has no such remedy: only a larger node helps.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import msgspec

from bayplan.indexing.capacity import PODS
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model import quantities
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.rules.remedies import (
    MAX_MOVED_PODS,
    Alternatives,
    Manifest,
    Remedy,
    change_needs,
    child,
    may_be_moved,
    move_pods,
    on_workload,
)

MAX_MOVES = 4  # choices of pods to move from one node
MAX_CANDIDATES = 12  # pods that are combined
_MEBIBYTE = 2**20
_LISTS = ("containers", "initContainers")
_UNLIMITED = ("cpu", "memory", "ephemeral-storage")  # whose limit may be higher than the request


def alternatives(
    requested: Mapping[str, int], short: list[str], workload: Workload, slot: int, index: PlacementIndex
) -> list[Alternatives]:
    """One list for each resource that is short; moving pods ends all shortages at once, so each list has it."""
    capacity = index.capacity
    free = {one: int(capacity.allocatable[capacity.row(one), slot]) - capacity.requested_of(one, slot) for one in short}
    moves = _moves({one: requested[one] - free[one] for one in short}, workload, slot, index)
    return [[*_request_less(one, requested[one], free[one]), *moves] for one in short]


def _request_less(resource: str, requested: int, free: int) -> Alternatives:
    if resource not in ("cpu", "memory", "ephemeral-storage") and resource.partition("/")[1] == "":
        return []  # a place for the pod, or huge pages, which come in sizes
    # A whole number of mebibytes can be read and written without rounding.
    left = free // _MEBIBYTE * _MEBIBYTE if resource in ("memory", "ephemeral-storage") else free
    if left <= 0:
        return []
    before, after = quantities.show(resource, requested), quantities.show(resource, left)

    def edit(workload: Workload, index: PlacementIndex) -> Workload:
        requests = workload.needs.requests
        amounts = tuple((r, left if r == resource else a) for r, a in requests.amounts)
        return change_needs(requests=msgspec.structs.replace(requests, amounts=amounts))(workload, index)

    def revise(pod: Manifest, original: Manifest) -> None:
        lower_requests(child(pod, "spec"), original.get("spec") or {}, resource, left)

    text = f"request {after} {resource} instead of {before}"
    return [Remedy(text, edit, revisions=on_workload(revise), family=f"request {resource}", size=requested - left)]


def _moves(missing: Mapping[str, int], workload: Workload, slot: int, index: PlacementIndex) -> Alternatives:
    """The fewest pods whose requests end the shortages: several choices, those first that free the least."""
    held: dict[WorkloadKey, dict[str, int]] = {}
    for key in index.workloads_on(slot):
        placed = index.records[key].workload
        if placed.terminating or may_be_moved(placed, workload):
            amounts = dict(placed.needs.requests.on_node(index.semantics.kubernetes_version).amounts)
            held[key] = {one: 1 if one == PODS else amounts.get(one, 0) for one in missing}

    def weight(key: WorkloadKey) -> Fraction:
        return sum((Fraction(held[key][one], missing[one]) for one in missing), Fraction())

    for size in range(1, MAX_MOVED_PODS + 1):
        largest = sorted((key for key in held if weight(key)), key=lambda key: (-weight(key), key))
        candidates = largest if size == 1 else largest[:MAX_CANDIDATES]
        enough = [
            keys
            for keys in itertools.combinations(candidates, size)
            if all(sum(held[key][one] for key in keys) >= missing[one] for one in missing)
        ]
        if enough:
            least = sorted(enough, key=lambda keys: (sum(map(weight, keys)), sorted(keys)))
            return [remedy for keys in least[:MAX_MOVES] for remedy in move_pods(sorted(keys), workload, index)]
    return []


def lower_requests(spec: Manifest, original: Manifest, resource: str, total: int) -> None:
    """
    Lower the requests of a pod so that they come to no more than a total, the largest ones first.

    The original has the overhead and the requests that the API server adds.
    """
    total -= _amount(original.get("overhead") or spec.get("overhead"), resource)
    containers, init_containers = (_requesting(name, spec, original, resource) for name in _LISTS)
    sidecars = [one for one in init_containers if one.written.get("restartPolicy") == "Always"]
    _lower([*containers, *sidecars], resource, total)
    running = 0  # sidecars before the init container
    for one in init_containers:
        if one in sidecars:
            running += one.amount
        else:
            _lower([one], resource, total - running)
    whole = _Requesting(spec, _requested(spec, original, resource))
    if whole.amount > total:
        _set(whole, resource, total)


class _Requesting(msgspec.Struct):
    """A container, or the pod as a whole, and how much of one resource it requests."""

    written: Manifest
    amount: int


def _requesting(name: str, spec: Manifest, original: Manifest, resource: str) -> list[_Requesting]:
    originals = {one.get("name"): one for one in original.get(name) or () if isinstance(one, dict)}
    return [
        _Requesting(one, _requested(one, originals.get(one.get("name"), {}), resource))
        for one in spec.get(name) or ()
        if isinstance(one, dict)
    ]


def _lower(containers: list[_Requesting], resource: str, total: int) -> None:
    excess = sum(one.amount for one in containers) - total
    for one in sorted(containers, key=lambda one: -one.amount):
        if excess <= 0:
            return
        less = min(one.amount, excess)
        _set(one, resource, one.amount - less)
        excess -= less


def _requested(container: Manifest, original: Manifest, resource: str) -> int:
    """What a container requests: if it does not say so, what the API server adds, or its limit."""
    for one in (container, original):
        resources = one.get("resources") or {}
        for amounts in (resources.get("requests") or {}, resources.get("limits") or {}):
            if resource in amounts:
                return _amount(amounts, resource)
    return 0


def _amount(written: Any, resource: str) -> int:
    return quantities.amount(resource, written[resource]) if written and resource in written else 0


def _set(one: _Requesting, resource: str, amount: int) -> None:
    one.amount = amount
    resources, text = child(one.written, "resources"), quantities.exact(resource, amount)
    child(resources, "requests")[resource] = text
    if resource not in _UNLIMITED and resource in (resources.get("limits") or {}):
        resources["limits"][resource] = text  # must be equal
