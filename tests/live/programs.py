"""`bayplan` as a child process with input, output and signals."""

import asyncio
import contextlib
import os
import sys

import interrupts


class Program:
    """`bayplan` as a process; `said` grows with its standard error."""

    def __init__(self, child):
        self.child, self.said = child, ""
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self):
        async for line in self.child.stderr:
            self.said += line.decode()

    async def end(self):
        """Wait for its exit; return its exit code and standard output."""
        answer = await self.child.stdout.read()
        await self._listening
        return await self.child.wait(), answer.decode()


@contextlib.asynccontextmanager
async def started(command, server, *words, user="admin", stdin=asyncio.subprocess.DEVNULL):
    """Run a command against the server as `user` during the block."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan", command, "--kubeconfig", server.kubeconfig(user), *words),
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        preexec_fn=interrupts.restore,
    )
    program = Program(child)
    try:
        yield program
    finally:
        if child.returncode is None:
            child.kill()
        await program.end()


async def ended(command, server, *words, **how):
    """Run a command; return exit code, standard output and standard error."""
    async with started(command, server, *words, **how) as program:
        code, answer = await program.end()
        return code, answer, program.said
