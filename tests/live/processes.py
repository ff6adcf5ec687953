"""One server as a child process: started, waited for, stopped, killed, its log kept. Knows nothing of Kubernetes."""

import concurrent.futures
import itertools
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request

# Below the range that outgoing connections take theirs from: nobody else gets our port while its server restarts.
PORTS = range(20000, 30000)
_turns = itertools.count(100 * os.getpid())  # test processes side by side look in different places
LOG_TAIL = 25
# The kernel takes the thread that started a child for its parent: this one lasts as long as we do.
_parent = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="parent-of-servers")


class StartError(Exception):
    """A server ended, or never became ready; carries the end of its log."""


class Process:
    """
    A command that can be started again with the same arguments.

    Its output is appended to one log over all starts. It dies with us even if we are killed, where `setpriv` exists.
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
        """Start it and return when `ready()` says so."""
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
        """Ask it to end, and make it end if it has not by then."""
        if self.running:
            self.child.terminate()
            try:
                self.child.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self):
        if self.running:
            self.child.kill()
            self.child.wait()

    def log_tail(self):
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join([f"the end of {self.log}:", *lines[-LOG_TAIL:]])


def free_port():
    """A loopback port that nobody listens on, and that this process has not been given before."""
    while True:
        port = PORTS[next(_turns) % len(PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def answers(url, *, ca_file=None, token=None):
    """Whether a GET gives 200 now."""
    handlers = [urllib.request.ProxyHandler({})]  # a proxy of the environment is not for loopback
    if ca_file:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_file)))
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False
