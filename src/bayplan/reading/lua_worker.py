"""
Runs customizations in Lua 5.1, in a process of its own: one JSON question per line of standard input, one answer each.

A question has `script`, `function` and `object`; the answer has the `values` that the function returns, or an `error`.
Mirrors pkg/resourceinterpreter/customized/declarative/luavm: the same libraries, and the same functions are disabled. A
script that uses too much processor time ends the process, one that uses too much memory gets an error. Reads no files.
"""

from __future__ import annotations

import json
import math
import re
import resource
import signal
import sys
import time
from typing import Any

from bayplan.reading import lua_library

MAX_SECONDS = 1.0  # of processor time for one object, as in Karmada, where it is time on the clock
MAX_LUA_BYTES = 64 * 2**20
MAX_PROCESS_BYTES = 2**30  # of addresses
MAX_ANSWER_LENGTH = 2**20
MAX_DEPTH = 200
_DISABLED = (
    "collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring",
    "rawequal", "rawget", "rawset", "setfenv", "setmetatable", "module", "newproxy",
)  # fmt: skip
# What Lua opens and Karmada does not, and what reaches beyond Lua. `require` finds the `kube` library only.
_PREPARE = """
local kube, names = ...
local modules = {kube = kube, table = table, string = string, math = math, os = {time = os.time, date = os.date}}
os, io, debug, python, package, coroutine = modules.os, nil, nil, nil, nil, nil
string.dump, string.rep = nil, function() error("The Lua function string.rep is not supported by Karmada.") end
function require(name) return modules[name] or error("module " .. tostring(name) .. " not found") end
for i = 1, #names do
  local name = names[i]
  _G[name] = function()
    error("call function " .. name .. " is not supported in karmada customized resourceinterpreter.")
  end
end
"""
_PLACE = re.compile(r'\[string "[^"]*"\]:')  # how Lua names a script that is not a file


class NotJsonError(ValueError):
    """A value of Lua has no form in JSON."""


class LuaRun:
    """One run of a script, in a Lua of its own, so that nothing is left over for the next one."""

    def __init__(self, source: str) -> None:
        from lupa import lua51

        self._lua = lua51.LuaRuntime(
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attributes,
            max_memory=MAX_LUA_BYTES,
        )
        self._name_of = self._lua.globals().tostring
        self._type_of = self._lua.globals().type
        kube = self._lua.table_from({name: self._wrapped(one) for name, one in lua_library.FUNCTIONS.items()})
        self._lua.execute(_PREPARE, kube, self._lua.table_from(_DISABLED))
        self._lua.execute(source)

    def call(self, function: str, content: Any) -> list[Any]:
        found = self._lua.globals()[function]
        if found is None:
            raise NotJsonError(f"not found function {function}")
        returned = found(self._lua_value(content))
        values = returned if isinstance(returned, tuple) else (returned,)
        return [self._plain(value, set()) for value in values]

    def _wrapped(self, function: Any) -> Any:
        """A function of the library for Lua: it takes and returns values of Lua."""

        def call(*arguments: Any) -> Any:
            return self._lua_value(function(*(self._plain(one, set()) for one in arguments)))

        return call

    def _lua_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            items = {key: self._lua_value(one) for key, one in value.items() if one is not None}
            return self._lua.table_from(items)
        if isinstance(value, list):
            return self._lua.table_from([self._lua_value(one) for one in value])
        return value

    def _plain(self, value: Any, visited: set[str]) -> Any:
        """The value as in JSON. As in Karmada, a table that occurs twice is an error, and an empty one is a list."""
        if value is None or isinstance(value, bool | str | int):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise NotJsonError(f"json: unsupported value: {value}")
            return int(value) if value.is_integer() else value
        if self._type_of(value) != "table":
            raise NotJsonError(f"cannot encode {self._type_of(value)} to JSON")
        name = self._name_of(value)
        if name in visited or len(visited) > MAX_DEPTH * MAX_DEPTH:
            raise NotJsonError("cannot encode recursively nested tables to JSON")
        visited.add(name)
        items = list(value.items())
        if all(isinstance(key, str) for key, _ in items) and items:
            return {key: self._plain(one, visited) for key, one in items}
        if not all(isinstance(key, int | float) for key, _ in items):
            raise NotJsonError("cannot encode mixed or invalid key types")
        items.sort(key=lambda item: item[0])
        if [key for key, _ in items] != list(range(1, len(items) + 1)):
            raise NotJsonError("cannot encode sparse array")
        return [self._plain(one, visited) for _, one in items]


def _no_attributes(_object: Any, name: Any, _is_setting: bool) -> Any:
    raise AttributeError(f"no attribute {name}")


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """What the function of the script returns, or what went wrong, in one line."""
    try:
        return {"values": LuaRun(question["script"]).call(question["function"], question["object"])}
    except (Exception, RecursionError) as error:  # noqa: BLE001 (whatever a script does is its own error)
        kind = type(error).__name__
        text = "not enough memory" if kind in ("LuaMemoryError", "MemoryError") else str(error) or kind
        return {"error": " ".join(_PLACE.sub("line ", text).split())[:500]}


def main() -> None:
    """Answer until the input ends. The kernel ends the process when the time of one question is over."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_PROCESS_BYTES, MAX_PROCESS_BYTES))
    for line in sys.stdin:
        question = json.loads(line)
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
        found = answer(question)
        written = json.dumps({**found, "seconds": time.process_time() - began})
        signal.setitimer(signal.ITIMER_PROF, 0)
        if len(written) > MAX_ANSWER_LENGTH:
            written = json.dumps({"error": "the answer is too long", "seconds": time.process_time() - began})
        print(written, flush=True)  # noqa: T201 (the answer)


if __name__ == "__main__":
    main()
