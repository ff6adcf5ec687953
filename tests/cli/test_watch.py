"""`explain --watch` on files: as a process, since it ends with a signal."""

import json
import os
import signal
import subprocess
import sys

import pytest

import interrupts

HEADLINE = "0/2 nodes are available"


class Watching:
    """`bayplan explain -w` in the current folder, with its standard error in a file."""

    def __init__(self, folder, *words):
        self._errors = (folder / "errors").open("w+b", buffering=0)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bayplan", "explain", *words, "-w"],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            preexec_fn=interrupts.restore,  # noqa: PLW1509 (no threads here)
        )

    def until(self, text):
        """The lines up to the next one with this text."""
        lines = []
        for line in iter(self.process.stdout.readline, b""):
            lines.append(line.decode())
            if text in lines[-1]:
                return lines
        raise AssertionError(f"ended with {self.process.wait()} after {lines}, {self.errors()}")

    def until_error(self, text):
        while text not in self.errors():
            assert self.process.poll() is None
            os.sched_yield()

    def errors(self):
        self._errors.seek(0)
        return self._errors.read().decode()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._errors.close()

    def interrupt(self):
        """The exit code, and what was written last."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(), self.process.stdout.read().decode()


@pytest.fixture
def watch(scene, tmp_path):
    started = []

    def start(*words):
        started.append(Watching(tmp_path, *words))
        return started[-1]

    yield start
    for one in started:
        one.close()


def replaced(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_only_another_answer_is_written(watch, scene):
    watching = watch("web-2", "-f", ".")
    watching.until(HEADLINE)
    (scene / "db.yaml").touch()
    replaced(scene / "db.yaml", "name: db-0", "name: db-1")  # of another pod
    replaced(scene / "nodes.yaml", "{key: dedicated, value: db, effect: NoSchedule}", "")
    lines = watching.until("is placed on b1")
    assert not any(HEADLINE in line for line in lines)
    assert watching.interrupt()[0] == 130
    assert "answer of " in watching.errors()
    assert "Traceback" not in watching.errors()


def test_a_file_that_cannot_be_read_is_reported_and_watched(watch, scene):
    watching = watch("web-2", "-f", ".")
    watching.until(HEADLINE)
    whole = (scene / "nodes.yaml").read_text()
    (scene / "nodes.yaml").write_text("kind: [")
    watching.until_error("invalid YAML")
    (scene / "nodes.yaml").write_text(whole)
    watching.until(HEADLINE)
    (scene / "web.yaml").unlink()
    watching.until_error("no pod of pod/web-2 is in the input")
    assert watching.interrupt()[0] == 130


def test_a_second_write_that_leaves_size_and_time_is_a_change(scene, monkeypatch):
    """As when a file is read between its truncation and its content, within one tick of the clock of its times."""
    from bayplan.library import watched
    from bayplan.library.arguments import Given
    from bayplan.library.inputs import InputSpec, Scope, Supposed, shows_nothing

    n_sleeps = iter(range(20))
    monkeypatch.setattr(watched.time, "sleep", lambda _: next(n_sleeps))
    path = scene / "web.yaml"
    spec = InputSpec(change=Given(paths=tuple(map(str, sorted(scene.iterdir())))))
    with watched.WatchedState(spec, Supposed(), print) as watching:
        path.touch()
        before = path.stat()
        assert "shop/web-2" in watching.now(Scope(), shows_nothing).pods
        replaced(path, "name: web-2", "name: web-7")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        watching.wait()
        assert "shop/web-7" in watching.now(Scope(), shows_nothing).pods


def test_a_new_file_of_a_directory_is_a_change(watch, scene):
    (scene / "nodes.yaml").rename(scene / "nodes")
    watching = watch("web-2", "-f", ".")
    watching.until("no nodes available")
    (scene / "nodes").rename(scene / "nodes.yaml")
    watching.until(HEADLINE)


def test_documents_follow_one_another(watch, scene):
    watching = watch("web-2", "-f", ".", "-o", "yaml")
    watching.until("current:")
    replaced(scene / "nodes.yaml", "{key: dedicated, value: db, effect: NoSchedule}", "")
    lines = watching.until("current:")
    assert lines[0] == "---\n"
    assert "target: b1\n" in lines


def test_a_file_holds_the_last_answer(watch, scene, tmp_path):
    answer = tmp_path / "answer.json"
    watching = watch("web-2", "-f", ".", "-o", "json", "--output-file", str(answer))
    while not answer.exists() or not answer.read_text():
        assert watching.process.poll() is None
    replaced(scene / "nodes.yaml", "{key: dedicated, value: db, effect: NoSchedule}", "")
    watching.until_error("answer of")
    while not (text := answer.read_text()).endswith("\n}\n") or json.loads(text)["target"] != "b1":
        assert watching.process.poll() is None  # the file may be half written


@pytest.mark.parametrize("words, code", [
    (("web-9", "-f", "."), 2),
    (("web-2", "-f", "nowhere.yaml"), 2),
    (("web-2", "--server", "http://127.0.0.1:1"), 3),
])  # fmt: skip
def test_the_first_answer_fails_as_without_watching(run, scene, words, code):
    result = run("explain", *words, "-w")
    assert result.exit_code == code
    assert result.stdout == ""


@pytest.mark.parametrize("words, message", [
    (("-f", "-"), "- can be read only once"),
    (("-f", ".", "-f", "pipe"), "pipe can be read only once"),
    (("-f", ".", "--apply-fix", "1"), "--watch and --apply-fix exclude each other"),
])  # fmt: skip
def test_what_cannot_be_watched_is_a_usage_error(run, scene, words, message):
    os.mkfifo(scene / "pipe")
    result = run("explain", "web-2", *words, "-w")
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_a_closed_pipe_ends_it(watch, scene):
    watching = watch("web-2", "-f", ".")
    watching.until(HEADLINE)
    watching.process.stdout.close()
    replaced(scene / "nodes.yaml", "{key: dedicated, value: db, effect: NoSchedule}", "")
    assert watching.process.wait() == 141
