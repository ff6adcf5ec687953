"""Label selectors as typed after -l, in kubectl's grammar: `app=web,tier!=db,env in (a,b),!old`. Knows no workload."""

from __future__ import annotations

import re

import click

from bayplan.model import labels
from bayplan.model.labels import Requirement, Selector

_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(([^()]*)\)")
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_PRESENCE = re.compile(rf"(!?)\s*({_KEY})")
# Commas between requirements, not those within brackets.
_COMMA = re.compile(r",(?![^()]*\))")


def parse(text: str) -> Selector:
    """The selector; raises a usage error at the first part that is none."""
    parts = [part.strip() for part in _COMMA.split(text)] if text.strip() else []
    return labels.selector_of(_requirement(part) for part in parts)


def _requirement(part: str) -> Requirement:
    if found := _SET.fullmatch(part):
        values = [value.strip() for value in found[3].split(",")]
        if all(re.fullmatch(_VALUE, value) for value in values):
            return labels.requirement(found[1], labels.IN if found[2] == "in" else labels.NOT_IN, values)
    if found := _EQUALITY.fullmatch(part):
        return labels.requirement(found[1], labels.NOT_IN if found[2] == "!=" else labels.IN, [found[3]])
    if found := _PRESENCE.fullmatch(part):
        return labels.requirement(found[2], labels.DOES_NOT_EXIST if found[1] else labels.EXISTS)
    message = f"expected requirements such as app=web, tier!=db, env in (a,b), key or !key, got {part!r}"
    raise click.BadParameter(message, param_hint="-l")
