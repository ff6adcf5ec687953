"""
Checks of how control-plane nodes, control-plane components and workers are distributed over failure domains.

The checks of etcd's quorum are in `etcd`, those that BSI asks for in `bsi`.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.auditing import spread
from bayplan.auditing.layout import COMPONENTS, DECLARED, ETCD, HOST, INFERRED, LEVELS, OBSERVED, ZONE
from bayplan.auditing.outcomes import (
    BROKEN,
    HIDDEN,
    HOLDS,
    NOT_APPLICABLE,
    OPEN,
    SHORT_NAMES,
    UNKNOWN_COMPONENTS,
    AuditFacts,
    Check,
    CheckOutcome,
    hidden,
    layout_text,
    not_in_use,
    state_of,
    unknown_members,
)
from bayplan.auditing.spread import DomainSpread

# cp-hidden: the control plane is visible at all; otherwise no statement about it is made.


def _visible(facts: AuditFacts) -> CheckOutcome:
    if facts.hidden:
        return CheckOutcome(OPEN, HIDDEN, fix="give the dump of the hosting cluster with --hosting")
    names = tuple(node.name for node in facts.layout.control_plane)
    observed = OBSERVED in facts.layout.component_evidence.values()
    where = " of the hosting cluster" if facts.layout.is_hosted else ""
    return CheckOutcome(HOLDS, f"{len(names)} control-plane nodes{where}", names, OBSERVED if observed else INFERRED)


VISIBLE = (Check("cp-hidden", "The control plane is visible", "SCS-0214-v2", _visible),)


# cp-role-mismatch: role labels and running components agree on which nodes belong to the control plane.


def _roles_match(facts: AuditFacts) -> CheckOutcome:
    layout = facts.layout
    if layout.is_hosted:
        return CheckOutcome(NOT_APPLICABLE, "the control plane runs on another cluster")
    if OBSERVED not in layout.component_evidence.values():
        return CheckOutcome(NOT_APPLICABLE, "no component was seen running")
    running = {
        member.node
        for component, members in layout.members.items()
        if component != ETCD and layout.component_evidence[component] == OBSERVED
        for member in members
    }
    labelled = {node.name for node in layout.nodes if node.role_labels}
    if labelled == running:
        return CheckOutcome(HOLDS, "role labels and running components agree", (), OBSERVED)
    texts = [f"{name} has the role but runs no component" for name in sorted(labelled - running)]
    texts += [f"{name} runs a component without the role" for name in sorted(running - labelled)]
    return CheckOutcome(BROKEN, "; ".join(texts), tuple(sorted(labelled ^ running)), OBSERVED)


ROLE_MISMATCH = (Check("cp-role-mismatch", "Role labels match running components", "node roles", _roles_match),)


# scs-0214-cp-machines: control-plane nodes run on at least two physical machines. Zones prove it where hosts are not
# labelled.


def _machines(facts: AuditFacts) -> CheckOutcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    found = facts.spread(nodes, HOST)
    state = state_of(found.judge(spread.separate))
    message = f"control-plane nodes: {layout_text(found)}"
    if state == OPEN:
        fix = f"label {', '.join(found.unknown)} with the id of the physical host"
        return CheckOutcome(state, message, found.unknown, INFERRED, fix)
    if found.unknown and state == HOLDS:
        message = f"{message}; zones and regions settle it"
    fix = "" if found.hi < found.n else "move control-plane nodes to further machines, at least three in all"
    return CheckOutcome(state, message, tuple(node.name for node in nodes), found.evidence, fix)


MACHINES = (
    Check("scs-0214-cp-machines", "Control plane on several physical machines", "SCS-0214-v2, MUST", _machines),
)


# scs-0214-cp-zones: control-plane nodes span zones.


def _zones(facts: AuditFacts) -> CheckOutcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    found = facts.spread(nodes, ZONE)
    names = found.unknown or tuple(node.name for node in nodes)
    message = f"control-plane nodes: {layout_text(found)}"
    return CheckOutcome(state_of(found.judge(spread.separate)), message, names, found.evidence)


ZONES = (Check("scs-0214-cp-zones", "Control plane over several zones", "SCS-0214-v2, SHOULD", _zones),)


# scs-0214-worker-spread: workers span zones; in a single zone, hosts.


def _workers(facts: AuditFacts) -> CheckOutcome:
    nodes = facts.layout.workers
    if len(nodes) < 2:
        return CheckOutcome(NOT_APPLICABLE, f"{len(nodes)} worker{'s'[: len(nodes) != 1]}: nothing to spread")
    found = facts.spread(nodes, ZONE)
    holds = found.judge(spread.separate)
    if holds is False:
        found = facts.spread(nodes, HOST)
        holds = found.judge(spread.separate)
    names = () if holds else found.unknown or tuple(node.name for node in nodes)
    return CheckOutcome(state_of(holds), f"workers: {layout_text(found)}{_skew_text(found)}", names, found.evidence)


def _skew_text(found: DomainSpread) -> str:
    """The difference between the fullest and the emptiest domain in use; empty unless every domain is known."""
    if found.unknown or len(found.counts) < 2 or found.counts[0] == found.counts[-1]:
        return ""
    share = round(100 * found.counts[0] / found.n)
    return f", skew {found.counts[0] - found.counts[-1]}, {share} % on the fullest"


WORKER_SPREAD = (
    Check("scs-0214-worker-spread", "Workers over several zones or hosts", "SCS-0214-v2, RECOMMENDED", _workers),
)


# scs-0214-cp-each-zone: a control-plane node is in every zone in use, as older versions of the standard require.


def _each_zone(facts: AuditFacts) -> CheckOutcome:
    nodes = facts.layout.control_plane
    if not nodes:
        return hidden()
    used = {zone for node in facts.layout.nodes if (zone := node.at(ZONE))}
    covered = {node.at(ZONE) for node in nodes}
    missing = sorted(used - covered)
    if not missing:
        return CheckOutcome(HOLDS, f"the control plane is in all {len(used)} zones in use", (), DECLARED)
    message = f"no control-plane node in {', '.join(missing)}"
    return CheckOutcome(OPEN if None in covered else BROKEN, message, (), DECLARED)


EACH_ZONE = (
    Check("scs-0214-cp-each-zone", "Control plane in each zone in use", "SCS-0214-v1 and v2 draft, MUST", _each_zone),
)


# scs-0213-dup-COMPONENT: every control-plane component has at least two instances.


def _duplicated(component: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        unknown = unknown_members(facts, component)
        if unknown is not None:
            return unknown
        members = facts.layout.members[component]
        names = tuple(dict.fromkeys(member.node for member in members))
        evidence = facts.layout.component_evidence[component]
        state = HOLDS if len(members) >= 2 else BROKEN
        message = f"{len(members)} of {component}"
        return CheckOutcome(state, message, names, evidence, "" if state == HOLDS else f"run a second {component}")

    return run


DUPLICATED = tuple(
    Check(f"scs-0213-dup-{short}", f"At least two of {name}", "SCS-0213, REQUIRED", _duplicated(name))
    for short, name in SHORT_NAMES.items()
)


# scs-0213-half-COMPONENT: no machine runs more than half of the instances of a control-plane component.


def _half(component: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        unknown = unknown_members(facts, component)
        if unknown is not None:
            return unknown
        found = facts.spread(facts.layout.nodes_of(component), HOST)
        holds = found.judge(spread.half)
        fullest = [] if holds else [nodes for nodes in found.nodes_by_domain.values() if len(nodes) == found.hi]
        names = found.unknown if holds is None else tuple(name for nodes in fullest for name in nodes)
        message = f"{component}: {layout_text(found)}{_no_disjoint_halves_text(found)}"
        return CheckOutcome(state_of(holds), message, names, facts.layout.component_evidence[component])

    return run


def _no_disjoint_halves_text(found: DomainSpread) -> str:
    """
    A remark where the stricter reading of the standard is not met: two halves that share no host.

    It is made only where the check holds and every host is known.
    """
    if found.unknown or found.n < 2 or not found.judge(spread.half):
        return ""
    sums = {0}
    for count in found.counts:
        sums |= {count + other for other in sums}
    return "" if sums & {found.n // 2, (found.n + 1) // 2} else "; not two halves that share no host"


HALF = tuple(
    Check(f"scs-0213-half-{short}", f"Half of {name} on other machines", "SCS-0213, SHOULD", _half(name))
    for short, name in SHORT_NAMES.items()
)


# fd-n1-component-LEVEL: every component keeps one healthy instance after the loss of any one domain of the level.


def _n1_component(level: str) -> Callable[[AuditFacts], CheckOutcome]:
    def run(facts: AuditFacts) -> CheckOutcome:
        unused = not_in_use(facts, level)
        if unused is not None:
            return unused
        if facts.hidden:
            return CheckOutcome(OPEN, HIDDEN)
        survives = {component: _survives(facts, component, level) for component in COMPONENTS}
        evidence = next(iter(facts.layout.component_evidence.values()), "")
        lost = [component for component, holds in survives.items() if holds is False]
        if lost:
            return CheckOutcome(BROKEN, f"one {level} can take all of {', '.join(lost)}", (), evidence)
        unsure = [component for component, holds in survives.items() if holds is None]
        if any(component not in facts.layout.members for component in unsure):
            return CheckOutcome(OPEN, UNKNOWN_COMPONENTS)
        if unsure:
            return CheckOutcome(OPEN, f"one {level} may hold all of {', '.join(unsure)}", (), evidence)
        return CheckOutcome(HOLDS, f"no single {level} holds all of a component", (), evidence)

    return run


def _survives(facts: AuditFacts, component: str, level: str) -> bool | None:
    members = facts.layout.members.get(component)
    if members is None:
        return None
    healthy = [facts.known[m.node] for m in members if m.healthy and m.node in facts.known]
    return facts.spread(healthy, level).judge(spread.separate)


N1_COMPONENT = tuple(
    Check(f"fd-n1-component-{level}", f"Every component survives any one {level}", "N-1", _n1_component(level))
    for level in LEVELS
)
