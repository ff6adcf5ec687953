"""The options of `run` for the enforcement of execution-time rules, which is off by default."""

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


class EnforcementOptions(msgspec.Struct, frozen=True):
    """Whether rules are enforced, and the limits on evictions."""

    enforce: str | None
    enforce_affinity_grace: str
    enforce_anti_affinity_grace: str
    enforce_per_minute: int
    enforce_at_once: int
    enforce_only_if_placeable: bool
    enforce_grant: tuple[str, ...]

    @property
    def is_dry(self) -> bool:
        return self.enforce == DRY_RUN

    def settings(self) -> EnforcementSettings | None:
        """The settings; None if enforcement is off."""
        if self.enforce is None:
            return None
        from bayplan.enforcing.planning import EnforcementSettings

        return EnforcementSettings(
            affinity_grace=value_types.seconds(self.enforce_affinity_grace),
            anti_affinity_grace=value_types.seconds(self.enforce_anti_affinity_grace),
            per_minute=self.enforce_per_minute,
            at_once=self.enforce_at_once,
            only_if_placeable=self.enforce_only_if_placeable,
            granted=frozenset(self.enforce_grant),
        )


ENFORCEMENT = OptionGroup(
    "enforcement",
    EnforcementOptions,
    (
        Option(
            "--enforce",
            is_flag=False,
            flag_value=ON,
            default=None,
            type=click.Choice([ON, DRY_RUN]),
            heading=_HEADING,
            help="Evict pods that violate requiredDuringSchedulingRequiredDuringExecution. --enforce=dry-run only "
            "reports them. SIGUSR1 turns enforcement off and on again.",
        ),
        Option(
            "--enforce-affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="5m",
            show_default=True,
            heading=_HEADING,
            help="Time before a violation of required affinity is enforced. Use more than a rolling update of the "
            "peers takes.",
        ),
        Option(
            "--enforce-anti-affinity-grace",
            metavar="TIME",
            type=value_types.Duration(),
            default="1m",
            show_default=True,
            heading=_HEADING,
            help="Time before a violation of required anti-affinity is enforced.",
        ),
        Option(
            "--enforce-per-minute",
            type=click.IntRange(min=1),
            default=30,
            show_default=True,
            heading=_HEADING,
            help="Maximum number of evictions per minute.",
        ),
        Option(
            "--enforce-at-once",
            type=click.IntRange(min=1),
            default=10,
            show_default=True,
            heading=_HEADING,
            help="Maximum number of evicted pods that are still terminating.",
        ),
        Option(
            "--enforce-only-if-placeable",
            is_flag=True,
            heading=_HEADING,
            help="Evict a pod only if it fits on another node.",
        ),
        Option(
            "--enforce-grant",
            multiple=True,
            metavar="NAMESPACE",
            type=value_types.Name(),
            heading=_HEADING,
            help="Rules of this namespace may evict pods of every namespace. May be repeated. Other rules evict pods "
            "of another namespace only if its label bayplan.io/evictable-by names theirs.",
        ),
    ),
)
