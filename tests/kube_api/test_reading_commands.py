"""Commands that read a cluster once, at a server that misbehaves: one line, the right exit code, in the user's time."""

import asyncio
import os
import sys

import pytest
from aiohttp import web

import listed
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.errors import NoAnswerError
from bayplan.kube_api.resources import PODS
from bayplan.wire.pods import Pod
from kube_api.scripted import answer, connected

VERSION = {"gitVersion": "v1.36.4"}
COMMANDS = ("place", "explain pod/a", "violations", "rebalance", "quota", "audit", "snapshot")
HANGING = 30  # seconds; far more than the time that the user gives a request, and less than a server's own limit


async def run(command, *arguments):
    """Output, messages and exit code of a command as a user starts it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bayplan", *command.split(), *map(str, arguments)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), HANGING)
    finally:
        if process.returncode is None:
            process.kill()
    return output.decode(), errors.decode(), process.returncode


@pytest.mark.parametrize("broken", [b'{"items": [', b"[]", b'{"metadata": {"continue": 7}}'])
@pytest.mark.parametrize("command", COMMANDS)
async def test_a_list_that_is_not_json(command, broken, server, kubeconfig_for):
    server.then(answer(VERSION), web.Response(body=broken, content_type="application/json"))
    output, errors, code = await run(command, "--kubeconfig", kubeconfig_for(server))
    (line,) = errors.splitlines()
    assert line.startswith(f"error: GET {server.url}/")
    assert "the answer cannot be read" in line
    assert (output, code) == ("", 3)


@pytest.mark.parametrize("command", COMMANDS)
async def test_request_timeout_applies_to_lists(command, server, kubeconfig_for):
    server.then(answer(VERSION))
    words = ("--kubeconfig", kubeconfig_for(server), "--request-timeout", "300ms")
    _, errors, code = await run(command, *words)
    assert errors.endswith(": no response in time\n")
    assert code == 3


async def test_request_timeout_applies_to_the_lists_of_run(server, kubeconfig_for):
    async with connected(kubeconfig_for(server), ConnectOptions(request_timeout=0.2)) as connection:
        with pytest.raises(NoAnswerError):
            async with asyncio.timeout(HANGING):
                await listed.everything(connection, PODS, Pod)
