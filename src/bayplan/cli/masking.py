"""The command line as others may see it: without its secrets. Which options hold one, they say themselves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

HIDDEN = "REDACTED"  # kubectl's word for it
_PASSWORD = re.compile(r"(?<=://)[^/\s]*@")  # name and password before the host of an address


def is_secret(param: click.Parameter) -> bool:
    """Whether the option's value is nobody's business but the user's."""
    return bool(getattr(param, "secret", False))


def value(param: click.Parameter, given: Any) -> Any:
    """The value of an option as others may see it."""
    if given and is_secret(param):
        return HIDDEN
    return _without_password(given) if isinstance(given, str) else given


def arguments(command: click.Command, given: Sequence[str]) -> list[str]:
    """The words of a command line as others may see them."""
    secret = {name for param in command.params if is_secret(param) for name in param.opts}
    shown: list[str] = []
    for word in given:
        name, equals, _ = word.partition("=")
        if shown and shown[-1] in secret:
            shown.append(HIDDEN)
        elif equals and name in secret:
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(_without_password(word))
    return shown


def _without_password(text: str) -> str:
    return _PASSWORD.sub(f"{HIDDEN}@", text)
