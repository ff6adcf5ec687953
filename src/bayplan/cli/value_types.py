"""
Kinds of values that several options take. What is wrong with one is said under the name of its option.

Values stay as they were written, which is how `config view` shows them; `seconds` and `host_and_port` read them.
"""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0}
_LAST_PORT = 65535


def seconds(text: str) -> float:
    """A duration as kubectl writes it: 30, 30s, 2m, 500ms."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text.strip())
    if found is None:
        raise ValueError(f"expected a duration such as 30s, 500ms or 2m, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


def host_and_port(text: str) -> tuple[str, int]:
    """An address to listen on; the host may be left out."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _LAST_PORT:
        raise ValueError(f"expected an address such as 127.0.0.1:10351, got {text!r}")
    return host.strip("[]"), int(port)


class Duration(click.ParamType[str]):
    """A time; `positive` if none at all makes no sense."""

    name = "duration"

    def __init__(self, *, positive: bool = False) -> None:
        self._positive = positive

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            found = seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._positive and not found:
            self.fail(f"expected more than no time at all, got {value!r}", param, ctx)
        return str(value)


class ListenAddress(click.ParamType[str]):
    """HOST:PORT; if it is `optional`, 0 or nothing stands for nowhere."""

    name = "address"

    def __init__(self, *, optional: bool = False) -> None:
        self._optional = optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if self._optional and is_nowhere(text):
            return text
        try:
            host_and_port(text)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return text


def is_nowhere(address: str) -> bool:
    """Whether an optional address says that nothing is to listen."""
    return address in ("", "0")


class Name(click.ParamType[str]):
    """The name of something: anything that can be read, but not nothing."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("expected a name, got nothing", param, ctx)
        if not str(value).isprintable():
            self.fail(f"expected a name, got {value!r}", param, ctx)
        return str(value)
