"""
How long an ordinary pod waits beside one of a megabyte, on one real API server: Bayplan and kube-scheduler.

    python benchmarks/hostile.py [--nodes 5000] [--constraints 8000]

For each kind of hostile pod (tests/live/hostile_pods.py) and each scheduler in turn: the hostile pod is created, then
an ordinary one, and the time until the ordinary one is bound is measured. Bayplan runs once with its default limit, and
once without one. Results are written to hostile-results.json and the table to README.md, unless an option is given.
"""

import argparse
import asyncio
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "benchmarks")]

import tables  # noqa: E402

from live import hostile_pods  # noqa: E402
from live.admin import Admin, wait_for  # noqa: E402
from live.bayplan_running import process  # noqa: E402
from live.kube_server import KubeServer, Options  # noqa: E402

NODES, CONSTRAINTS = 5000, 8000
PATIENCE = 120
GOAL_SECONDS = 2.0
WITH_LIMIT, WITHOUT_LIMIT, THEIRS = "bayplan", "bayplan-without-limit", "kube-scheduler"
HEAD = ("seconds: Bayplan", "goal", "Bayplan without a limit", "kube-scheduler", "hostile pod")


async def seconds_until_bound(admin, namespace, scheduler, spec):
    """Create the hostile pod and then an ordinary one; the time until the second is bound, None if it is too long."""
    meta = {"labels": {"app": "hostile"}}
    await admin.create_pod("hostile", namespace, scheduler=scheduler, meta=meta, **spec)
    began = time.monotonic()
    await admin.create_pod("ordinary", namespace, scheduler=scheduler)
    try:
        await wait_for(lambda: admin.node_of("ordinary", namespace), PATIENCE, every=0.02)
        seconds = round(time.monotonic() - began, 2)
    except AssertionError:  # what `wait_for` raises
        seconds = None
    await admin.delete_all("pods", namespace)
    return seconds


async def run(n_nodes, n_constraints):
    results = {}
    with KubeServer(Options(high_throughput=True)) as server:
        async with Admin.of(server) as admin:
            await admin.create_nodes(n_nodes, cpu="64", memory="256Gi")
            starts = {
                WITH_LIMIT: lambda: process(server, "-q", "--scheduler-name", WITH_LIMIT),
                WITHOUT_LIMIT: lambda: process(
                    server, "-q", "--scheduler-name", WITHOUT_LIMIT, "--max-pod-constraints", "0"
                ),
                THEIRS: lambda: server.start_scheduler(THEIRS),
            }
            for scheduler, start in starts.items():
                await admin.create_namespace(scheduler)
                running = start()
                await admin.create_pod("first", scheduler, scheduler=scheduler)
                await wait_for(lambda name=scheduler: admin.node_of("first", name), PATIENCE)
                for kind, spec in hostile_pods.SPECS.items():
                    seconds = await seconds_until_bound(admin, scheduler, scheduler, spec(n_constraints))
                    results[kind, scheduler] = seconds
                    print(f"{scheduler:24} {kind:20} {written(seconds):>6} s", flush=True)
                running.stop()
    return results


def written(seconds):
    return f"> {PATIENCE}" if seconds is None else f"{seconds:.2f}"


def rows_of(results):
    for kind in hostile_pods.SPECS:
        yield {"hostile pod": kind, **{name: results[kind, name] for name in (WITH_LIMIT, WITHOUT_LIMIT, THEIRS)}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--constraints", type=int, default=CONSTRAINTS)
    given = parser.parse_args()
    rows = list(rows_of(asyncio.run(run(given.nodes, given.constraints))))
    table = tables.table(
        HEAD,
        [
            (
                written(r[WITH_LIMIT]),
                f"≤ {GOAL_SECONDS:.0f}",
                written(r[WITHOUT_LIMIT]),
                written(r[THEIRS]),
                r["hostile pod"],
            )
            for r in rows
        ],
    )
    print(table)
    if (given.nodes, given.constraints) == (NODES, CONSTRAINTS):
        (ROOT / "benchmarks" / "hostile-results.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        tables.write("hostile", "hostile.py", table)
