"""Exit codes, and which one an exception stands for. Knows nothing of commands."""

from __future__ import annotations

import click

from bayplan.errors import BayplanError, ClusterError

YES = 0
NO = 1
BAD_INPUT = 2
NO_ACCESS = 3
BUG = 70  # EX_SOFTWARE: 1 would read as "the answer is no"
INTERRUPTED = 130  # 128 and SIGINT, as a shell would say
BROKEN_PIPE = 141  # 128 and SIGPIPE


def of(answer: bool, *, exit_zero: bool = False) -> int:
    """The exit code of a yes or a no; a report that was asked for is no failure."""
    return YES if answer or exit_zero else NO


def of_error(error: BayplanError) -> int:
    """The exit code of something that went wrong outside of us."""
    return NO_ACCESS if isinstance(error, ClusterError) else BAD_INPUT


def of_click(error: click.ClickException) -> int:
    """Say what was wrong with the command line; the exit code for it."""
    error.show()
    return BAD_INPUT
