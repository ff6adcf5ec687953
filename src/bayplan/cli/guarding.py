"""The options of the guard, on top of what the configuration file says of it. Knows nothing of what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from bayplan.cli import configuration, options
from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.model.semantics import Semantics
    from bayplan.validating.guard import GuardSettings, Requester

_GUARD = "Guard"
_RESTRICTIONS = ("none", "all-namespaces", "wider-than-node", "all")


class Restricting(msgspec.Struct, frozen=True):
    """What only some may do, and who they are."""

    restrict: str | None
    exempt_user: tuple[str, ...]
    exempt_group: tuple[str, ...]
    exempt_namespace: tuple[str, ...]

    def settings(self) -> GuardSettings:
        """The file's settings with the options set on them: a list that is given takes the place of the file's."""
        from bayplan.validating.guard import GuardSettings

        written: dict[str, Any] = dict(configuration.current().guard or {})
        if self.restrict is not None:
            written["restrict"] = self.restrict
        named = {"users": self.exempt_user, "groups": self.exempt_group, "namespaces": self.exempt_namespace}
        written["exempt"] = {**(written.get("exempt") or {}), **{what: who for what, who in named.items() if who}}
        return msgspec.convert(written, GuardSettings)


class Asking(msgspec.Struct, frozen=True):
    """By which meaning of the terms, and as whom, to ask the guard."""

    semantics: str
    switch: tuple[str, ...]
    as_user: str | None
    as_group: tuple[str, ...]

    def parsed_semantics(self) -> Semantics:
        """The preset with the switches set on it."""
        from bayplan.cli import switches

        return switches.semantics(self.semantics, self.switch)

    def requester(self) -> Requester:
        """Who would hand the objects in; nobody in particular by default."""
        from bayplan.validating.guard import Requester

        return Requester(self.as_user or "", self.as_group)


RESTRICTING = OptionGroup(
    "restricting",
    Restricting,
    (
        Option(
            "--restrict",
            type=click.Choice(_RESTRICTIONS),
            heading=_GUARD,
            help="What only the exempt may do with hard anti-affinity: reach beyond a node across all namespaces "
            "(the default), reach beyond a node, or anything.",
        ),
        Option("--exempt-user", multiple=True, metavar="NAME", heading=_GUARD, help="A user who may. May be repeated."),
        Option("--exempt-group", multiple=True, metavar="NAME", heading=_GUARD, help="A group that may."),
        Option("--exempt-namespace", multiple=True, metavar="NAME", heading=_GUARD, help="A namespace where all may."),
    ),
)

ASKING = OptionGroup(
    "asking",
    Asking,
    (
        *(option for option in options.DECIDING.options if option.name in ("semantics", "switch")),
        Option("--as", "as_user", metavar="USER", heading=_GUARD, help="Judge as if this user handed it in."),
        Option("--as-group", multiple=True, metavar="GROUP", heading=_GUARD, help="And these groups of theirs."),
    ),
)
