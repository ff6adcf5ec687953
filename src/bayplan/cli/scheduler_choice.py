"""What `run` schedules: pods, the bindings of a Karmada control plane, or both in one process."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Protocol

import click
import msgspec

from bayplan.cli import run_webhook

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection
    from bayplan.live.assembly import SchedulerSettings
    from bayplan.live.event_loop import IterationTimer
    from bayplan.live.process import SchedulerProcess
    from bayplan.live.running import RunningScheduler
    from bayplan.live.running_fleet import RunningFleetScheduler
    from bayplan.mapping.bindings import LabelKeys
    from bayplan.rules.profiles import RulesByScheduler
    from bayplan.webhook.running import WebhookSettings


class MakeWebhook(Protocol):
    def __call__(self, *, fleet: bool) -> WebhookSettings | None:
        """Return the webhook, that for a Karmada control plane or that for pods; None if it is off."""


class SchedulerChoice(msgspec.Struct, frozen=True, kw_only=True):
    """
    The schedulers of one process.

    Whether bindings or pods are scheduled by `connection` is found by discovery if `fleet` is None. With a
    `fleet_connection` it is pods, and the bindings of the control plane there. `audits` is None if there are none.
    """

    connection: Connection
    fleet: bool | None
    fleet_connection: Connection | None
    settings: SchedulerSettings
    profiles: RulesByScheduler
    keys: LabelKeys
    webhook: MakeWebhook
    audits: Callable[[RunningScheduler], contextlib.AbstractAsyncContextManager[None]] | None

    def check(self) -> None:
        """Raise a usage error for options that contradict each other, before anything is connected."""
        self.webhook(fleet=False)
        if self.fleet_connection is None:
            return
        if self.fleet is not None:
            raise click.UsageError("with --fleet-context or --fleet-kubeconfig leave out --fleet and --no-fleet")
        if self.settings.record:
            raise click.UsageError("--record is for one scheduler: it excludes --fleet-context and --fleet-kubeconfig")

    async def run(self, loop_timer: IterationTimer) -> None:
        """Run until stopped."""
        async with self.connection:
            if self.fleet_connection is not None:
                async with self.fleet_connection as connection:
                    settings = msgspec.structs.replace(self.settings, addresses=(), explain_address=None)
                    await self._run_pods(loop_timer, self._of_bindings(connection, settings))
            elif await self._is_fleet():
                await self._run_bindings(loop_timer)
            else:
                await self._run_pods(loop_timer)

    async def _is_fleet(self) -> bool:
        """Whether bindings are scheduled on this API server; a usage error if there are options for pods."""
        from bayplan.watching import fleet_resources

        taken = await fleet_resources.is_fleet(self.connection) if self.fleet is None else self.fleet
        given = {
            "--audit": self.audits is not None,
            "--reserve-after": self.settings.reserve_after > 0,
        }
        if taken and any(given.values()):
            names = ", ".join(name for name, is_given in given.items() if is_given)
            raise click.UsageError(f"not available for bindings of a Karmada control plane: {names}")
        return taken

    def _of_bindings(self, connection: Connection, settings: SchedulerSettings) -> RunningFleetScheduler:
        from bayplan.live.running_fleet import RunningFleetScheduler

        return RunningFleetScheduler(connection, list(self.profiles), settings, self.keys)

    async def _run_bindings(self, loop_timer: IterationTimer) -> None:
        running = self._of_bindings(self.connection, msgspec.structs.replace(self.settings, quota=False))
        async with (
            run_webhook.opened(self.webhook(fleet=True), self.connection, running),
            _followed(running, loop_timer=loop_timer),
        ):
            await running.run()

    async def _run_pods(self, loop_timer: IterationTimer, *beside: RunningFleetScheduler) -> None:
        """Schedule pods, and the bindings of the schedulers `beside`."""
        from bayplan.live import process
        from bayplan.live.running import RunningScheduler

        running = RunningScheduler(self.connection, self.profiles, self.settings)
        for other in beside:
            running.serve_for(other)
        webhook, view = self.webhook(fleet=False), run_webhook.SchedulerView(running, self.connection)
        async with (
            run_webhook.opened(webhook, self.connection, running, view),
            contextlib.nullcontext() if self.audits is None else self.audits(running),
            _followed(running, *beside, loop_timer=loop_timer),
        ):
            await process.run_together(running, *beside)


@contextlib.asynccontextmanager
async def _followed(*running: SchedulerProcess[Any], loop_timer: IterationTimer) -> AsyncIterator[None]:
    """Measure the loop of schedulers; on signals stop them, or switch their enforcement off or on."""
    loop_timer.on_iteration = running[0].observe_loop_iteration

    def stop() -> None:
        for one in running:
            one.stop()

    def toggle_enforcement() -> None:
        for one in running:
            one.toggle_enforcement()

    for stopping in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(stopping, stop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, toggle_enforcement)
    yield
