"""One run of the program in this process, and what must be true of every run."""

import contextlib
import gc
import hashlib
import io
import json
import os
import pathlib
import re
import resource
import signal
import sys
import traceback
import xml.etree.ElementTree as ET

import click
import msgspec

from bayplan.cli import main
from bayplan.errors import BayplanError

MAX_SECONDS = 5  # of processor time
MAX_BYTES = 500_000_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SGR = re.compile(r"\x1b\[[0-9;]*m")  # the colors that --color=always asks for
_TRACEBACK, _BUG = "Traceback (most recent call last)", "This is a bug"
_EXIT_CODES = {0, 1, 2}


class TooSlowError(BaseException):
    """No `except Exception` stops it."""


class Outcome(msgspec.Struct):
    code: int
    stdout: bytes = b""
    stderr: str = ""
    seconds: float = 0.0
    failure: str = ""  # what must not happen: one line for each cause
    detail: str = ""


def run(arguments, files, stdin=b""):
    """Run the program on files in the working directory."""
    for name, content in files.items():
        pathlib.Path(name).write_bytes(content)
    out, err = io.BytesIO(), io.BytesIO()
    before = _processor_seconds()
    outcome = Outcome(-1)
    with _streams(stdin, out, err), _time_limit():
        try:
            outcome.code = _invoked(arguments)
        except TooSlowError:
            outcome.failure, outcome.detail = f"more than {MAX_SECONDS} s", _shown_traceback()
        except (Exception, RecursionError) as error:  # noqa: BLE001
            outcome.failure, outcome.detail = _cause(error), _shown_traceback()
        sys.stdout.flush()
        sys.stderr.flush()
    outcome.seconds = _processor_seconds() - before
    outcome.stdout, outcome.stderr = out.getvalue(), err.getvalue().decode()
    if not outcome.failure and _TRACEBACK in outcome.stderr:  # `decide` goes on after a bug
        found = re.findall(r'File "[^"]*bayplan/([^"]*)", line (\d+), in (\w+)', outcome.stderr)[-1]
        error = re.findall(r"^(\w+(?:\.\w+)*)(?::.*)?$", outcome.stderr.split(_BUG)[0], re.MULTILINE)[-1]
        outcome.failure, outcome.detail = (
            f"{error} in {found[0].rpartition('/')[2]}:{found[1]} {found[2]}",
            outcome.stderr,
        )
    if not outcome.failure:
        outcome.failure = _wrong(arguments, stdin, outcome)
    return outcome


def digest(door, outcome):
    """What a second run must repeat; a benchmark measures itself."""
    answer = (
        re.sub(rb'"(seconds|\w+_per_s)":[^,}]*', b"", outcome.stdout) if door.startswith("bench") else outcome.stdout
    )
    if door.startswith("audit") or b"<!doctype html>" in answer:
        answer = re.sub(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d", b"", answer)  # when it was made
    messages = re.sub(r'"time": "[^"]*"', "", outcome.stderr)
    return hashlib.sha256(b"%d %b %b" % (outcome.code, answer, messages.encode())).hexdigest()[:16]


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _invoked(arguments):
    if arguments[0] == "kubeconfig":
        return _read_kubeconfig(arguments[1])
    if arguments[0] == "page":
        return _ask_the_page(*arguments[1:])
    try:
        main.cli.main(args=list(arguments), prog_name="bayplan")
    except SystemExit as end:
        return end.code or 0
    return 0


def _read_kubeconfig(name):
    """Resolve a kubeconfig without using it: a context may name a server or a program."""
    from bayplan.kube_api import kubeconfig, kubeconfig_files
    from bayplan.kube_api.access import ConnectOptions

    try:
        found = kubeconfig_files.load([pathlib.Path(name)])
        access = kubeconfig.access_of(found, None, ConnectOptions())
        main.Console().answer(f"{access.server!r} {access.namespace!r} {access.context_name!r}\n")
    except BayplanError as error:
        main.Console().error(error)
        return 2
    return 0


def _ask_the_page(how, name, lost):
    """What the page asks its server: `bayplan ui` itself does not end."""
    from bayplan.library.arguments import Given
    from bayplan.library.inputs import InputSpec
    from bayplan.library.reading import Reading
    from bayplan.web import questions
    from bayplan.web.moments import Moment

    given = Given((name,))
    console, code = main.Console(), 0
    try:
        spec = InputSpec(change=given) if how == "-f" else InputSpec(state=given)
        moment = Moment(Reading(spec), 1, {})
    except BayplanError as error:
        console.error(error)
        return 2
    what_if = questions.WhatIf(lose=[lost])
    workload = {"namespace": "shop", "name": "web-1"}
    for ask in (
        moment.violations,
        lambda: moment.place(questions.PlaceQuestion()),
        lambda: moment.place(questions.PlaceQuestion(what_if)),
        lambda: moment.explain(questions.ExplainQuestion(**workload)),
        lambda: moment.fix(questions.FixQuestion(**workload, fix=1)),
        lambda: moment.scale(questions.ScaleQuestion(**workload, replicas=[3])),
    ):
        try:
            console.answer(ask().decode())
        except BayplanError as error:
            console.error(error)
            code = 2
    console.answer(moment.state.decode())
    return code


@contextlib.contextmanager
def _streams(stdin, out, err):
    saved = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    sys.stdout, sys.stderr = (_Text(raw, "utf-8", "backslashreplace", write_through=True) for raw in (out, err))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved


class _Text(io.TextIOWrapper):
    def close(self):
        """The bytes are read afterwards."""


@contextlib.contextmanager
def _time_limit():
    def stop(_signal, _frame):
        raise TooSlowError

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _processor_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _shown_traceback():
    text = traceback.format_exc()
    return text if len(text) < 6000 else f"{text[:3000]}\n…\n{text[-3000:]}"


def _cause(error):
    """The type of the exception and the innermost line of the program: failures with the same cause are one."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "bayplan" in frame.filename and "fuzzing" not in frame.filename
    ]
    where = f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].name}" if frames else "?"
    return f"{type(error).__name__} in {where}"


def _wrong(arguments, stdin, outcome):
    """Why the answer cannot be right, whatever the question was; empty if it can."""
    if outcome.seconds > MAX_SECONDS:
        return f"more than {MAX_SECONDS} s"
    if outcome.code not in _EXIT_CODES:
        return f"exit code {outcome.code}"
    # Colors are asked for; nothing else may reach a terminal.
    if found := _CONTROL.search(_SGR.sub("", outcome.stderr)):
        return f"control character {found[0]!r} in a message"
    text = outcome.stdout.decode("utf-8", "replace")
    output = arguments[arguments.index("-o") + 1] if "-o" in arguments else ""
    if "html" not in arguments and (found := _CONTROL.search(_SGR.sub("", text))):
        return f"control character {found[0]!r} in the answer"
    if arguments[0] == "decide":
        return _wrong_lines(stdin, outcome)
    if outcome.code == 2 and not outcome.stderr.strip() and not text.strip():
        return "exit code 2 without a message"
    if text and outcome.code != 2:
        try:
            if output in ("json", "sarif"):
                json.loads(text)
            elif output == "junit":
                ET.fromstring(text)
        except (ValueError, ET.ParseError) as error:
            return f"not {output}: {error}"
    return ""


def _wrong_lines(stdin, outcome):
    asked = [line for line in io.BytesIO(stdin) if line.strip()]
    answers = [json.loads(line) for line in outcome.stdout.splitlines()]
    if len(asked) != len(answers):
        return f"{len(asked)} questions, {len(answers)} answers"
    # An answer may have an error too: that of a scheduling attempt. Only a bad line is answered with its number.
    if any("line" in answer for answer in answers) != (outcome.code == 2):
        return "the exit code does not tell of bad lines"
    return ""


def prepare():
    """Settings of a process that runs cases: no configuration of the user, no collection of what stays anyway."""
    for name in [name for name in os.environ if name.startswith(("BAYPLAN", "KUBECONFIG", "XDG_"))]:
        del os.environ[name]
    os.environ["HOME"] = str(pathlib.Path.cwd())
    os.environ["COLUMNS"] = "120"
    for name in main.SUMMARIES:
        with contextlib.suppress(KeyError, click.ClickException):
            main.cli.commands[name]
    gc.collect()
    gc.freeze()
