"""A server as a child process: start, wait until ready, stop, kill, keep its log. Knows nothing of Kubernetes."""

import concurrent.futures
import itertools
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.request

# Below the range of ephemeral ports: no outgoing connection takes the port while its server restarts.
PORTS = range(20000, 30000)
_port_numbers = itertools.count(100 * os.getpid())  # concurrent test processes start at different ports
LOG_TAIL = 25
# To the kernel the parent of a child is the thread that started it: this thread lasts as long as the process.
_parent = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="parent-of-servers")


class StartError(Exception):
    """A server exited or never became ready; has the end of its log."""


class Process:
    """
    A command that can be started again with the same arguments.

    Its output is appended to one log. Where `setpriv` exists, it is killed with this process.
    """

    def __init__(self, command, *, log, env=None, ready):
        self.command = [str(part) for part in command]
        self.log = pathlib.Path(log)
        self.env = env
        self.ready = ready
        self.child = None

    @property
    def name(self):
        return pathlib.Path(self.command[0]).name

    @property
    def running(self):
        return self.child is not None and self.child.poll() is None

    @property
    def pid(self):
        return self.child.pid

    def start(self, timeout=120):
        """Start it and return when `ready()` is true."""
        assert not self.running, f"{self.name} runs already"
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with self.log.open("ab") as log:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.child = _parent.submit(subprocess.Popen, [*guard, *self.command], env=self.env, **pipes).result()
        try:
            self.wait_ready(timeout)
        except StartError:
            self.kill()
            raise

    def wait_ready(self, timeout=120):
        deadline = time.monotonic() + timeout
        while not self.ready():
            if not self.running:
                raise StartError(f"{self.name} ended with {self.child.returncode}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self.name} is not ready after {timeout} s\n{self.log_tail()}")
            time.sleep(0.05)

    def stop(self, timeout=15):
        """Send SIGTERM, and SIGKILL after the timeout."""
        if self.running:
            self.child.terminate()
            try:
                self.child.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()

    def suspend(self):
        self.child.send_signal(signal.SIGSTOP)

    def resume(self):
        self.child.send_signal(signal.SIGCONT)

    def kill(self):
        if self.running:
            self.child.kill()
            self.child.wait()

    def log_tail(self):
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"the end of {self.log}:", *lines[-LOG_TAIL:]])


def free_port():
    """Return a free loopback port that was not returned before."""
    while True:
        port = PORTS[next(_port_numbers) % len(PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def answers(url, *, ca_file=None, token=None):
    """Whether a GET gives 200 now."""
    handlers = [urllib.request.ProxyHandler({})]  # ignore proxies of the environment for loopback
    if ca_file:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)))
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False
