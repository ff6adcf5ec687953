"""
The table of commands: their names and summaries, and each command once it is needed.

The summaries stand here rather than in the modules of the commands, so that help and completion list the commands
without importing them.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

import click

SUMMARIES: Mapping[str, str] = {
    "audit": "Check that nodes run on separate machines, and what remains after the loss of one.",
    "bench": "Measure decisions per second on a benchmark input.",
    "completion": "Print a shell completion script.",
    "config": "View the configuration.",
    "decide": "Answer scheduling questions: JSON lines in, JSON lines out.",
    "explain": "Explain where a workload is placed, or why every node is rejected.",
    "explain-rule": "Explain a reason for rejecting a node or cluster, and what to do about it.",
    "place": "Show where pending pods would be placed, one after another.",
    "quota": "Show what each namespace is charged for pods that occupy a whole topology domain.",
    "rebalance": "Plan the fewest moves that better satisfy soft rules, and optionally make them.",
    "replay": "Repeat the decisions that `run --record` recorded, or explain one of them.",
    "run": "Run the scheduler on a live cluster.",
    "snapshot": "Write a cluster to one JSON file for a bug report.",
    "validate": "Check manifests as an API server does, without a cluster.",
    "version": "Print the version, and the supported versions of Kubernetes and Karmada.",
    "violations": "List violations of execution-time rules, and the pods that enforcement would evict.",
}


class LazyCommands(Mapping[str, click.Command]):
    """The commands by name. The command `explain-rule` is `explain_rule` of the module `explain_rule`."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in SUMMARIES:
            raise KeyError(name)
        own_name = name.replace("-", "_")
        module = importlib.import_module(f"bayplan.cli.{own_name}")
        command: click.Command = getattr(module, own_name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)
