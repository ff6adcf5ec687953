"""The options of the guard, which override its settings in the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from bayplan.cli import configuration, options
from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.validating.guard import GuardSettings

_GUARD = "Guard"
_RESTRICTIONS = ("none", "all-namespaces", "wider-than-node", "all")


class GuardOptions(msgspec.Struct, frozen=True):
    """What the guard restricts, and who is exempt."""

    restrict: str | None
    exempt_user: tuple[str, ...]
    exempt_group: tuple[str, ...]
    exempt_namespace: tuple[str, ...]

    def settings(self) -> GuardSettings:
        """The settings of the configuration file, overridden by the options; a given list replaces the file's list."""
        from bayplan.validating.guard import GuardSettings

        written: dict[str, Any] = dict(configuration.current().guard or {})
        if self.restrict is not None:
            written["restrict"] = self.restrict
        named = {"users": self.exempt_user, "groups": self.exempt_group, "namespaces": self.exempt_namespace}
        written["exempt"] = {**(written.get("exempt") or {}), **{what: who for what, who in named.items() if who}}
        return msgspec.convert(written, GuardSettings)


class RequesterOptions(msgspec.Struct, frozen=True):
    """The semantics of terms, and the user on whose behalf the guard is asked."""

    semantics: Literal["upstream", "design"]
    switch: tuple[str, ...]
    as_user: str | None
    as_group: tuple[str, ...]


GUARD = OptionGroup(
    "guard",
    GuardOptions,
    (
        Option(
            "--restrict",
            type=click.Choice(_RESTRICTIONS),
            heading=_GUARD,
            help="Required anti-affinity terms that only exempt users may set. all-namespaces (the default): terms "
            "wider than a node that cover all namespaces. wider-than-node: all terms wider than a node. all: any term.",
        ),
        Option(
            "--exempt-user", multiple=True, metavar="NAME", heading=_GUARD, help="Exempt this user. May be repeated."
        ),
        Option(
            "--exempt-group", multiple=True, metavar="NAME", heading=_GUARD, help="Exempt this group. May be repeated."
        ),
        Option(
            "--exempt-namespace",
            multiple=True,
            metavar="NAME",
            heading=_GUARD,
            help="Exempt this namespace. May be repeated.",
        ),
    ),
)

REQUESTER = OptionGroup(
    "requester",
    RequesterOptions,
    (
        *(option for option in options.DECISIONS.options if option.name in ("semantics", "switch")),
        Option("--as", "as_user", metavar="USER", heading=_GUARD, help="Check as if this user submitted the objects."),
        Option(
            "--as-group", multiple=True, metavar="GROUP", heading=_GUARD, help="Group of that user. May be repeated."
        ),
    ),
)
