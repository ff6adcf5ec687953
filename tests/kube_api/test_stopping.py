"""A scheduler stops when asked to, whatever it is waiting for."""

import asyncio

from bayplan.live.assembly import SchedulerSettings
from bayplan.live.running import RunningScheduler
from bayplan.rules import profiles
from kube_api.scripted import answer, connected


async def test_stopping_before_everything_is_listed(server, kubeconfig_for):
    """The API server says who it is and then leaves every list unanswered."""
    server.then(answer({"gitVersion": "v1.36.4"}))
    async with connected(kubeconfig_for(server)) as connection:
        settings = SchedulerSettings(identity="test", election=None, addresses=())
        running = RunningScheduler(connection, {"bayplan": profiles.pod_rules()}, settings)
        task = asyncio.create_task(running.run())
        await server.asked(2)
        running.stop()
        done, _ = await asyncio.wait([task], timeout=10)
        task.cancel()
        assert done == {task}
        assert task.exception() is None
        assert not running.scheduling.is_set()
