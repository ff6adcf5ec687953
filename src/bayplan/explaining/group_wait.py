"""Why a group of pods waits: per domain, how many members fit and the first that does not. Searches for nothing."""

from __future__ import annotations

import msgspec

from bayplan.model.workloads import Workload, WorkloadKey

MAX_DOMAINS_SHOWN = 10


class DomainAttempt(msgspec.Struct, frozen=True):
    """
    How many members fit in a domain, with those that run, and the first `pod` that does not, with the reasons.

    `domain` is empty if the whole cluster is meant.
    """

    domain: str
    n_fitting: int
    pod: str = ""
    message: str = ""


class GroupWait(msgspec.Struct, frozen=True, kw_only=True):
    """
    Why none of the pending members of a group is placed, or not all.

    `problem` is what is wrong with the group itself; without one, `attempts` has the domains, the best one first. In
    that, `failing` does not fit beside the members in `beside`, which are on these nodes. `undecided` says that the
    search was ended before it was known whether there is a plan.
    """

    group: str
    min_members: int
    n_members: int
    n_placed: int
    problem: str = ""
    attempts: tuple[DomainAttempt, ...] = ()
    failing: Workload | None = None
    beside: tuple[tuple[Workload, str], ...] = ()
    undecided: str = ""
    conflict: tuple[str, ...] = ()

    @property
    def is_growing(self) -> bool:
        """Whether enough members run, so that only the others wait."""
        return self.n_placed >= self.min_members


def sentence(wait: GroupWait) -> str:
    """Why the group waits, in one line."""
    if wait.problem:
        return f"group {wait.group} is not placed: {wait.problem}"
    if not wait.attempts:
        return f"group {wait.group} waits: there is no node for it"
    best = wait.attempts[0]
    if wait.is_growing and not wait.min_members:
        return best.message
    if wait.is_growing:
        return (
            f"group {wait.group} has the {wait.min_members} members that must run, and no room for more: {best.message}"
        )
    where = f" in {best.domain}" if best.domain else ""
    needed = f"group {wait.group} waits: {wait.min_members} members must run"
    fitting = f"{best.n_fitting} fit{'s' if best.n_fitting == 1 else ''}{where}"
    if not best.pod:
        why = wait.undecided or "proven: no plan keeps all rules"
        return f"{needed}; {fitting} one by one, but not all at once ({why})"
    undecided = f" ({wait.undecided})" if wait.undecided else ""
    return f"{needed}; {fitting}, and {WorkloadKey(best.pod)} does not: {best.message}{undecided}"


def lines(wait: GroupWait) -> list[str]:
    """One line for each domain, the best one first, and the rules that are proven to be in conflict."""
    proven = (
        ["proven: no plan keeps all of these rules:", *(f"  {one}" for one in wait.conflict)] if wait.conflict else []
    )
    if len(wait.attempts) < 2:
        return proven
    width = max(len(one.domain) for one in wait.attempts[:MAX_DOMAINS_SHOWN])
    shown = [
        f"{one.domain.ljust(width)}  {one.n_fitting} of {wait.min_members} fit"
        + (f"; {one.pod} does not: {one.message}" if one.pod else "")
        for one in wait.attempts[:MAX_DOMAINS_SHOWN]
    ]
    n_more = len(wait.attempts) - len(shown)
    return [*shown, *([f"and {n_more} more domains"] if n_more else []), *proven]
