"""
`GET /explain?pod=NAMESPACE/NAME`: why a pod is pending, or would be placed where it is placed.

The response is the document of `bayplan explain -o json`, in which pods of other namespaces are named only if that is
configured. It is computed in a worker thread on a follower of the index,
so an explanation of many nodes neither holds the event loop nor waits for it. As in a scheduling attempt, nominated
pods that the pod must leave capacity for are counted on their nodes, and a pod with scheduling gates is not placed. The
follower is created by the first request and released after some minutes without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
from aiohttp import web

from bayplan.engine.engine import Engine
from bayplan.explaining import explanation
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.followers import Follower
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import SpreadContext
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload
from bayplan.placing import evicting, recreating
from bayplan.queueing import nominations
from bayplan.rules.placeable import GATED
from bayplan.rules.profiles import RulesByScheduler
from bayplan.writing import explanations, versioned

PATH = "/explain"
MAX_IDLE_SECONDS = 300.0

FindPod = Callable[[str, str], Awaitable[Workload | None]]
Nominated = Sequence[tuple[Workload, str]]


class ExplainEndpoint:
    """
    Answers one request at a time.

    `find_pod` returns a pod by namespace and name; None if it does not exist. One that has a node is explained as its
    controller would recreate it, with the `spread_context` of that moment. `competing_with` returns the nominated pods
    that a pod must leave capacity for, with their nodes. `budgets` limit which pods a fix may move. `names` says how
    pods of other namespaces are named.
    """

    def __init__(
        self,
        index: PlacementIndex,
        profiles: RulesByScheduler,
        find_pod: FindPod,
        spread_context: SpreadContext,
        competing_with: Callable[[Workload], Nominated],
        *,
        names: PeerNames,
        budgets: Iterable[DisruptionBudget] = (),
    ) -> None:
        self._index, self._profiles = index, profiles
        self._find_pod, self._spread_context, self._competing_with = find_pod, spread_context, competing_with
        self._names, self._budgets = names, budgets
        self._follower: Follower | None = None
        self._engines: dict[str, Engine] = {}  # over the copy
        self._one_at_a_time = asyncio.Lock()
        self._release: asyncio.TimerHandle | None = None

    @property
    def holds_copy(self) -> bool:
        """Whether a copy of the index is in memory."""
        return self._follower is not None

    async def respond(self, request: web.Request) -> web.Response:
        namespace, _, name = request.query.get("pod", "").partition("/")
        if not (namespace and name):
            return web.Response(text=f"expected {PATH}?pod=NAMESPACE/NAME\n", status=400)
        workload = await self._find_pod(namespace, name)
        if workload is None:
            return web.Response(text=f"there is no pod {namespace}/{name}\n", status=404)
        placed = self._index.records.get(workload.key)
        if placed is not None:
            workload = recreating.as_recreated(placed, self._index, self._spread_context)
        async with self._one_at_a_time:
            if self._release is not None:
                self._release.cancel()
            try:
                nominated, budgets = self._competing_with(workload), list(self._budgets)
                text = await asyncio.to_thread(self._explain, workload, nominated, budgets)
            except BaseException:
                self._follower = None  # it may be left in the middle of a change
                raise
            self._release = asyncio.get_running_loop().call_later(MAX_IDLE_SECONDS, self.release)
        return web.Response(text=text, content_type="application/json")

    def release(self) -> None:
        """Release the copy of the index; the next request creates another one."""
        self._follower = None
        self._engines.clear()

    def _explain(self, workload: Workload, nominated: Nominated, budgets: Iterable[DisruptionBudget]) -> str:
        if self._follower is None:
            self._follower = Follower(self._index)
        index = self._follower.catch_up()
        engine = self._engine_of(workload, index)
        placed = index.records.get(workload.key)
        with nominations.with_nominated_pods(nominated, index):
            policy = evicting.policy(budgets, index, self._spread_context)
            found = explanation.explain(workload, engine, policy=policy)
            found = explanation.as_seen(found, workload.namespace, self._names, index.records.__contains__)
        if workload.gates:
            message = f"{GATED.text}: {', '.join(workload.gates)}"
            found = msgspec.structs.replace(found, target="", message=message)
        return versioned.as_json(explanations.document(found, current=placed.shares[0][0] if placed else ""))

    def _engine_of(self, workload: Workload, index: PlacementIndex) -> Engine:
        """The engine of the scheduler that the pod names, else of the first one, over this copy of the index."""
        name = workload.scheduler_name if workload.scheduler_name in self._profiles else next(iter(self._profiles))
        engine = self._engines.get(name)
        if engine is None or engine.index is not index:
            engine = self._engines[name] = Engine(index, self._profiles[name])
        return engine
