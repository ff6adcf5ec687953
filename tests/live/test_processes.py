"""A child process: waiting until ready, its log on failure, its end with the parent. Needs no real server."""

import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from live.processes import Process, StartError, free_port

TESTS = pathlib.Path(__file__).parents[1]
NURSE = """
import pathlib, sys
from live.processes import Process

def sleeps():  # only then has the kernel been asked to end it with its parent
    return pathlib.Path(f"/proc/{child.pid}/comm").read_text() == "sleep\\n"

child = Process(["sleep", "1000"], log=sys.argv[1], ready=sleeps)
child.start()
print(child.pid, flush=True)
input()
"""


def sleeping_process(tmp_path, *, ready):
    return Process(["sleep", "1000"], log=tmp_path / "log", ready=ready)


def test_start_returns_when_it_is_ready(tmp_path):
    answers = iter([False, False, True])
    process = sleeping_process(tmp_path, ready=lambda: next(answers))
    process.start()
    assert process.running
    process.stop()
    assert not process.running


def test_a_process_that_never_becomes_ready_is_stopped(tmp_path):
    process = sleeping_process(tmp_path, ready=lambda: False)
    with pytest.raises(StartError, match="sleep is not ready after 0 s"):
        process.start(timeout=0)
    assert not process.running


def test_a_process_that_exits_shows_its_log(tmp_path):
    process = Process(["sh", "-c", "echo no such luck; exit 7"], log=tmp_path / "log", ready=lambda: False)
    with pytest.raises(StartError, match=r"sh ended with 7\n(.|\n)*no such luck"):
        process.start()


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv of util-linux")
def test_it_ends_with_its_parent_even_if_that_is_killed(tmp_path):
    command = [sys.executable, "-c", NURSE, tmp_path / "log"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as nurse:
        watched = os.pidfd_open(int(nurse.stdout.readline()))
        nurse.send_signal(signal.SIGKILL)
    ended, _, _ = select.select([watched], [], [], 10)
    os.close(watched)
    assert ended


def test_it_outlives_the_thread_that_started_it(tmp_path):
    process = sleeping_process(tmp_path, ready=lambda: True)
    thread = threading.Thread(target=process.start)
    thread.start()
    thread.join()
    with pytest.raises(subprocess.TimeoutExpired):  # killed by the kernel, it would end at once
        process.child.wait(0.3)
    process.kill()


def test_ports_are_returned_once():
    assert len({free_port() for _ in range(50)}) == 50
