"""`bayplan` as a process of its own that is asked, listened to, interrupted."""

import asyncio
import contextlib
import os
import sys


class Program:
    """`bayplan` as a process; `said` grows with what it says."""

    def __init__(self, child):
        self.child, self.said = child, ""
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self):
        async for line in self.child.stderr:
            self.said += line.decode()

    async def end(self):
        """Its exit code and what it answered."""
        answer = await self.child.stdout.read()
        await self._listening
        return await self.child.wait(), answer.decode()


@contextlib.asynccontextmanager
async def started(command, server, *words, user="admin", stdin=asyncio.subprocess.DEVNULL):
    """A command on the server, as `user`, while the block lasts."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan", command, "--kubeconfig", server.kubeconfig(user), *words),
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    program = Program(child)
    try:
        yield program
    finally:
        if child.returncode is None:
            child.kill()
        await program.end()


async def ended(command, server, *words, **how):
    """Exit code, answer and what else was said."""
    async with started(command, server, *words, **how) as program:
        code, answer = await program.end()
        return code, answer, program.said
