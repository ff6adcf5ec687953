"""The switches of `--switch NAME=VALUE`, set on a preset. Knows nothing of what they switch."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import click
import msgspec

from bayplan.model.semantics import PRESETS, Semantics

_HINT = "--switch"


def semantics(preset: str, given: Iterable[str]) -> Semantics:
    """The preset with the switches set on it; raises a usage error for one that is none."""
    settings = msgspec.to_builtins(PRESETS[preset])
    for switch in given:
        name, equals, text = switch.partition("=")
        if not equals:
            raise click.BadParameter(f"expected NAME=VALUE, got {switch!r}", param_hint=_HINT)
        if name not in settings:
            raise click.BadParameter(_unknown(name, list(settings)), param_hint=_HINT)
        settings[name] = _value(name, text, settings[name])
    return msgspec.convert(settings, Semantics)


def names() -> list[str]:
    """Every switch there is."""
    return [field.encode_name for field in msgspec.structs.fields(Semantics)]


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"unknown switch {name!r}; {advice}"


def _value(name: str, text: str, preset: Any) -> Any:
    if isinstance(preset, int) and not isinstance(preset, bool):
        if not text.isdecimal():
            raise click.BadParameter(f"expected {name}=N, a whole number, got {text!r}", param_hint=_HINT)
        return int(text)
    if not isinstance(preset, bool):
        return [item for item in text.split(",") if item]
    if text not in ("true", "false"):
        raise click.BadParameter(f"expected {name}=true or {name}=false, got {text!r}", param_hint=_HINT)
    return text == "true"
