"""Closed and full streams and closed pipes: one error line and the documented exit code, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FITS, FITS_NOT = "place -f nodes.yaml -f db.yaml", "place -f nodes.yaml -f web.yaml"


@pytest.fixture
def shell(source_folder, scene):
    """Runs `bayplan …` in a shell with redirections; returns the captured streams and the exit code."""

    def run(line):
        script = f'"$PYTHON" -m bayplan {line}'
        return subprocess.run(
            ["sh", "-c", script],
            cwd=scene,
            env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(source_folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")


@needs_dev_full
@pytest.mark.parametrize("words", [f"{FITS} -q", "version", "--help", "place --help", "completion bash", "config view"])
def test_a_full_disk_is_one_error_line(words, shell):
    done = shell(f"{words} >/dev/full")
    assert done.stderr == "error: standard output: cannot be written: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize("words", [f"{FITS} -q", "version", "--help"])
def test_a_closed_standard_output_is_one_error_line(words, shell):
    done = shell(f"{words} >&-")
    assert done.stderr == "error: standard output: cannot be written: Bad file descriptor\n"
    assert done.returncode == 2


def test_a_closed_standard_output_does_not_affect_an_output_file(shell, scene):
    done = shell(f"{FITS} -q --output-file plan.txt >&-")
    assert (done.stderr, done.returncode) == ("", 0)
    assert "db-0" in (scene / "plan.txt").read_text()


@pytest.mark.parametrize("words", ["place -f -", "validate -f -", "audit -f -", "decide pods"])
def test_a_closed_standard_input_is_one_error_line(words, shell):
    done = shell(f"{words} <&-")
    assert done.stderr == "error: standard input: cannot be read: it is closed\n"
    assert done.returncode == 2


def test_a_closed_standard_input_is_no_error_if_it_is_not_read(shell):
    assert shell(f"{FITS} <&-").returncode == 0


@pytest.mark.parametrize("where", ["2>&-", pytest.param("2>/dev/full", marks=needs_dev_full)])
@pytest.mark.parametrize("words, code", [(FITS, 0), (FITS_NOT, 1), ("place -f nowhere.yaml", 2), ("plcae", 2)])
def test_messages_that_cannot_be_written_change_nothing(words, code, where, shell):
    done = shell(f"{words} {where}")
    assert done.returncode == code
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize("words", [FITS, FITS_NOT, "--help", "place --help"])
def test_a_closed_pipe_ends_with_141(words, scene, source_folder):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "bayplan", *words.split()],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
            env={**os.environ, "PYTHONPATH": str(source_folder)},
        )
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert b"Traceback" not in done.stderr
