"""
`GET /explain?pod=NAMESPACE/NAME`, or `binding=`: why it is pending, or would be placed where it is placed.

The response is the document of `bayplan explain -o json`, in which workloads of other namespaces are named only if that
is configured. It is computed in a worker thread on a follower of the index, so an explanation of many nodes neither
holds the event loop nor waits for it. As in a scheduling attempt, nominated pods that a pod must leave capacity for are
counted on their nodes, and a pod with scheduling gates is not placed. The follower is created by the first request and
released after some minutes without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
from aiohttp import web

from bayplan.assigning.cluster_ranking import FleetEngine
from bayplan.engine.engine import Engine
from bayplan.explaining import explanation
from bayplan.explaining.explanation import Explanation
from bayplan.explaining.fixes import EvictionPolicy
from bayplan.explaining.peer_names import PeerNames
from bayplan.grouping import pending_groups, search, waiting
from bayplan.grouping.pending_groups import PendingGroup
from bayplan.grouping.problem import GroupProblem, Solved
from bayplan.indexing.followers import Follower
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.pods import SpreadContext
from bayplan.model.disruption_budgets import DisruptionBudget
from bayplan.model.workloads import Workload, WorkloadKey
from bayplan.placing import evicting, fleet_fixes, recreating
from bayplan.queueing import nominations
from bayplan.rules import fleet_profile
from bayplan.rules.placeable import GATED
from bayplan.rules.profiles import RulesByScheduler
from bayplan.writing import explanations, versioned

PATH = "/explain"
POD, BINDING = "pod", "binding"
MAX_IDLE_SECONDS = 300.0

Nominated = Sequence[tuple[Workload, str]]
FindPod = Callable[[str, str], Awaitable[Workload | None]]
FindBinding = Callable[[WorkloadKey], Workload | None]
Explain = Callable[[PlacementIndex], Explanation]  # on a copy of the index, in another thread


def by_parameter(endpoints: Sequence[ExplainEndpoint]) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Respond with the endpoint whose parameter a request has, else with the first."""

    async def respond(request: web.Request) -> web.Response:
        return await next((one for one in endpoints if one.kind in request.query), endpoints[0]).respond(request)

    return respond


class ExplainEndpoint:
    """Answers one request at a time about workloads of one kind, which is the name of the parameter."""

    kind = ""

    def __init__(self, index: PlacementIndex) -> None:
        self._index = index
        self._follower: Follower | None = None
        self._one_at_a_time = asyncio.Lock()
        self._release: asyncio.TimerHandle | None = None

    async def _find(self, namespace: str, name: str) -> Explain | None:
        """What explains a workload as it is now; None if it does not exist."""
        raise NotImplementedError

    @property
    def holds_copy(self) -> bool:
        """Whether a copy of the index is in memory."""
        return self._follower is not None

    async def respond(self, request: web.Request) -> web.Response:
        asked = request.query.get(self.kind, "")
        namespace, _, name = asked.rpartition("/")
        if not name or asked.startswith("/") or (self.kind == POD and not namespace):
            return web.Response(text=f"expected {PATH}?{self.kind}=NAMESPACE/NAME\n", status=400)
        explain = await self._find(namespace, name)
        if explain is None:
            return web.Response(text=f"there is no {self.kind} {asked}\n", status=404)
        async with self._one_at_a_time:
            if self._release is not None:
                self._release.cancel()
            try:
                text = await asyncio.to_thread(self._explain, explain)
            except BaseException:
                self._follower = None  # it may be left in the middle of a change
                raise
            self._release = asyncio.get_running_loop().call_later(MAX_IDLE_SECONDS, self.release)
        return web.Response(text=text, content_type="application/json")

    def release(self) -> None:
        """Release the copy of the index; the next request creates another one."""
        self._follower = None

    def _explain(self, explain: Explain) -> str:
        if self._follower is None:
            self._follower = Follower(self._index)
        index = self._follower.catch_up()
        found = explain(index)
        placed = index.records.get(found.workload)
        shares = placed.shares if placed else ()
        current = explanation.listed_clusters(shares) if self.kind == BINDING else "".join(name for name, _ in shares)
        return versioned.as_json(explanations.document(found, current=current))


class PodExplainEndpoint(ExplainEndpoint):
    """
    Explains pods. `find_pod` returns one by namespace and name; None if it does not exist.

    One that has a node is explained as its controller would recreate it, with the `spread_context` of that moment.
    `competing_with` returns the nominated pods that a pod must leave capacity for, with their nodes. `budgets` limit
    which pods a fix may move. `names` says how pods of other namespaces are named. `group_of` returns the group that a
    pending pod waits with.
    """

    kind = POD

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
        group_of: Callable[[Workload], PendingGroup | None] = lambda _pod: None,
    ) -> None:
        super().__init__(index)
        self._profiles = profiles
        self._find_pod, self._spread_context, self._competing_with = find_pod, spread_context, competing_with
        self._names, self._budgets, self._group_of = names, budgets, group_of
        self._engines: dict[str, Engine] = {}  # over the copy

    def release(self) -> None:
        super().release()
        self._engines.clear()

    async def _find(self, namespace: str, name: str) -> Explain | None:
        workload = await self._find_pod(namespace, name)
        if workload is None:
            return None
        placed = self._index.records.get(workload.key)
        if placed is not None:
            workload = recreating.as_recreated(placed, self._index, self._spread_context)
        nominated, budgets = self._competing_with(workload), list(self._budgets)
        group = None if placed is not None else self._group_of(workload)
        if group is not None:
            members = {pod.key for pod in group.pods}
            nominated = [one for one in nominated if one[0].key not in members]
        return lambda copy: self._explain_pod(workload, group, nominated, budgets, copy)

    def _explain_pod(
        self,
        workload: Workload,
        group: PendingGroup | None,
        nominated: Nominated,
        budgets: Iterable[DisruptionBudget],
        index: PlacementIndex,
    ) -> Explanation:
        engine = self._engine_of(workload, index)
        with nominations.with_nominated_pods(nominated, index):
            policy = evicting.policy(budgets, index, self._spread_context)
            if group is None:
                found = explanation.explain(workload, engine, policy=policy)
            else:
                found = self._explain_member(workload, group, engine, policy)
            found = explanation.as_seen(found, workload.namespace, self._names, index.records.__contains__)
        if workload.gates:
            message = f"{GATED.text}: {', '.join(workload.gates)}"
            found = msgspec.structs.replace(found, target="", message=message)
        return found

    def _explain_member(
        self, workload: Workload, group: PendingGroup, engine: Engine, policy: EvictionPolicy
    ) -> Explanation:
        """Why a pod waits with its group; where it would run, if the group fits by now."""
        problem = GroupProblem(
            pods=group.pods,
            groups=(group.to_place(),),
            index=engine.index,
            engine_of=lambda pod: self._engine_of(pod, engine.index),
        )
        wrong = group.problem or not group.pods or pending_groups.missing_key(group, engine.index)
        answer = None if wrong else search.solve(problem)
        if isinstance(answer, Solved) and workload.key in answer.plan.nodes:
            with engine.index.tentatively():
                for pod in group.pods:
                    if pod.key != workload.key and pod.key in answer.plan.nodes:
                        engine.index.add(pod, answer.plan.nodes[pod.key])
                found = explanation.explain(workload, engine, policy=policy)
            return msgspec.structs.replace(found, target=answer.plan.nodes[workload.key], message="")
        wait = waiting.why(group, problem, answer)
        return explanation.explain_member(workload.key, wait, engine, policy=policy)

    def _engine_of(self, workload: Workload, index: PlacementIndex) -> Engine:
        """The engine of the scheduler that the pod names, else of the first one, over this copy of the index."""
        name = workload.scheduler_name if workload.scheduler_name in self._profiles else next(iter(self._profiles))
        engine = self._engines.get(name)
        if engine is None or engine.index is not index:
            engine = self._engines[name] = Engine(index, self._profiles[name])
        return engine


class BindingExplainEndpoint(ExplainEndpoint):
    """
    Explains bindings; one that is cluster-scoped is named without a namespace.

    `find_binding` returns one by its key; None if it does not exist. `is_named` says of a namespace and a name in a
    text whether they are those of a workload; `names` says how those of other namespaces are named.
    """

    kind = BINDING

    def __init__(
        self,
        index: PlacementIndex,
        find_binding: FindBinding,
        is_named: Callable[[WorkloadKey], bool],
        names: PeerNames,
    ) -> None:
        super().__init__(index)
        self._find_binding, self._is_named, self._names = find_binding, is_named, names
        self._engine: FleetEngine | None = None  # over the copy

    def release(self) -> None:
        super().release()
        self._engine = None

    async def _find(self, namespace: str, name: str) -> Explain | None:
        workload = self._find_binding(WorkloadKey(f"{namespace}/{name}"))
        return None if workload is None else lambda copy: self._explain_binding(workload, copy)

    def _explain_binding(self, workload: Workload, index: PlacementIndex) -> Explanation:
        if self._engine is None or self._engine.index is not index:
            self._engine = FleetEngine(index, fleet_profile.fleet_rules())
        found = explanation.explain_binding(workload, self._engine)
        found = msgspec.structs.replace(found, fixes=fleet_fixes.find(workload, self._engine))
        return explanation.as_seen(found, workload.namespace, self._names, self._is_named)
