"""
Affinity and anti-affinity between pods, with kube-scheduler's semantics and with those of the design document.

The switches of `bayplan.model.semantics` are read where the two differ. A *domain* is a (key, value) pair of node
labels. A term with an empty topology key uses several keys at once: affinity is met in any of them, anti-affinity is
violated in any of them, and a node has "the label" if it has any.
"""

from reference.cycle import SKIP, UNRESOLVABLE, UNSCHEDULABLE, Rejected

AFFINITY = "node(s) didn't match pod affinity rules"
OWN_ANTI = "node(s) didn't match pod anti-affinity rules"
NO_KEY = "node(s) didn't match pod anti-affinity rules (missing required label)"
OTHERS_ANTI = "node(s) didn't satisfy existing pods anti-affinity rules"


# Matching


def own_match(cycle, term, pod):
    """Whether a term of the incoming pod selects this one."""
    labels = cycle.cluster.namespace_labels(pod.namespace)
    return term.matches(pod, labels, cycle.semantics, incoming=True)


def other_match(cycle, term, pod):
    """Whether a term of a placed pod selects this one."""
    return term.matches(pod, cycle.cluster.namespace_labels(pod.namespace), cycle.semantics)


def placed(cycle):
    """(node, pod) for every pod on an existing node."""
    return [(node, pod) for node in cycle.cluster.nodes for pod in node.pods]


def share_domain(cycle, term, one, other):
    """Whether two nodes are in one domain of the term."""
    return any(domain in term.domains(other, cycle.semantics) for domain in term.domains(one, cycle.semantics))


def is_daemon(cycle, pod):
    return pod.namespace in cycle.semantics.daemon_namespaces


# Filtering


def before_filter(cycle):
    terms = cycle.pod.terms
    cycle.notes["affinity"] = affinity_state(cycle)
    cycle.notes["own anti"] = own_anti_domains(cycle)
    cycle.notes["others' anti"] = others_anti_domains(cycle)
    if not terms.required and not terms.anti_required and not cycle.notes["others' anti"]:
        return SKIP
    return None


def affinity_state(cycle):
    """(term, domains where it is met, whether it may be disregarded) for each required affinity term."""
    terms, semantics = cycle.pod.terms.required, cycle.semantics
    found = [(term, met_domains(cycle, term)) for term in terms]
    unmatched = not any(domains for _, domains in found)
    first_of_all = unmatched and all(own_match(cycle, term, cycle.pod) for term in terms)
    return [
        (term, domains, first_of_term(cycle, term) if semantics.first_pod_per_term else first_of_all)
        for term, domains in found
    ]


def met_domains(cycle, term):
    """Where the term is met: by a pod that meets all terms (upstream), or this one alone (seed)."""
    needed = [term] if cycle.semantics.affinity_terms_met_apart else cycle.pod.terms.required
    return {
        domain
        for node, pod in placed(cycle)
        if all(own_match(cycle, each, pod) for each in needed)
        for domain in term.domains(node, cycle.semantics)
    }


def first_of_term(cycle, term):
    """The pod matches its own term and no other pod on any node does, labelled or not."""
    if not own_match(cycle, term, cycle.pod):
        return False
    return not any(own_match(cycle, term, pod) for _, pod in placed(cycle))


def own_anti_domains(cycle):
    """Domains that hold more matches of one of the pod's anti-affinity terms than the term allows."""
    full = set()
    if is_daemon(cycle, cycle.pod):
        return full
    for term in cycle.pod.terms.anti_required:
        matches = {}
        for node, pod in placed(cycle):
            if not is_daemon(cycle, pod) and own_match(cycle, term, pod):
                for domain in term.domains(node, cycle.semantics):
                    matches[domain] = matches.get(domain, 0) + 1
        full |= {domain for domain, count in matches.items() if count > term.limit}
    return full


def others_anti_domains(cycle):
    """Domains where the pod would give a placed pod more peers than its anti-affinity allows."""
    closed = set()
    if is_daemon(cycle, cycle.pod):
        return closed
    for node, owner in placed(cycle):
        if is_daemon(cycle, owner):
            continue
        for term in owner.terms.anti_required:
            if not other_match(cycle, term, cycle.pod):
                continue
            for domain in term.domains(node, cycle.semantics):
                if would_be_violated(cycle, term, peers_in(cycle, term, owner, domain)):
                    closed.add(domain)
    return closed


def would_be_violated(cycle, term, n_peers):
    """Whether the incoming pod is one peer too many; by the design document only if the term is satisfied so far."""
    if cycle.semantics.neighbours_reject_when_satisfied and n_peers > term.limit:
        return False
    return n_peers + 1 > term.limit


def peers_in(cycle, term, owner, domain):
    """How many pods in the domain the owner's term selects already; the owner itself does not count."""
    return sum(
        pod is not owner and not is_daemon(cycle, pod) and other_match(cycle, term, pod)
        for node, pod in placed(cycle)
        if domain in term.domains(node, cycle.semantics)
    )


def check(cycle, node):
    if not affinity_met(cycle, node):
        return Rejected(UNRESOLVABLE, AFFINITY)
    if cycle.semantics.anti_affinity_needs_topology_key and not is_daemon(cycle, cycle.pod):
        for term in cycle.pod.terms.anti_required:
            if not term.domains(node, cycle.semantics):
                return Rejected(UNRESOLVABLE, NO_KEY)
    for term in cycle.pod.terms.anti_required:
        if any(domain in cycle.notes["own anti"] for domain in term.domains(node, cycle.semantics)):
            return Rejected(UNSCHEDULABLE, OWN_ANTI)
    if any(domain in cycle.notes["others' anti"] for domain in node.labels.items()):
        return Rejected(UNSCHEDULABLE, OTHERS_ANTI)
    return None


def affinity_met(cycle, node):
    for term, met, disregarded in cycle.notes["affinity"]:
        domains = term.domains(node, cycle.semantics)
        if disregarded and not cycle.semantics.first_pod_needs_topology_key:
            continue
        if not domains:
            return False
        if not disregarded and not any(domain in met for domain in domains):
            return False
    return True


# Scoring


def before_score(cycle, feasible):
    terms = cycle.pod.terms
    if ignores_others(cycle) and not terms.preferred and not terms.anti_preferred:
        return SKIP
    return None


def ignores_others(cycle):
    return bool(cycle.args("InterPodAffinity").get("ignorePreferredTermsOfExistingPods"))


def score(cycle, node):
    own = own_score_once if cycle.semantics.soft_terms_count_once else own_score_per_pod
    return own(cycle, node) + sum(existing_pod_score(cycle, node, where, pod) for where, pod in placed(cycle))


def own_score_per_pod(cycle, node):
    """Upstream: every pod that matches adds the weight, or takes it away."""
    total = 0
    for where, pod in placed(cycle):
        for sign, terms in ((1, cycle.pod.terms.preferred), (-1, cycle.pod.terms.anti_preferred)):
            for term in terms:
                if own_match(cycle, term, pod) and share_domain(cycle, term, node, where):
                    total += sign * term.weight
    return total


def own_score_once(cycle, node):
    """Design document: a term that is met adds its weight; a node without the label meets every anti-affinity."""
    total = 0
    for wanted, terms in ((True, cycle.pod.terms.preferred), (False, cycle.pod.terms.anti_preferred)):
        for term in terms:
            near = any(
                own_match(cycle, term, pod) and share_domain(cycle, term, node, where) for where, pod in placed(cycle)
            )
            if near == wanted:
                total += term.weight
    return total


def existing_pod_score(cycle, node, where, owner):
    """The score that a placed pod's own terms give the incoming pod on this node."""
    hard_weight = cycle.args("InterPodAffinity").get("hardPodAffinityWeight")
    hard_weight = 1 if hard_weight is None else hard_weight
    weighed = [(hard_weight, term) for term in owner.terms.required]
    weighed += [(term.weight, term) for term in owner.terms.preferred]
    if cycle.semantics.soft_anti_affinity_symmetric:
        weighed += [(-term.weight, term) for term in owner.terms.anti_preferred]
    total = 0
    for weight, term in weighed:
        if not other_match(cycle, term, cycle.pod) or not share_domain(cycle, term, node, where):
            continue
        if cycle.semantics.neighbours_count_when_changed and has_peer(cycle, term, owner, where):
            continue
        total += weight
    return total


def has_peer(cycle, term, owner, where):
    """Whether the owner's term selects another pod in its domain already: then this placement changes nothing."""
    return any(
        pod is not owner and other_match(cycle, term, pod) and share_domain(cycle, term, where, node)
        for node, pod in placed(cycle)
    )


def normalise(cycle, scores):
    lowest, highest = min(scores.values()), max(scores.values())
    if highest == lowest:
        return dict.fromkeys(scores, 0)
    return {name: int(100.0 * ((score - lowest) / float(highest - lowest))) for name, score in scores.items()}
