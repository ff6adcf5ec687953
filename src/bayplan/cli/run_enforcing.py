"""The options of `run` that have execution-time rules enforced. Off unless asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import value_types
from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.enforcing.planning import EnforcementSettings

_HEADING = "Enforcement of execution-time rules"
ON, DRY_RUN = "on", "dry-run"


class Enforcing(msgspec.Struct, frozen=True):
    """Whether rules are enforced, and how evictions are held back."""

    enforce: str | None
    enforce_affinity_grace: str
    enforce_anti_affinity_grace: str
    enforce_per_minute: int
    enforce_at_once: int
    enforce_only_if_placeable: bool

    @property
    def is_dry(self) -> bool:
        return self.enforce == DRY_RUN

    def settings(self) -> EnforcementSettings | None:
        """None if nothing is enforced."""
        if self.enforce is None:
            return None
        from bayplan.enforcing.planning import EnforcementSettings

        return EnforcementSettings(
            affinity_grace=value_types.seconds(self.enforce_affinity_grace),
            anti_affinity_grace=value_types.seconds(self.enforce_anti_affinity_grace),
            per_minute=self.enforce_per_minute,
            at_once=self.enforce_at_once,
            only_if_placeable=self.enforce_only_if_placeable,
        )


ENFORCING = OptionGroup(
    "enforcing",
    Enforcing,
    (
        Option(
            "--enforce",
            is_flag=False,
            flag_value=ON,
            default=None,
            type=click.Choice([ON, DRY_RUN]),
            heading=_HEADING,
            help="Evict pods that break requiredDuringSchedulingRequiredDuringExecution; --enforce=dry-run only says "
            "whom. SIGUSR1 switches it off and on again.",
        ),
        Option(
            "--enforce-affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="5m",
            show_default=True,
            heading=_HEADING,
            help="How long a pod may be without its partner: longer than the partner's rolling update.",
        ),
        Option(
            "--enforce-anti-affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="1m",
            show_default=True,
            heading=_HEADING,
            help="How long pods may stand together that must not.",
        ),
        Option(
            "--enforce-per-minute",
            type=click.IntRange(min=1),
            default=30,
            show_default=True,
            heading=_HEADING,
            help="Evictions a minute at most.",
        ),
        Option(
            "--enforce-at-once",
            type=click.IntRange(min=1),
            default=10,
            show_default=True,
            heading=_HEADING,
            help="Evicted pods that may be on their way out at once.",
        ),
        Option(
            "--enforce-only-if-placeable",
            is_flag=True,
            heading=_HEADING,
            help="Spare whoever has no other place to go.",
        ),
    ),
)
