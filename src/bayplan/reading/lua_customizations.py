"""
Asks the ResourceInterpreterCustomizations of the input for replicas and components: Lua scripts in a child process.

The scripts come with the input, so they are not trusted: the child has no environment, and it is killed at its limits
of time and memory. A script that was killed once is not run again, nor one that took very long for all objects so far.
Lua is an optional dependency, the extra `lua`.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import select
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Self

import msgspec

import bayplan
from bayplan.controllers import interpretation, interpreted_kinds
from bayplan.controllers.interpretation import Interpretation, NotInterpretedError
from bayplan.controllers.resource_interpreter import ONLY_METADATA, Answers, is_metadata_only
from bayplan.model.semantics import Semantics
from bayplan.reading.collecting import Inputs
from bayplan.wire import kinds
from bayplan.wire.fleets import BindingComponent, LuaRule, ReplicaRequirements

MAX_SECONDS_ON_THE_CLOCK = 20.0  # for one object: the limit of processor time comes first, unless a script sleeps
NEEDS_EXTRA = "running Lua needs the extra `lua`: pip install bayplan[lua]"
NO_WHOLE_OBJECTS = "customizations of kinds of Kubernetes are not run"
MAX_SECONDS_OF_ALL_OBJECTS = 60.0  # of processor time, for one script
KILLED = "the script was killed: it took longer than 1 second, or too much memory"
TOO_SLOW = (
    f"the script is no longer run: it took more than {MAX_SECONDS_OF_ALL_OBJECTS:.0f} seconds for the objects before"
)
_REPLICAS, _COMPONENTS = "GetReplicas", "GetComponents"


class LuaScript(msgspec.Struct, frozen=True):
    """A script, the function to call, and the customization that has it."""

    customization: str
    source: str
    function: str


def answers_of(inputs: Inputs, semantics: Semantics) -> Answers:
    """The answers for all templates of the kinds that the customizations of the input are for."""
    gate = semantics.multiple_pod_templates_scheduling
    scripts = _scripts(inputs, with_components=gate)
    if not scripts:
        return Answers(with_components=gate)
    found: dict[Any, Interpretation | str] = {}
    for row in kinds.propagated():
        script = scripts.get((row.api_version, row.kind))
        for one in inputs.list_of(row) if script is not None else ():
            assert script is not None
            key = one.api_version, one.kind, one.metadata.namespace, one.metadata.name
            found[key] = _of(script, NO_WHOLE_OBJECTS)
    has_lua = importlib.util.find_spec("lupa") is not None
    with Worker() as worker:
        for key, content in inputs.template_contents.items():
            script = scripts.get(key[:2])
            if script is None:
                continue
            if is_metadata_only(content):
                found[key] = ONLY_METADATA
            else:
                found[key] = answer(script, content, worker) if has_lua else _of(script, NEEDS_EXTRA)
    return Answers(found, with_components=gate)


def _scripts(inputs: Inputs, *, with_components: bool) -> dict[tuple[str, str], LuaScript]:
    """The script for each version and kind; of several customizations the first by name decides."""
    found: dict[tuple[str, str], LuaScript] = {}
    for function, is_asked in ((_COMPONENTS, with_components), (_REPLICAS, True)):
        for one in sorted(inputs.customizations, key=lambda one: one.metadata.name) if is_asked else ():
            target, rules = one.spec.target, one.spec.customizations
            rule: LuaRule | None = rules.component_resource if function == _COMPONENTS else rules.replica_resource
            kind = target.api_version, target.kind
            shipped = interpreted_kinds.INTERPRETED.get(kind)
            # Components come first, also those that Karmada itself reads.
            reads_components = with_components and shipped is not None and shipped.components is not None
            if rule is not None and rule.lua_script and not (function == _REPLICAS and reads_components):
                found.setdefault(kind, LuaScript(one.metadata.name, rule.lua_script, function))
    return found


def _of(script: LuaScript, why: str) -> str:
    return f"ResourceInterpreterCustomization {script.customization}: {why}"


def answer(script: LuaScript, content: Mapping[str, Any], worker: Worker) -> Interpretation | str:
    """What the script answers, or why it does not."""
    try:
        values = [*worker.ask(script, content), None, None]
        if script.function == _COMPONENTS:
            return Interpretation(components=_components(values[0]))
        replicas = interpretation.replicas_of(values[0], "the first value")
        requirements = None if values[1] is None else _converted(values[1] or {}, ReplicaRequirements)
    except NotInterpretedError as error:
        return _of(script, str(error))
    return Interpretation(has_replicas=True, replicas=replicas, requirements=requirements)


def _components(value: Any) -> tuple[BindingComponent, ...]:
    found: list[BindingComponent] = _converted(value or [], list[BindingComponent])
    return tuple(found)


def _converted(value: Any, wire_type: Any) -> Any:
    try:
        found = msgspec.convert(interpretation.without_empty(value), wire_type)
    except msgspec.ValidationError as error:
        raise NotInterpretedError(str(error)) from None
    for one in found if isinstance(found, list) else [found]:
        requirements = one.replica_requirements if isinstance(one, BindingComponent) else one
        for name, amount in ((requirements.resource_request if requirements else None) or {}).items():
            interpretation.request_of(amount, name)
    return found


class Worker:
    """The child process, started when it is first asked, and again after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._killed: set[LuaScript] = set()
        self._seconds: dict[LuaScript, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def ask(self, script: LuaScript, content: Mapping[str, Any]) -> list[Any]:
        """The values that the function returns for the object; raises NotInterpretedError."""
        if script in self._killed:
            raise NotInterpretedError(KILLED)
        if self._seconds.get(script, 0.0) > MAX_SECONDS_OF_ALL_OBJECTS:
            raise NotInterpretedError(TOO_SLOW)
        line = self._line({"script": script.source, "function": script.function, "object": content})
        if not line:
            self._killed.add(script)
            self._end()
            raise NotInterpretedError(KILLED)
        found: dict[str, Any] = json.loads(line)
        self._seconds[script] = self._seconds.get(script, 0.0) + found["seconds"]
        if "error" in found:
            raise NotInterpretedError(found["error"])
        values: list[Any] = found["values"]
        return values

    def _line(self, question: Mapping[str, Any]) -> bytes:
        """The answer; empty if the process ended or does not answer in time."""
        process = self._process = self._process or _started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(question) + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return b""
        ready, _, _ = select.select([process.stdout], [], [], MAX_SECONDS_ON_THE_CLOCK)
        return process.stdout.readline() if ready else b""

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _started() -> subprocess.Popen[bytes]:
    """A worker that finds this package and nothing else of the environment."""
    root = str(pathlib.Path(next(iter(bayplan.__path__))).parent)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "bayplan.reading.lua_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": root, "PYTHONIOENCODING": "utf-8"},
    )
