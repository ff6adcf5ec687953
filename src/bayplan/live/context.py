"""What the parts of one running scheduler share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from bayplan.engine.engine import Engine
from bayplan.explaining.peer_names import PeerNames
from bayplan.live.cluster_writer import ClusterWriter
from bayplan.live.events import EventRecorder
from bayplan.live.metrics import Metrics
from bayplan.watching.cluster_state import ClusterState

Engines = Mapping[str, Engine]  # by scheduler name


class SchedulerContext(msgspec.Struct, frozen=True):
    """
    The cluster, how to write to it and how to report; `clock` counts seconds, `wall` is the time of day.

    `names` says how events name pods of other namespaces.
    """

    state: ClusterState
    writer: ClusterWriter
    events: EventRecorder
    metrics: Metrics
    clock: Callable[[], float]
    wall: Callable[[], datetime]
    names: PeerNames = PeerNames()
