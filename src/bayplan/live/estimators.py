"""
Asks the accurate estimators of clusters (karmada-scheduler-estimator) how many more replicas fit, over gRPC.

Each cluster has its own time limit. One that does not answer, or answers nonsense, is estimated by what it reports, as
are clusters without an estimator, and is not asked for a while; the others count all the same. Answers are kept by
class of request. Needs the packages of the extra `estimator`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from bayplan import schedule_binding
from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.live import estimator_messages
from bayplan.live.assembly import EstimatorSettings
from bayplan.live.fleet_metrics import FleetMetrics
from bayplan.model.targets import ReplicaDemand
from bayplan.model.workloads import Workload
from bayplan.watching.fleet_capacity import FleetCapacity

PAUSE_SECONDS = 30.0  # before a cluster is asked again that did not answer
MAX_REQUESTS = 200  # in flight
MAX_ANSWER_BYTES = 4096
MAX_LOGGED_CHARACTERS = 200
UNKNOWN = -1
DOWN = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED)
ANSWERED, TIMED_OUT, FAILED = "answered", "timed_out", "failed"
log = logging.getLogger("bayplan.estimators")


class Estimators:
    """The connections to the estimators of all clusters. What they answer is put into `capacity`."""

    def __init__(
        self,
        settings: EstimatorSettings,
        engine: FleetEngine,
        capacity: FleetCapacity,
        metrics: FleetMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._settings, self._engine, self._capacity = settings, engine, capacity
        self._metrics, self._clock = metrics, clock
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._not_before: dict[str, float] = {}  # of clusters that did not answer
        self._asking: dict[ReplicaDemand, asyncio.Future[None]] = {}
        self._limit = asyncio.Semaphore(MAX_REQUESTS)
        self._credentials: grpc.ChannelCredentials | None = None

    async def run(self) -> None:
        """Close the connections when cancelled."""
        try:
            await asyncio.Event().wait()
        finally:
            channels, self._channels = list(self._channels.values()), {}
            for channel in channels:
                await channel.close(None)

    def to_ask(self, workload: Workload) -> list[str]:
        """The clusters of which an answer is needed before the workload is scheduled."""
        binding = workload.binding
        assert binding is not None
        demand = binding.demand
        if demand is None or not demand.claim or not binding.replicas or len(binding.components) > 1:
            return []
        now = self._clock()
        names = schedule_binding.clusters_in_question(workload, self._engine)
        up = [name for name in names if self._not_before.get(name, now) <= now]
        return self._capacity.estimates.to_ask(demand, up, now)

    async def ask(self, workload: Workload, names: list[str]) -> None:
        """Ask the estimators of these clusters and let their answers count."""
        assert workload.binding is not None
        demand = workload.binding.demand
        assert demand is not None
        while (running := self._asking.get(demand)) is not None:  # for another workload of this class
            await asyncio.wait([running])
        missing = self._capacity.estimates.to_ask(demand, names, self._clock())
        if not missing:
            return
        task = self._asking[demand] = asyncio.ensure_future(self._ask_all(demand, missing))
        try:
            await task
        finally:
            del self._asking[demand]

    async def _ask_all(self, demand: ReplicaDemand, names: list[str]) -> None:
        found = await asyncio.gather(*[self._answer(name, demand) for name in names])
        self._capacity.put_estimates(demand, dict(zip(names, found, strict=True)))
        self._forget_lost_clusters()

    async def _answer(self, name: str, demand: ReplicaDemand) -> int:
        """How many more replicas fit, -1 if it is not known."""
        result, why, is_down = ANSWERED, "", False
        try:
            asked = estimator_messages.request(name, demand.claim)
            async with self._limit:
                found = estimator_messages.replicas(await self._call(name)(asked, timeout=self._settings.timeout))
        except grpc.aio.AioRpcError as error:
            result = TIMED_OUT if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else FAILED
            # Other errors may be those of one question, and tenants write what is asked: the next class is asked again.
            is_down = error.code() in DOWN
            why = f"{error.code().name}: {error.details()}"
        except Exception as error:  # noqa: BLE001 (whatever a tenant has written, the other bindings are scheduled)
            result, why = FAILED, f"{type(error).__name__}: {error}"
        self._metrics.estimator_requests.labels(result).inc()
        self._note(name, why, is_down=is_down)
        return UNKNOWN if why else found

    def _note(self, name: str, why: str, *, is_down: bool) -> None:
        """Log what is new, and leave a cluster that does not answer alone for a while."""
        was_down = name in self._not_before
        if why and not was_down:
            log.warning("no estimate", extra={"cluster": name, "error": why[:MAX_LOGGED_CHARACTERS]})
        if is_down:
            self._not_before[name] = self._clock() + PAUSE_SECONDS
        elif was_down:
            del self._not_before[name]
            log.info("estimator answers again", extra={"cluster": name})

    def _call(self, name: str) -> Any:
        channel = self._channels.get(name)
        if channel is None:
            if self._credentials is None:
                self._credentials = _credentials(self._settings)
            address = self._settings.address.replace("{cluster}", name)
            channel = self._channels[name] = grpc.aio.secure_channel(address, self._credentials, _options(address))
        return channel.unary_unary(estimator_messages.METHOD)

    def _forget_lost_clusters(self) -> None:
        known = self._engine.index.slots.by_name
        for name in [name for name in self._channels if name not in known]:
            channel = self._channels.pop(name)
            self._not_before.pop(name, None)
            closing = asyncio.ensure_future(channel.close(None))
            closing.add_done_callback(_swallow)


def _swallow(task: asyncio.Task[None]) -> None:
    with contextlib.suppress(BaseException):
        task.result()


def _options(address: str) -> list[tuple[str, Any]]:
    """The options of a connection. A Unix socket has no host name: its server's certificate is for localhost."""
    name = [("grpc.ssl_target_name_override", "localhost")] if address.startswith("unix:") else []
    return [("grpc.max_receive_message_length", MAX_ANSWER_BYTES), ("grpc.enable_retries", 0), *name]


def _credentials(settings: EstimatorSettings) -> grpc.ChannelCredentials:
    """The authority of the estimators' certificates, and the client certificate if there is one."""
    authority = pathlib.Path(settings.authority).read_bytes()
    key = pathlib.Path(settings.key).read_bytes() if settings.key else None
    chain = pathlib.Path(settings.certificate).read_bytes() if settings.certificate else None
    return grpc.ssl_channel_credentials(authority, key, chain)
