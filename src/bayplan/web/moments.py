"""
The state at one moment, and the answers of the page about it.

A moment never changes: when the state does, the page has another one. One thread asks; what a change is applied on is
read again from memory, and the last few are kept, since a page asks about the same change many times.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import explained_pictures, fleet_pictures, pictures
from bayplan.library.arguments import Given, encoded
from bayplan.library.cluster import Cluster
from bayplan.library.fleet import Fleet
from bayplan.library.inputs import Scope, Supposed
from bayplan.library.reading import Reading
from bayplan.reading.cluster import LoadedCluster
from bayplan.web.questions import ExplainQuestion, FixQuestion, PlaceQuestion, ScaleQuestion, WhatIf
from bayplan.writing import tables, versioned

MAX_CHANGES_KEPT = 2
CLUSTER_STATE = "ClusterState"
FLEET_STATE = "FleetState"
PLACED_DIFFERENCE = "PlacedDifference"
EXAMINED_WORKLOAD = "ExaminedWorkload"
FIXED_MANIFESTS = "FixedManifests"
SCALED_BINDING = "ScaledBinding"
VIOLATED_RULES = "ViolatedRules"


class Moment:
    """Everything the page can know of one state; `revision` tells moments apart."""

    def __init__(self, reading: Reading, revision: int, source: Mapping[str, Any]) -> None:
        self.revision = revision
        self._reading = reading
        self._changed: collections.OrderedDict[tuple[bytes, ...], Reading] = collections.OrderedDict()
        with reading.asked():
            loaded = reading.loaded()
            if isinstance(loaded, LoadedCluster):
                self.is_fleet = False
                self._baseline = pictures.baseline_of(loaded)
                content = pictures.state_of(reading, loaded)
            else:
                self.is_fleet = True
                content = fleet_pictures.state_of(reading, loaded)
        noun, several = ("cluster", "clusters") if self.is_fleet else ("node", "nodes")
        n_targets, n_workloads = len(content[several]), pictures.n_workloads(content)
        self.title = f"{tables.counted(n_targets, noun)} and {tables.counted(n_workloads, 'workload')}"
        content = {"revision": revision, **source, **content}
        document = (
            versioned.document(FLEET_STATE, content) if self.is_fleet else versioned.document(CLUSTER_STATE, content)
        )
        self.state = versioned.json_line(document)

    def place(self, asked: PlaceQuestion) -> bytes:
        reading, supposed = self._after(asked.what_if)
        if self.is_fleet:
            found = fleet_pictures.placed(Fleet(reading, Scope(), supposed))
        else:
            found = pictures.placed(reading, supposed, self._baseline)
        return versioned.json_line(versioned.document(PLACED_DIFFERENCE, {"revision": self.revision, **found}))

    def explain(self, asked: ExplainQuestion) -> bytes:
        reading, supposed = self._after(asked.what_if)
        if self.is_fleet:
            found = fleet_pictures.explained(Fleet(reading, Scope(), supposed), asked.namespace, asked.name)
        else:
            found = explained_pictures.explained(reading, supposed, asked.namespace, asked.name)
        return versioned.json_line(versioned.document(EXAMINED_WORKLOAD, {"revision": self.revision, **found}))

    def fix(self, asked: FixQuestion) -> bytes:
        reading, supposed = self._after(asked.what_if)
        scope = Scope(namespace=asked.namespace or None)
        if self.is_fleet:
            explained = Fleet(reading, scope, supposed).explain(f"resourcebinding/{asked.name}")
        else:
            explained = Cluster(reading, scope, supposed).explain(f"pod/{asked.name}")
        fixed = explained.apply_fix(asked.fix)
        content = {"revision": self.revision, "manifests": fixed.manifests, "deleted": fixed.deleted}
        return versioned.json_line(versioned.document(FIXED_MANIFESTS, content))

    def scale(self, asked: ScaleQuestion) -> bytes:
        if not self.is_fleet:
            raise ArgumentError("replicas are scaled in fleets: this is a cluster of nodes")
        reading, supposed = self._after(asked.what_if)
        fleet = Fleet(reading, Scope(namespace=asked.namespace or None), supposed)
        found = fleet_pictures.scaled(fleet, asked.namespace, asked.name, asked.replicas)
        return versioned.json_line(versioned.document(SCALED_BINDING, {"revision": self.revision, **found}))

    def violations(self) -> bytes:
        """The violated rules; the page draws them."""
        state = Fleet(self._reading) if self.is_fleet else Cluster(self._reading)
        found = state.violations()
        rules = [
            {
                "owner": one.owner,
                "target": one.target,
                "rule": one.rule,
                "term": one.term,
                "topologyKey": one.topology_key,
                "domain": one.domain,
                "peers": list(one.peers),
                "evicted": dict(one.evicted),
                "spared": dict(one.spared),
            }
            for one in found.rules
        ]
        content = {"revision": self.revision, "rules": rules, "exact": found.exact, "summary": list(found.summary)}
        return versioned.json_line(versioned.document(VIOLATED_RULES, content))

    def _after(self, what_if: WhatIf) -> tuple[Reading, Supposed]:
        """The state with the change of a what-if applied, and what is supposed to happen to it."""
        if self.is_fleet and (what_if.cordon or what_if.add_node_like):
            raise ArgumentError("nodes are cordoned and added in clusters: this is a fleet")
        if not self.is_fleet and (what_if.recover or what_if.taint):
            raise ArgumentError("clusters are tainted and recover in fleets: this is a cluster of nodes")
        supposed = Supposed(
            lose=tuple(what_if.lose),
            drain=tuple(what_if.drain),
            cordon=tuple(what_if.cordon),
            add_node=tuple(f"like={one}" for one in what_if.add_node_like),
            taint=tuple(what_if.taint),
            recover=tuple(what_if.recover),
        )
        change = tuple(one.encode() if isinstance(one, str) else encoded(one) for one in what_if.apply)
        return (self._with(change) if change else self._reading), supposed

    def _with(self, change: tuple[bytes, ...]) -> Reading:
        found = self._changed.get(change)
        if found is None:
            spec = self._reading.spec
            applied = msgspec.structs.replace(
                spec,
                # What ran alone is what the change is applied on.
                state=spec.state + spec.change if not spec.has_state else spec.state,
                change=Given(lists=change) if not spec.has_state else spec.change + Given(lists=change),
                state_namespace=spec.state_namespace or spec.namespace,
            )
            found = Reading(applied, self._reading.materials.about(applied))
        self._changed[change] = found
        self._changed.move_to_end(change)
        while len(self._changed) > MAX_CHANGES_KEPT:
            self._changed.popitem(last=False)
        return found
