"""
A real karmada-scheduler-estimator that nothing outside this machine can reach: it has no option for its address.

It runs in a network namespace of its own. A relay in there passes on what comes to a Unix socket, and another one what
the estimator sends to the API server of its member.
"""

import asyncio
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

from live import kube_binaries
from live.processes import Process

PORT = 10352


def is_possible():
    """Whether a process may have a network namespace of its own here."""
    command = ["unshare", "--net", "true"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def running(folder, cluster, member, credentials):
    """The estimator of a member, at the socket CLUSTER.sock of the folder; yields the process to suspend or to kill."""
    folder = pathlib.Path(folder)
    certificate, key = credentials.issue("localhost", common_name=f"estimator-{cluster}")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    port = member.url.rpartition(":")[2]
    socket, api = folder / f"{cluster}.sock", folder / f"{cluster}-api.sock"
    outside = Process(
        [sys.executable, "-m", "live.estimator", "relay", f"unix:{api}", f"tcp:{port}"],
        log=folder / f"{cluster}-relay.log",
        env=environment,
        ready=api.exists,
    )
    estimator = [
        kube_binaries.find_estimator(),
        f"--kubeconfig={member.kubeconfig()}",
        f"--cluster-name={cluster}",
        f"--server-port={PORT}",
        f"--grpc-auth-cert-file={certificate}",
        f"--grpc-auth-key-file={key}",
        f"--grpc-client-ca-file={credentials.ca_file}",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
    ]
    inside = Process(
        ["unshare", "--net", sys.executable, "-m", "live.estimator", "isolated", socket, api, port, *estimator],
        log=folder / f"{cluster}-estimator.log",
        env=environment,
        ready=lambda: socket.exists() and "Listening port" in (folder / f"{cluster}-estimator.log").read_text(),
    )
    try:
        outside.start()
        inside.start()
        yield inside
    finally:
        inside.kill()
        outside.kill()


# What runs in the processes


async def relay(listen, connect):
    """Pass on what comes to one address, unix:PATH or tcp:PORT, to another one."""

    async def serve(reader, writer):
        with contextlib.suppress(OSError):
            further = await _connected(connect)
            await asyncio.gather(_copy(reader, further[1]), _copy(further[0], writer))

    kind, _, where = listen.partition(":")
    if kind == "unix":
        server = await asyncio.start_unix_server(serve, where)
    else:
        server = await asyncio.start_server(serve, "127.0.0.1", int(where))
    await server.serve_forever()


async def _connected(address):
    kind, _, where = address.partition(":")
    if kind == "unix":
        return await asyncio.open_unix_connection(where)
    return await asyncio.open_connection("127.0.0.1", int(where))


async def _copy(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def isolated(socket, api, port, *command):
    """Run the estimator in this network namespace, with relays to the sockets outside."""
    loopback = await asyncio.create_subprocess_exec("ip", "link", "set", "lo", "up")
    assert await loopback.wait() == 0
    relays = asyncio.gather(relay(f"tcp:{port}", f"unix:{api}"), relay(f"unix:{socket}", f"tcp:{PORT}"))
    guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
    child = await asyncio.create_subprocess_exec(*guard, *command)
    code = await child.wait()
    relays.cancel()
    sys.exit(code)


if __name__ == "__main__":
    asyncio.run({"relay": relay, "isolated": isolated}[sys.argv[1]](*sys.argv[2:]))
