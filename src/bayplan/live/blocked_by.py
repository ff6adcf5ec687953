"""
The end of an event about an unschedulable workload: which pods or bindings block it, by topology domain.

Decides nothing. Of other namespaces only the number of targets is said, and not where they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.explaining.peer_names import PeerNames
from bayplan.queueing.deciding import Blocker

_HOSTNAME = "kubernetes.io/hostname"


def sentence(blockers: Sequence[Blocker], names: PeerNames, reader: str, noun: str = "node") -> str:
    """
    ` Blocked by shop/web-1 and 3 more in zone=a (5 nodes), shop/web-9 on node-7, others (2 nodes).`

    As a reader in this namespace sees it; empty if nothing blocks it.
    """
    hidden: dict[str, int] = {}
    parts = []
    for one in blockers:
        visible = [peer for peer in one.peers if names.name(peer, reader) == peer]
        if not visible:
            text = names.listed(one.peers, reader) if one.peers else "others"
            hidden[text] = hidden.get(text, 0) + one.n_targets
            continue
        n_more = len(one.peers) - 1
        more = f" and {n_more} more" if n_more else ""
        parts.append(f"{visible[0]}{more}{_where(one, noun)}")
    parts += [text + _counted(n, noun) for text, n in hidden.items()]
    return f" Blocked by {', '.join(parts)}." if parts else ""


def _where(one: Blocker, noun: str) -> str:
    key, _, value = one.domain.partition("=")
    if key == _HOSTNAME:
        return f" on {value}"
    if key == noun:  # a cluster is its own domain
        return f" in {value}"
    return f" in {one.domain}{_counted(one.n_targets, noun)}" if one.domain else ""


def _counted(n: int, noun: str) -> str:
    return f" ({n} {noun}{'s'[: n != 1]})"
