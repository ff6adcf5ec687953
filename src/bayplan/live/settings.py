"""How a scheduler is run: what the flags of `bayplan run` come down to."""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.enforcing.planning import EnforcementSettings
from bayplan.model.semantics import UPSTREAM, Semantics


class ServerAddress(msgspec.Struct, frozen=True):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Election(msgspec.Struct, frozen=True, kw_only=True):
    """Of the replicas of one scheduler, who may write; times in seconds."""

    namespace: str = "kube-system"
    name: str = "bayplan"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class SchedulerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    `election` is None for a single replica that needs none; `record` is a file, empty for no recording. `scheduler` is
    the KubeSchedulerConfiguration that the rules were made from, for the recording's sake. Without `enforcement`
    nothing is enforced; with `quota` the limits of the quota are followed.
    """

    identity: str
    semantics: Semantics = UPSTREAM
    seed: str = ""
    election: Election | None = Election()
    addresses: tuple[ServerAddress, ...] = (ServerAddress("127.0.0.1", 10351),)
    dry_run: bool = False
    record: str = ""
    enforcement: EnforcementSettings | None = None
    enforcement_dry_run: bool = False
    quota: bool = False
    scheduler: dict[str, Any] | None = None
    events_per_second: float = 1000.0
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
