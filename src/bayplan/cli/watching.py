"""
An answer that is written again whenever it changes, until the user interrupts it.

Only what differs from the last answer is written: other objects of a cluster change all the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bayplan.cli import commands, loading
from bayplan.cli.console import Console
from bayplan.errors import BayplanError

if TYPE_CHECKING:
    from bayplan.library.cluster import Cluster
    from bayplan.library.explanation import Explanation
    from bayplan.library.fleet import Fleet
    from bayplan.library.inputs import Scope
    from bayplan.library.watched import WatchedState


def show(
    watched: WatchedState,
    scope: Scope,
    ask: Callable[[Cluster | Fleet], Explanation],
    output: str,
    console: Console,
) -> int:
    """
    Write the answer, and every other one that follows; the exit code is that of an interrupted command.

    An error of the first answer is raised. Later ones are reported, since a file may be half written and a workload may
    come back.
    """
    shown: str | BayplanError | None = None
    messages = _NewMessages(console)
    try:
        with watched:
            while True:
                try:
                    with console.progress() as progress:
                        state = watched.now(scope, progress)
                    found = ask(state)
                    text = found.to_text(output, width=console.table_width)
                except BayplanError as error:
                    if shown is None:
                        raise
                    if str(error) != str(shown):
                        console.error(error)
                    shown = error
                else:
                    if text != shown:
                        messages.tell(found, is_first=shown is None)
                        console.answer(_separated(text, output, console, is_first=shown is None))
                    shown = text
                watched.wait()
    except KeyboardInterrupt:
        return commands.EXIT_INTERRUPTED


class _NewMessages:
    """Notes and warnings that the answer before did not have."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: frozenset[str] = frozenset()

    def tell(self, found: Explanation, *, is_first: bool) -> None:
        if not is_first:
            self._console.note(f"answer of {time.strftime('%H:%M:%S')}")
        for note in found.notes:
            if note not in self._told:
                self._console.note(note)
        loading.warn((one for one in found.warnings if str(one) not in self._told), self._console)
        self._told = frozenset((*found.notes, *map(str, found.warnings)))


def _separated(text: str, output: str, console: Console, *, is_first: bool) -> str:
    """The answer apart from the one before, as documents of its format are; a file holds only one."""
    if is_first or console.output_file or output == "json":
        return text
    return f"---\n{text}" if output == "yaml" else f"\n{text}"
