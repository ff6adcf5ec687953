"""What is written to standard error, in which colors, and when progress is shown."""

import io
import json

import pytest

from bayplan.cli import loading
from bayplan.cli.console import Console, ProgressLine
from bayplan.cli.options import DecisionOptions, InputOptions, ScopeOptions
from bayplan.errors import ClusterError, Fault, InputError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("color, terminal, variables, colored", [
    ("auto", True, {}, True),
    ("auto", False, {}, False),
    ("auto", True, {"NO_COLOR": "1"}, False),
    ("auto", True, {"TERM": "dumb"}, False),
    ("always", False, {}, True),
    ("always", True, {"NO_COLOR": "1"}, True),  # the flag wins over the variable
    ("never", True, {}, False),
])  # fmt: skip
def test_colors_are_for_terminals_unless_set(color, terminal, variables, colored, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Terminal() if terminal else io.StringIO())
    monkeypatch.setattr("sys.stderr", Terminal() if terminal else io.StringIO())
    console = Console(color)
    assert (console.table_width is not None) is colored
    console.note("x")
    import sys

    assert ("\x1b[" in sys.stderr.getvalue()) is colored


def test_a_file_has_no_colors(monkeypatch):
    monkeypatch.setattr("sys.stdout", Terminal())
    assert Console(output_file="plan.txt").table_width is None


@pytest.mark.parametrize(
    "verbosity, levels",
    [(-1, ["error"]), (0, ["error", "warning", "note"]), (1, [*["error", "warning", "note"], "note"])],
)
def test_verbosity_selects_the_messages(verbosity, levels, capsys):
    console = Console(verbosity=verbosity)
    console.error(InputError("a"))
    console.warning("b")
    console.note("c")
    console.note("d", verbosity=1)
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == levels


def test_escape_sequences_in_names_are_stripped(capsys):
    Console().error(InputError(Fault("bad \x1b[2J\x07 name", subject="Pod a\nb")))
    assert capsys.readouterr().err == "error: Pod a b: bad  name\n"


def test_json_messages_carry_the_fields_of_the_fault(capsys):
    Console(log_format="json").error(InputError([Fault("m", file="f", line=3, path="spec"), Fault("n")]))
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["message"], first["file"], first["line"], first["field"]) == ("f:3: spec: m", "f", 3, "spec")
    assert (second["level"], "file" in second) == ("error", False)


def test_an_error_of_a_server_is_one_line(capsys):
    Console().error(ClusterError("GET /pods: 503"))
    assert capsys.readouterr().err == "error: GET /pods: 503\n"


def test_progress_starts_after_a_second_and_is_removed():
    now, stream = [0.0], io.StringIO()
    progress = ProgressLine(stream, clock=lambda: now[0])
    for now[0] in (0.5, 0.9):
        progress.show(lambda: "too early")
    now[0] = 1.0
    progress.show(lambda: "half \x1bdone")
    progress.show(lambda: "too soon after")
    now[0] = 1.2
    progress.show(lambda: "done")
    progress.clear()
    assert stream.getvalue() == "\r\x1b[2Khalf one\r\x1b[2Kdone\r\x1b[2K"


def test_progress_is_for_terminals_only(monkeypatch):
    assert _shown(io.StringIO(), Console(), monkeypatch) == ""
    assert _shown(Terminal(), Console(verbosity=-1), monkeypatch) == ""
    assert _shown(Terminal(), Console(log_format="json"), monkeypatch) == ""
    assert _shown(Terminal(), Console(), monkeypatch) == "\r\x1b[2Khalf done\r\x1b[2K"  # removed with its block


def _shown(stream, console, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("bayplan.cli.console.PROGRESS_DELAY_SECONDS", 0.0)
    with console.progress() as show:
        show(lambda: "half done")
    return stream.getvalue()


def test_loading_a_dump_shows_progress_in_every_phase(scene, monkeypatch):
    pods = [
        {
            "metadata": {"name": f"p{i}", "namespace": "shop", "uid": f"u{i}"},
            "spec": {"nodeName": "a1"},
            "status": {"phase": "Running"},
        }
        for i in range(1200)
    ]
    dump = scene / "dump.json"
    dump.write_text(json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods}))
    phases = _phases_shown(["nodes.yaml", "dump.json"], monkeypatch)
    assert "reading dump.json: 500 objects, " in phases
    assert "adding running pods to the index: 1000 of 1201" in phases


def test_loading_a_fleet_shows_progress_in_every_phase(tmp_path, monkeypatch):
    cluster = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "m1"}}
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default"}
    bindings = [
        {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {"name": f"b{i}", "namespace": "default", "uid": f"u{i}"},
            "spec": {"resource": {**resource, "name": f"b{i}"}, "clusters": [{"name": "m1"}]},
            "status": {},
        }
        for i in range(700)
    ]
    fleet = tmp_path / "fleet.json"
    fleet.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [cluster, *bindings]}))
    phases = _phases_shown([str(fleet)], monkeypatch)
    assert "adding bindings to the index: 500 of 700" in phases


def _phases_shown(files, monkeypatch):
    """What a terminal shows while these files are loaded, as if every step took longer than the delay."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("bayplan.cli.console.PROGRESS_DELAY_SECONDS", 0.0)
    monkeypatch.setattr("bayplan.cli.console.PROGRESS_INTERVAL_SECONDS", 0.0)
    sources = InputOptions(**dict.fromkeys(InputOptions.__struct_fields__, None) | {"filename": files, "state": ()})
    scope = ScopeOptions(namespace=None, all_namespaces=True, selector=None)
    decisions = DecisionOptions("upstream", "1.36", (), "", None, None)
    loading.load(sources, scope, decisions, Console())
    return terminal.getvalue()
