"""
What accurate estimators have answered: how many more replicas of a class of requests fit on a cluster.

A class is everything that an estimator is asked with. An answer is used until it is asked for again, until the cluster
reports other resources, or until it is too old; what is placed meanwhile is subtracted from it. How estimators are
asked is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bayplan.caching import BoundedCache
from bayplan.model.targets import ReplicaDemand

FRESH_SECONDS = 10.0  # an answer is not asked for again; clusters report every ten seconds too
MAX_AGE_SECONDS = 60.0  # an older answer counts no more, so that a binding that it keeps waiting is tried again
MAX_CLASSES = 512  # tenants choose what they request; the least recently asked are dropped first


class Estimate(msgspec.Struct):
    """`replicas` is -1 if the estimator was asked and said nothing that can be used."""

    replicas: int
    at: float


class Estimates:
    """Answers by class and cluster."""

    def __init__(self) -> None:
        self._classes: BoundedCache[ReplicaDemand, dict[str, Estimate]] = BoundedCache()

    def put(self, demand: ReplicaDemand, answers: Mapping[str, int], now: float) -> list[str]:
        """Keep answers; returns the clusters of which another number counts now."""
        known = self._classes.pop(demand, {})
        changed = [name for name, n in answers.items() if name not in known or known[name].replicas != n]
        known.update({name: Estimate(n, now) for name, n in answers.items()})
        for dropped in self._classes.put(demand, known, MAX_CLASSES):
            changed += dropped
        return list(dict.fromkeys(changed))

    def to_ask(self, demand: ReplicaDemand, names: Iterable[str], now: float) -> list[str]:
        """The clusters of which there is no fresh answer."""
        known = self._classes.get(demand) or {}
        return [name for name in names if name not in known or now - known[name].at >= FRESH_SECONDS]

    def of(self, cluster: str) -> tuple[tuple[ReplicaDemand, int], ...]:
        """What counts on a cluster, by class."""
        found = self._classes.items()
        answers = [(demand, known[cluster].replicas) for demand, known in found if cluster in known]
        return tuple([(demand, n) for demand, n in answers if n >= 0])

    def subtract(self, demand: ReplicaDemand, added: Mapping[str, int]) -> list[str]:
        """Count replicas of this class that were placed; returns the clusters of which another number counts now."""
        known = self._classes.get(demand) or {}
        changed = [name for name, n in added.items() if n > 0 and name in known and known[name].replicas > 0]
        for name in changed:
            known[name].replicas = max(0, known[name].replicas - added[name])
        return changed

    def drop_cluster(self, name: str) -> None:
        for known in self._classes.values():
            known.pop(name, None)

    def oldest(self) -> float | None:
        """When the oldest answer was given."""
        return min((one.at for known in self._classes.values() for one in known.values()), default=None)

    def drop_old(self, now: float) -> set[str]:
        """Drop what is too old, and return the clusters of which something was dropped."""
        changed = set[str]()
        for known in self._classes.values():
            old = [name for name, estimate in known.items() if now - estimate.at >= MAX_AGE_SECONDS]
            for name in old:
                del known[name]
            changed.update(old)
        return changed
