"""Who is told what, in which colours, and from when on."""

import io
import json

import pytest

from bayplan.cli.console import Console
from bayplan.cli.progress import ProgressLine
from bayplan.errors import ClusterError, Fault, InputError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("color, terminal, variables, coloured", [
    ("auto", True, {}, True),
    ("auto", False, {}, False),
    ("auto", True, {"NO_COLOR": "1"}, False),
    ("auto", True, {"TERM": "dumb"}, False),
    ("always", False, {}, True),
    ("always", True, {"NO_COLOR": "1"}, True),  # who asks gets
    ("never", True, {}, False),
])  # fmt: skip
def test_colours(color, terminal, variables, coloured, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Terminal() if terminal else io.StringIO())
    monkeypatch.setattr("sys.stderr", Terminal() if terminal else io.StringIO())
    console = Console(color)
    assert (console.table_width is not None) is coloured
    console.note("x")
    import sys

    assert ("\x1b[" in sys.stderr.getvalue()) is coloured


def test_a_file_gets_no_colours(monkeypatch):
    monkeypatch.setattr("sys.stdout", Terminal())
    assert Console(output_file="plan.txt").table_width is None


@pytest.mark.parametrize(
    "verbosity, said",
    [(-1, ["error"]), (0, ["error", "warning", "note"]), (1, [*["error", "warning", "note"], "note"])],
)
def test_verbosity(verbosity, said, capsys):
    console = Console(verbosity=verbosity)
    console.error(InputError("a"))
    console.warning("b")
    console.note("c")
    console.detail("d")
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == said


def test_names_cannot_speak_to_the_terminal(capsys):
    Console().error(InputError(Fault("bad \x1b[2J\x07 name", subject="Pod a\nb")))
    assert capsys.readouterr().err == "error: Pod a b: bad  name\n"


def test_json_lines(capsys):
    Console(log_format="json").error(InputError([Fault("m", file="f", line=3, path="spec"), Fault("n")]))
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["message"], first["file"], first["line"], first["field"]) == ("f:3: spec: m", "f", 3, "spec")
    assert (second["level"], "file" in second) == ("error", False)


def test_an_error_of_a_server(capsys):
    Console().error(ClusterError("GET /pods: 503"))
    assert capsys.readouterr().err == "error: GET /pods: 503\n"


def test_progress_waits_for_a_second_and_leaves_nothing():
    now, stream = [0.0], io.StringIO()
    with ProgressLine(stream, clock=lambda: now[0]) as progress:
        for now[0] in (0.5, 0.9):
            progress.show(lambda: "too early")
        now[0] = 1.0
        progress.show(lambda: "half \x1bdone")
        progress.show(lambda: "too soon after")
        now[0] = 1.2
        progress.show(lambda: "done")
    assert stream.getvalue() == "\r\x1b[2Khalf one\r\x1b[2Kdone\r\x1b[2K"


def test_progress_is_for_terminals_only(monkeypatch):
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert Console().progress()._stream is None
    monkeypatch.setattr("sys.stderr", Terminal())
    assert Console().progress()._stream is not None
    assert Console(verbosity=-1).progress()._stream is None
