"""Faults while bindings are scheduled: none is lost, no newer write is overwritten and no hard rule is broken."""

import asyncio
import contextlib
import itertools

import aiohttp
import pytest

from live import bayplan_running, fleets
from live.admin import Admin, ApiError, wait_for
from live.fleet_rounds import recorded, rounds
from live.fleet_user import is_observed, scheduled, shares_of
from live.karmada_control_plane import BINDINGS

PATIENCE = 90
N_CLUSTERS, N_PAIRS = 6, 30
ELECTION = (
    "--leader-elect-lease-duration",
    "12s",
    "--leader-elect-renew-deadline",
    "9s",
    "--leader-elect-retry-period",
    "1s",
)
SINGLE = ("--fleet", "--no-leader-elect")
PLACEMENT = {
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Aggregated",
    },
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}],
    "workloadAffinity": {"antiAffinity": {"groupByLabelKey": "pair"}},
}


def pair(number):
    """Two bindings that must not share a cluster."""
    for side in ("a", "b"):
        yield fleets.binding(
            f"w{number}-{side}",
            "default",
            {},
            PLACEMENT,
            replicas=4,
            schedulerName="bayplan",
            workloadAffinityGroups={"antiAffinityGroup": f"pair=p{number}"},
        )


@pytest.fixture
async def busy(karmada_server):
    """A client of a server with clusters, on which pairs of bindings keep being created."""
    async with Admin.of(karmada_server) as admin:
        await admin.create_all([fleets.cluster(f"c{number}") for number in range(N_CLUSTERS)])
        yield admin


async def create_pairs(admin, *, pause=0.03):
    """Create the bindings one pair after another, whatever happens to the server."""
    for number in range(N_PAIRS):
        for content in pair(number):
            while True:
                try:
                    await admin.create(content)
                except ApiError as error:
                    if error.status == 409:
                        break
                    await asyncio.sleep(0.2)
                except (OSError, aiohttp.ClientError):
                    await asyncio.sleep(0.2)
                else:
                    break
        await asyncio.sleep(pause)


async def until_all_placed(admin):
    """Wait until every binding is placed and observed, and return them."""

    async def placed():
        found = await admin.items(BINDINGS)
        done = [one for one in found if _is_settled(one)]
        return found if len(done) == len(found) == 2 * N_PAIRS else None

    try:
        return await wait_for(placed, PATIENCE)
    except AssertionError as failure:
        waiting = [one for one in await admin.items(BINDINGS) if not _is_settled(one)]
        failure.add_note(f"{len(waiting)} are not: {waiting[:2]}")
        raise


def _is_settled(binding):
    condition = scheduled(binding)
    is_placed = sum(shares_of(binding).values()) == binding["spec"]["replicas"]
    return bool(condition) and condition["status"] == "True" and is_placed and is_observed(binding)


def assert_pairs_apart(found):
    where = {one["metadata"]["name"]: set(shares_of(one)) for one in found}
    for number in range(N_PAIRS):
        assert not where[f"w{number}-a-deployment"] & where[f"w{number}-b-deployment"], number


@contextlib.asynccontextmanager
async def trial(admin, fault, *, pause=0.03):
    """Create pairs of bindings during the block, which injects the fault; then wait until all are placed, and check."""
    with recorded(fault, 2 * N_PAIRS):
        creating = asyncio.create_task(create_pairs(admin, pause=pause))
        try:
            yield
            await creating
        finally:
            creating.cancel()
        assert_pairs_apart(await until_all_placed(admin))


async def some_are_placed(admin, n=6):
    async def placed():
        with contextlib.suppress(ApiError, OSError, aiohttp.ClientError):
            return sum(map(_is_settled, await admin.items(BINDINGS))) >= n
        return False

    await wait_for(placed, PATIENCE)


@rounds
async def test_a_scheduler_is_killed_and_started_again(karmada_server, busy, round_):
    scheduler = bayplan_running.process(karmada_server, *SINGLE)
    async with trial(busy, "kill -9 and restart"):
        for n in (2, 10, 20):
            await some_are_placed(busy, n)
            scheduler.kill()
            await asyncio.to_thread(scheduler.start)


@rounds
@pytest.mark.parametrize("fault", ["restart_apiserver", "restart_etcd", "forget_history"])
async def test_the_server_restarts(karmada_server, busy, fault, round_):
    """The last one compacts the history too, so that no watch can be resumed."""
    bayplan_running.process(karmada_server, *SINGLE)
    async with trial(busy, fault.replace("_", " ")):
        await some_are_placed(busy)
        await asyncio.to_thread(getattr(karmada_server, fault))


@rounds
@pytest.mark.parametrize("status", [429, 503])
async def test_a_storm_of_rejections(karmada_server, proxy, busy, status, round_):
    async with trial(busy, f"storm of {status}"), bayplan_running.fleet_in_process(karmada_server, url=proxy.url):
        await some_are_placed(busy)
        proxy.storm(status, retry_after=1 if status == 429 else None, times=100)
        await wait_for(lambda: proxy.answers[status] >= 5, PATIENCE)
        proxy.calm()
        await some_are_placed(busy, 2 * N_PAIRS)


@rounds
async def test_answers_to_patches_are_lost(karmada_server, proxy, busy, round_):
    async with trial(busy, "answers lost"), bayplan_running.fleet_in_process(karmada_server, url=proxy.url):
        await some_are_placed(busy)
        proxy.lose_answers(times=20, matching=lambda method, path: method == "PATCH" and "/resourcebindings/" in path)
        await some_are_placed(busy, 2 * N_PAIRS)


@rounds
async def test_the_leader_is_suspended(karmada_server, busy, round_):
    leader = bayplan_running.process(karmada_server, "--fleet", *ELECTION)
    bayplan_running.process(karmada_server, "--fleet", *ELECTION)
    async with trial(busy, "leader suspended", pause=0.1):
        await some_are_placed(busy)
        leader.suspend()
        await some_are_placed(busy, 2 * N_PAIRS)
        before = await busy.items(BINDINGS)
        leader.resume()
        await wait_for(lambda: not leader.running)  # it notices that it does not lead, and has written nothing since
        after = await busy.items(BINDINGS)
        assert {one["metadata"]["uid"]: shares_of(one) for one in before} == {
            one["metadata"]["uid"]: shares_of(one) for one in after
        }


@rounds
async def test_the_leader_is_killed(karmada_server, busy, round_):
    leader = bayplan_running.process(karmada_server, "--fleet", *ELECTION)
    bayplan_running.process(karmada_server, "--fleet", *ELECTION)
    async with trial(busy, "leader killed", pause=0.1):
        await some_are_placed(busy)
        leader.kill()


@rounds
async def test_others_write_to_the_same_bindings(karmada_server, busy, round_):
    """A descheduler and a taint manager change what the scheduler has just written, or is about to write."""
    with recorded("conflicting writers", 2 * N_PAIRS):
        bayplan_running.process(karmada_server, *SINGLE)
        creating = asyncio.create_task(create_pairs(busy))
        evicted, scaled = {}, {}
        for round_number in itertools.count():
            for one in await busy.items(BINDINGS):
                name, clusters = one["metadata"]["name"], list(one["spec"].get("clusters") or ())
                if clusters and name not in evicted:
                    change = await _evict_from(busy, one, clusters[0]["name"])
                    if change:
                        evicted[name] = change
                elif name not in scaled:
                    scaled[name] = 2 + len(scaled) % 5
                    patch = {"spec": {"replicas": scaled[name]}}
                    await busy.patch(BINDINGS, name, patch, "default")
            if creating.done() and len(evicted) == len(scaled) == 2 * N_PAIRS:
                break
            assert round_number < 500
        await creating
        found = await until_all_placed(busy)
        assert_pairs_apart(found)
        for one in found:
            name = one["metadata"]["name"]
            assert one["spec"]["replicas"] == scaled[name]
            assert one["spec"]["gracefulEvictionTasks"][0]["fromCluster"] == evicted[name]
            assert evicted[name] not in shares_of(one), f"{name} was put back where it was evicted from"
            assert one["status"]["conditions"][0] == {**FOREIGN, "message": evicted[name]}


FOREIGN = {
    "type": "FullyApplied",
    "status": "False",
    "reason": "Test",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


async def _evict_from(admin, binding, cluster):
    """Evict as the taint manager does, and write a condition as the status controller does; the cluster, if it worked."""
    meta, left = binding["metadata"], [one for one in binding["spec"]["clusters"] if one["name"] != cluster]
    task = {"fromCluster": cluster, "purgeMode": "Gracefully", "reason": "TaintUntolerated", "producer": "Test"}
    spec = {"clusters": left or None, "gracefulEvictionTasks": [task]}
    change = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "spec": spec}
    try:
        changed = await admin.patch(BINDINGS, meta["name"], change, "default")
    except ApiError:  # the scheduler was faster
        return ""
    while True:
        others = [one for one in changed.get("status", {}).get("conditions", ()) if one["type"] != "FullyApplied"]
        status = {"conditions": [{**FOREIGN, "message": cluster}, *others]}
        version = {"resourceVersion": changed["metadata"]["resourceVersion"]}
        try:
            await admin.patch(
                BINDINGS, meta["name"], {"metadata": version, "status": status}, "default", subresource="status"
            )
        except ApiError:
            changed = await admin.get(BINDINGS, meta["name"], "default")
        else:
            return cluster
