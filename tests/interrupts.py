"""Interrupts of programs that a test starts."""

import signal


def restore():
    """Let a new process end by SIGINT: one that a shell starts in the background ignores it, and so do its children."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
