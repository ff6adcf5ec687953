"""
The table of commands: their names and summaries.

The summaries stand here rather than in the modules of the commands, so that help and completion list the commands
without importing them.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    "simulate": "Simulate what happens to a cluster in the course of a timeline, and check expectations.",
    "snapshot": "Write a cluster to one JSON file for a bug report.",
    "ui": "Serve a page that shows where everything is, why, and what happens if.",
    "validate": "Check manifests as an API server does, without a cluster.",
    "version": "Print the version, and the supported versions of Kubernetes and Karmada.",
    "violations": "List violations of execution-time rules, and the pods that enforcement would evict.",
    "webhook-certificates": "Create and rotate the certificates and secret paths of the admission webhook.",
}
