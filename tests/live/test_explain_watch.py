"""`explain --watch` on a real API server: another answer for each change that matters, also after an outage."""

import asyncio
import signal

import pytest

from live import programs
from live.admin import Admin, wait_for

NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu"


async def until(program, text):
    """The lines up to the next one with this text."""
    lines = []
    async with asyncio.timeout(60):
        while not lines or text not in lines[-1]:
            line = (await program.child.stdout.readline()).decode()
            assert line, f"ended after {lines}: {program.said}"
            lines.append(line)
    return lines


@pytest.mark.timeout(180)
async def test_each_change_that_matters_is_another_answer(kube_server, admin, namespace):
    await admin.create_nodes(1, cpu="1")
    await admin.create_pod("big", namespace, cpu="2")
    words = ("pod/big", "-n", namespace, "-w", "--no-preemption")
    async with programs.started("explain", kube_server, *words) as program:
        await until(program, NO_ROOM)

        await admin.patch("nodes", "node-0", {"status": {"nodeInfo": {"kernelVersion": "9"}}}, subresource="status")
        await admin.create_pod("other", namespace, cpu="100m")
        await admin.patch("nodes", "node-0", {"status": {"allocatable": {"cpu": "4"}}}, subresource="status")
        lines = await until(program, "is placed on node-0")
        assert not any(NO_ROOM in line for line in lines), "the other changes make no other answer"

        await admin.delete("pods", "big", namespace)
        await wait_for(lambda: "no pod of pod/big is in the input" in program.said)
        await admin.create_pod("big", namespace, cpu="8")
        await until(program, "0/1 nodes are available")

        kube_server.kill_apiserver()
        kube_server.start_apiserver()
        async with Admin.of(kube_server) as again:  # the connections of the other are closed
            await again.patch("nodes", "node-0", {"status": {"allocatable": {"cpu": "16"}}}, subresource="status")
        await until(program, "is placed on node-0")

        program.child.send_signal(signal.SIGINT)
        code, _ = await program.end()
        assert code == 130
        assert "Traceback" not in program.said
        assert program.said.count("cannot be followed") <= 1


async def test_the_first_answer_is_that_without_watching(kube_server, admin, namespace):
    await admin.create_nodes(3)
    await admin.create_pod("one", namespace, nodeName="node-1", meta={"labels": {"app": "one"}})
    await admin.create_pod("two", namespace)
    _, answer, _ = await programs.ended("explain", kube_server, "pod/two", "-n", namespace, "-o", "json")
    async with programs.started("explain", kube_server, "pod/two", "-n", namespace, "-o", "json", "-w") as program:
        assert "".join(await until(program, '"current"')) + "}\n" == answer


async def test_without_rights_it_ends_with_3(kube_server, namespace):
    code, answer, said = await programs.ended("explain", kube_server, "pod/a", "-w", user="restricted")
    assert (code, answer) == (3, "")
    assert "forbidden" in said.lower() or "403" in said
