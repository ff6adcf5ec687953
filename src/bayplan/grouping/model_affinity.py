"""
Required affinity and anti-affinity between pending pods, in both directions, and the one domain of a group.

What the terms select among placed pods comes from the rule. A term about several keys, or about labels that a pod gets
from its node, makes no constraint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import msgspec

from bayplan.grouping.plan_model import PendingClass, PlanModel, RuleKey
from bayplan.grouping.problem import GroupToPlace
from bayplan.indexing.slots import ABSENT, ALL, ValueColumn
from bayplan.model.reasons import Mask
from bayplan.model.terms import PeerTerm, PodTerm, ResolvedTerm, resolve
from bayplan.rules.inter_pod_affinity.evidence import show_term
from bayplan.rules.inter_pod_affinity.rule import InterPodAffinity
from bayplan.rules.inter_pod_affinity.state import CountedTerm, ExistingPodTerm, InterPodAffinityState, RequiredAffinity

OF_PLACED_PODS = RuleKey(InterPodAffinity.id, detail="required anti-affinity of placed pods")
Pairs = dict[ValueColumn, dict[frozenset[PendingClass], int]]  # classes that exclude each other, with the rule


def rejections(model: PlanModel) -> Iterator[tuple[PendingClass, RuleKey, Mask]]:
    """The nodes that anti-affinity to placed pods, or theirs, rejects, and those without a key that is needed."""
    for one, state in _states(model):
        # Where a term of placed pods rejects only while it is satisfied, further pods may lift that.
        if not any(existing.while_satisfied for existing in state.existing_anti_affinity):
            of_placed = msgspec.structs.replace(
                state, required_affinity=(), required_anti_affinity=(), needed_columns=(), first_by_term=()
            )
            rule = next(result.rule for result in one.results if isinstance(result.rule, InterPodAffinity))
            codes = rule.reject(of_placed, model.index, ALL)
            if codes is not None and codes.any():
                yield one, OF_PLACED_PODS, codes != 0
        for term in state.required_anti_affinity:
            yield one, _key(one, term.use.source, "anti-affinity"), term.reach.exceeds(term.use.limit, ALL)
            if state.needed_columns and term.use.source.topology_key:  # else any of several keys
                yield one, _key(one, term.use.source, "anti-affinity"), ~term.reach.present(ALL)
        for required in state.required_affinity:
            if required.first_needs_key:
                yield one, _key(one, required.use.source, "affinity"), ~required.reach.present(ALL)


def add(model: PlanModel) -> None:
    """What pending pods require of each other and exclude, and what placed pods exclude of them together."""
    apart: Pairs = defaultdict(dict)
    for one, state in _states(model):
        _add_affinity(model, one, state)
        _add_anti_affinity(model, one, state, apart)
        for existing in state.existing_anti_affinity:
            # Without a limit, any pod that matches is rejected already; some semantics depend on more.
            if existing.matches is not None and not existing.while_satisfied:
                _limit_existing(model, one, existing)
        model.check_size()
    for column, pairs in apart.items():
        _add_cliques(model, column, pairs)


def _states(model: PlanModel) -> Iterator[tuple[PendingClass, InterPodAffinityState]]:
    for one in model.classes:
        for result in one.results:
            if isinstance(result.rule, InterPodAffinity) and result.rule.filters:
                yield one, result.evaluation.state


def _key(one: PendingClass, source: PodTerm, what: str) -> RuleKey:
    detail = f"required {what} to {show_term(source)} on {source.topology_key}"
    return RuleKey(InterPodAffinity.id, (one.first.namespace, source), source.path, detail)


def _is_beyond(model: PlanModel, term: PeerTerm, columns: Sequence[ValueColumn]) -> bool:
    return len(columns) > 1 or bool(columns[0].further) or model.reads_copied_labels(term)


# Affinity


def _add_affinity(model: PlanModel, one: PendingClass, state: InterPodAffinityState) -> None:
    together = [required for required in state.required_affinity if required.own_reach is None]
    first_of_all = _first_pod(model, one, together) if together else None
    for required in state.required_affinity:
        terms = (required.term, required.use.term)
        if any(_is_beyond(model, term, required.reach.columns) for term in terms):
            continue
        number = model.rule(_key(one, required.use.source, "affinity"), one)
        first = first_of_all if required.own_reach is None else _first_pod(model, one, [required])
        _add_peers(model, one, required, number, first)


def _first_pod(model: PlanModel, one: PendingClass, terms: Sequence[RequiredAffinity]) -> int | None:
    """A variable that is 1 only if the pod is the one that its terms select; None if others are selected anyway."""
    for term in terms:
        is_occupied = term.reach.occupied if term.own_reach is None else term.own_reach.anywhere
        if not term.self_matching or is_occupied:
            return None
    columns = [column for term in terms for column in term.reach.columns]
    if one.is_required and len(one.pods) > 1 and not any(model.counts_in(one, each, ABSENT) for each in columns):
        return None  # they select each other
    first = model.linear.variable(1)
    for term in terms:
        selected = term.term if term.own_reach is None else term.use.term
        if not _is_beyond(model, selected, term.reach.columns):
            column = term.reach.columns[0]
            counted = model.in_domains(model.matching(selected), column)
            if term.own_reach is not None:  # pods on nodes without the label count too
                elsewhere = [v for other in model.matching(selected) for v in model.counts_in(other, column, ABSENT)]
                counted += [(variable, 1) for variable in elsewhere]
            model.linear.at_most(counted, 1, when=first)
    return first


def _add_peers(model: PlanModel, one: PendingClass, required: RequiredAffinity, number: int, first: int | None) -> None:
    """Where the pod is, there is another one that the term selects, unless it is the first."""
    column, matching, placed = required.reach.columns[0], model.matching(required.term), required.reach.by_domain()
    needed = 2 if one in matching else 1
    exempt = [] if first is None else [(first, needed)]
    domains = model.domains_of(one, column)
    if model.counts_in(one, column, ABSENT):
        domains.append(ABSENT)
    for domain in domains:
        if domain != ABSENT and placed.get(domain, 0) > 0:
            continue
        peers = [] if domain == ABSENT else model.in_domain(matching, column, domain)
        model.linear.at_least([*peers, *exempt], needed, number, when=model.present(one, column, domain))
    if first is None and not placed and matching == [one] and ABSENT not in domains:
        _add_numbers(model, one, column, number)


def _add_numbers(model: PlanModel, one: PendingClass, column: ValueColumn, number: int) -> None:
    """Pods that have only each other as peers are at least two in a domain: what follows for the domains."""
    domains = model.domains_of(one, column)
    present = [(model.present(one, column, domain), 1) for domain in domains]
    model.linear.at_most(present, len(one.pods) // 2, number)
    if one.is_required:
        model.linear.at_least(present, 1, number)
        if len(one.pods) < 4:  # all are in one domain
            for (here, _), domain in zip(present, domains, strict=True):
                model.linear.at_least([*model.in_domain([one], column, domain), (here, -len(one.pods))], 0, number)


# Anti-affinity


def _add_anti_affinity(model: PlanModel, one: PendingClass, state: InterPodAffinityState, apart: Pairs) -> None:
    """A term as its owner sees it when it is placed, and as others see it when they are placed after it."""
    workload, semantics = one.first, model.index.semantics
    as_placed = resolve(workload.needs.affinity, workload.namespace, semantics, incoming=False).anti_required
    for term, later in zip(state.required_anti_affinity, as_placed, strict=True):
        _keep_apart(model, one, term, apart)
        if later.term != term.use.term and not semantics.neighbours_reject_when_satisfied:
            _keep_apart(model, one, term, apart, later)


def _keep_apart(
    model: PlanModel, one: PendingClass, term: CountedTerm, apart: Pairs, later: ResolvedTerm | None = None
) -> None:
    """Where the pod is, a term allows no more than its limit; the one of `later` counts no pods placed before."""
    use, columns = later or term.use, term.reach.columns
    placed = {} if later else term.reach.by_domain()
    if _is_beyond(model, use.term, columns):
        return
    number = model.rule(_key(one, use.source, "anti-affinity"), one)
    column, matching = columns[0], model.matching(use.term)
    is_own_peer = one in matching
    if not use.limit:
        apart[column].update({frozenset((one, other)): number for other in matching if other is not one})
    for domain in model.domains_of(one, column):
        room = max(use.limit - placed.get(domain, 0), 0) + is_own_peer
        here = None if matching == [one] else model.present(one, column, domain)
        model.linear.at_most(model.in_domain(matching, column, domain), room, number, when=here)


def _limit_existing(model: PlanModel, one: PendingClass, existing: ExistingPodTerm) -> None:
    """The limit of a term of placed pods, which pending pods may use up together."""
    rule, columns = existing.rule, existing.owners.columns
    if existing.matches is None or _is_beyond(model, rule.entry.term, columns):
        return
    number = model.rule(OF_PLACED_PODS, one)
    column, matching, matched = columns[0], model.matching(rule.entry.term), existing.matches.by_domain()
    for domain, n_owners in existing.owners.by_domain().items():
        if n_owners > 0:
            room = max(rule.limit + rule.self_matching - matched.get(domain, 0), 0)
            model.linear.at_most(model.in_domain(matching, column, domain), room, number)


def _add_cliques(model: PlanModel, column: ValueColumn, pairs: Mapping[frozenset[PendingClass], int]) -> None:
    """At most one of several classes that all exclude each other: it follows from the pairs, and says it at once."""
    excluded: dict[PendingClass, set[PendingClass]] = defaultdict(set)
    for one, other in map(tuple, pairs):
        excluded[one].add(other)
        excluded[other].add(one)
    covered: set[frozenset[PendingClass]] = set()
    for start in [one for one in model.classes if one in excluded]:
        clique, common = [start], set(excluded[start])
        for other in [one for one in model.classes if one in common]:
            if other in common:
                clique.append(other)
                common &= excluded[other]
        edges = set(map(frozenset, combinations(clique, 2)))
        if len(clique) < 3 or edges <= covered:
            continue
        covered |= edges
        rules = sorted({pairs[edge] for edge in edges})
        for domain in model.domains(column):
            here = [one for one in clique if model.counts_in(one, column, domain)]
            model.linear.at_most([(model.present(one, column, domain), 1) for one in here], 1, *rules)
        model.check_size()


# Groups


def add_groups(model: PlanModel) -> None:
    """The members that must run, their one domain, and what is best beside these: members, then preferred domains."""
    n_preferred = sum(2 ** len(group.preferred_keys) for group, _ in model.members())
    for group, classes in model.members():
        counts = [(variable, 1) for one in classes for variable in one.counts.values()]
        least = group.min_members - group.n_placed
        if group.is_optional and least > 0:
            is_placed = model.linear.variable(1)
            model.linear.at_least([*counts, (is_placed, -least)], 0)
            model.linear.at_most([*counts, (is_placed, -len(group.pods))], 0)
        elif not all(one.is_required for one in classes):
            model.linear.at_least(counts, least)
        if not all(one.is_required for one in classes):
            model.linear.objective += [(variable, 1 + n_preferred) for variable, _ in counts]
        if group.topology_key:
            number = model.rule(_topology_key(group, classes), *classes)
            _add_one_domain(model, group.topology_key, classes, (number,), when=None)
            _stay_with_placed(model, group, classes, number)
        for position, key in enumerate(group.preferred_keys):
            met = model.linear.variable(1)
            model.linear.objective.append((met, 2 ** (len(group.preferred_keys) - 1 - position)))
            _add_one_domain(model, key, classes, (), when=met)


def _topology_key(group: GroupToPlace, classes: Sequence[PendingClass]) -> RuleKey:
    for one in classes:
        for source in one.first.needs.affinity.group_required:
            if source.topology_key == group.topology_key and _selects_own_group(source, one):
                return _key(one, source, "affinity")
    return RuleKey("group-topology", group.key, detail=f"one domain of {group.topology_key} for group {group.key}")


def _selects_own_group(source: PodTerm, one: PendingClass) -> bool:
    return source.selector is not None and source.selector.matches(one.first.labels)


def _add_one_domain(
    model: PlanModel, key: str, classes: Sequence[PendingClass], rules: tuple[int, ...], when: int | None
) -> None:
    column, total = model.index.column(key), sum(len(one.pods) for one in classes)
    if column.further:
        return
    chosen = []
    for domain in model.domains(column):
        is_chosen = model.linear.variable(1)
        chosen.append((is_chosen, 1))
        terms = model.in_domain(classes, column, domain)
        model.linear.at_most([*terms, (is_chosen, -total)], 0, *rules, when=when)
    model.linear.at_most(chosen, 1, *rules, when=when)
    elsewhere = [(variable, 1) for one in classes for variable in model.counts_in(one, column, ABSENT)]
    model.linear.at_most(elsewhere, 0, *rules, when=when)


def _stay_with_placed(model: PlanModel, group: GroupToPlace, classes: Sequence[PendingClass], number: int) -> None:
    """Members that run already decide the domain."""
    for one, state in _states(model):
        if one not in classes:
            continue
        for required in state.required_affinity:
            source = required.use.source
            placed = required.reach.by_domain()
            if source.topology_key != group.topology_key or not placed or not _selects_own_group(source, one):
                continue
            if source in one.first.needs.affinity.group_required and not required.reach.columns[0].further:
                column = required.reach.columns[0]
                others = [domain for domain in model.domains_of(one, column) if not placed.get(domain)]
                terms = [term for domain in others for term in model.in_domain([one], column, domain)]
                model.linear.at_most(terms, 0, number)
