"""`bayplan ui` as a process: the address that it prints, what it refuses, and how it ends."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from .conftest import NODES

SECONDS = 60


@pytest.fixture
def nodes(tmp_path):
    file = tmp_path / "nodes.yaml"
    file.write_text(NODES, encoding="utf-8")
    return str(file)


@contextlib.contextmanager
def started(source_folder, *arguments):
    """The process and the address that it prints."""
    variables = {**os.environ, "PYTHONPATH": str(source_folder)}
    command = [sys.executable, "-m", "bayplan", "ui", *arguments]
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def state(url, **headers):
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}api/v1/state", headers=headers), timeout=SECONDS
    ) as answer:
        return json.load(answer)


def test_it_serves_until_it_is_interrupted(source_folder, nodes):
    with started(source_folder, "-f", nodes, "--bind-address", "127.0.0.1:0") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert "token" not in url
        assert [node["name"] for node in state(url)["nodes"]] == ["a1", "b1"]
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        said = process.stderr.read()
    assert "note: serving 2 nodes and 1 workload; interrupt to stop" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    "arguments", [("--bind-address", "0.0.0.0:0"), ("--require-token", "--bind-address", "127.0.0.1:0")]
)
def test_a_token_is_required_where_others_can_reach_it(source_folder, nodes, arguments):
    with started(source_folder, "-f", nodes, *arguments) as (process, url):
        address, _, token = url.partition("#token=")
        assert len(token) > 30
        local = address.replace("0.0.0.0", "127.0.0.1")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            state(local)
        assert len(state(local, Authorization=f"Bearer {token}")["nodes"]) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        said = process.stderr.read()
    assert "warning: without --tls-cert-file" in said
    assert token not in said


def test_standard_input_is_read_once(source_folder):
    variables = {**os.environ, "PYTHONPATH": str(source_folder)}
    command = [sys.executable, "-m", "bayplan", "ui", "--state", "-", "--bind-address", "127.0.0.1:0"]
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(NODES)
        process.stdin.close()
        url = process.stdout.readline().strip()
        assert len(state(url)["nodes"]) == 2
        process.kill()


@pytest.mark.parametrize("arguments, code, expected", [
    ((),                                                          2, "nothing to read"),
    (("-f", "nope.yaml"),                                         2, "nope.yaml"),
    (("-f", "@", "--bind-address", "8700"),                       2, "expected an address such as 127.0.0.1:8700"),
    (("-f", "@", "--bind-address", "192.0.2.1:0"),                2, "cannot listen on 192.0.2.1:0"),
    (("-f", "@", "--tls-cert-file", "x"),                         2, "go together"),
    (("-f", "@", "--tls-cert-file", "x", "--tls-private-key-file", "y"), 2, "cannot be used with its key"),
    (("-f", "@", "--switch", "nope=true"),                        2, "nope"),
])  # fmt: skip
def test_what_cannot_be_served_is_an_error(run, nodes, arguments, code, expected):
    result = run("ui", *(nodes if one == "@" else one for one in arguments))
    assert result.exit_code == code
    assert expected in result.stderr
    assert result.stdout == ""


def test_a_port_that_is_taken_is_an_error(run, nodes):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("ui", "-f", nodes, "--bind-address", f"127.0.0.1:{port}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in result.stderr
