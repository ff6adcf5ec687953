"""
The design document's lists of terms: `workloadAffinity` and `workloadAntiAffinity` with terms of their own.

A term is option 1 (`labelSelector`, `matchLabelKeys`) or option 2 (`affinityEnabled`, over the configured keys).

Choices that the design document leaves open, and extensions:

- A workload's labels are its template's; it is never its own peer; a peer counts where `spec.clusters` lists it,
  however few replicas it has there.
- Affinity: every term needs a matching peer in the cluster's domain, each perhaps another one. If no matching peer is
  placed anywhere and the workload matches its own term, the term requires only the topology key.
- Anti-affinity: violated by any matching peer in a domain of the cluster, and by any peer placed there whose required
  term matches this workload. A cluster without the key has no domain: affinity fails there, anti-affinity holds.
- Clusters that hold the workload already pass, as with Karmada's own filters.
- `topologyKey`: cluster (the default), zone, region, provider, these with `topology.karmada.io/` in front, or a label.
- `namespaces` and `namespaceSelector` as for pods; neither means the owner's namespace.
- Both options in one term: both must hold. Option 2 without a configured key is rejected, and so is, where keys are
  configured, any term that needs no configured key (by matchLabels, In, Exists, matchLabelKeys or enabled keys).
- Option 2 with `affinityEnabled: false` is switched off: the term has no effect.
- Preferred terms, `{weight, workloadAffinityTerm}`, give each cluster 100 times the weight of the terms it satisfies
  over the weight of all, rounded down; preferred terms of peers do not count.
- A peer keeps those of its terms that are not rejected.
"""

from reference.fleet import domains, placement_fields
from reference.fleet.failures import Failure, SchedulerError
from reference.fleet.peers import left_behind, occupied
from reference.selecting import selects, selects_all

REQUIRED, PREFERRED = placement_fields.LISTS
AFFINITY, ANTI_AFFINITY = "WorkloadAffinity", "WorkloadAntiAffinity"
NO_PEER = "cluster(s) did not match workload affinity rules"
PEER = "cluster(s) did not match workload anti-affinity rules"
OWNER = "cluster(s) did not satisfy existing workloads anti-affinity rules"
FLAGS = {
    "workloadAffinity": ("affinityLabelKeys", "--affinity-label-keys"),
    "workloadAntiAffinity": ("antiAffinityLabelKeys", "--anti-affinity-label-keys"),
}


class Term:
    def __init__(self, fleet, owner, path, raw, weight=0):
        self.fleet, self.owner, self.path, self.weight = fleet, owner, path, weight
        self.selector = raw.get("labelSelector")
        self.key = raw.get("topologyKey") or domains.CLUSTER
        self.namespaces = raw.get("namespaces")  # None is absent, [] is empty
        self.namespace_selector = raw.get("namespaceSelector")
        option, self.flag = FLAGS[path.split(".")[0]]
        self.configured = fleet.options.get(option)  # None: every key
        self.enabled = raw.get("affinityEnabled") is True
        self.same = list(raw.get("matchLabelKeys") or []) + (list(self.configured or []) if self.enabled else [])

    def check(self):
        if self.enabled and not self.configured:
            raise SchedulerError(f"placement.{self.path}: affinityEnabled needs keys in {self.flag}")
        if self.configured is not None and not set(self.needed_keys()) & set(self.configured):
            raise SchedulerError(f"placement.{self.path}: no key of the term is in {self.flag}")

    def needed_keys(self):
        selector = self.selector or {}
        needed = [
            requirement["key"]
            for requirement in selector.get("matchExpressions") or []
            if requirement["operator"] in ("In", "Exists")
        ]
        return [*(selector.get("matchLabels") or {}), *needed, *self.same]

    def matches(self, other):
        """Whether the term selects the other workload, perhaps the owner itself."""
        if not self._looks_into(other.namespace):
            return False
        mine, theirs = self.fleet.peer_labels(self.owner), self.fleet.peer_labels(other)
        if any(key not in mine or theirs.get(key) != mine[key] for key in self.same):
            return False
        if self.selector is None:
            return self.enabled
        return selects(self.selector, theirs)

    def _looks_into(self, namespace):
        if self.namespace_selector is None and not self.namespaces:
            if self.namespaces == [] and self.fleet.semantics["emptyNamespacesMeanAll"]:
                return True
            return namespace == self.owner.namespace
        if namespace in (self.namespaces or []):
            return True
        selector = self.namespace_selector
        if selector is None:
            return False
        return selects_all(selector) or selects(selector, self.fleet.namespace_labels(namespace))

    def shared(self, cluster, names):
        """The domains that the cluster shares with the clusters of these names, as text."""
        common = domains.values(cluster, self.key) & domains.values_of(self.fleet, names, self.key)
        return [f"{self.key}={value}" for value in sorted(common)]


def switched_off(raw):
    return raw.get("affinityEnabled") is False and raw.get("labelSelector") is None and not raw.get("matchLabelKeys")


def read(fleet, binding, *, checks=True):
    """{"workloadAffinity": {list: [Term]}, …}; raises if a term is invalid or, with `checks`, has no indexed key."""
    placement = placement_fields.read(fleet, binding)
    terms = {}
    for sign in FLAGS:
        side = placement.get(sign) or {}
        required = [
            Term(fleet, binding, path, raw) for path, raw in entries(side, sign, REQUIRED) if not switched_off(raw)
        ]
        preferred = [
            Term(
                fleet,
                binding,
                f"{path}.workloadAffinityTerm",
                entry.get("workloadAffinityTerm") or {},
                entry.get("weight") or 0,
            )
            for path, entry in entries(side, sign, PREFERRED)
            if not switched_off(entry.get("workloadAffinityTerm") or {})
        ]
        for term in [*required, *preferred] if checks else []:
            term.check()
        terms[sign] = {REQUIRED: required, PREFERRED: preferred}
    return terms


def entries(side, sign, name):
    written = side.get(name) or []
    if not isinstance(written, list) or not all(isinstance(entry, dict) for entry in written):
        raise SchedulerError(f"placement.{sign}.{name}: expected a list of terms")
    return [(f"{sign}.{name}[{position}]", entry) for position, entry in enumerate(written)]


def others(fleet):
    own = (fleet.binding.namespace, fleet.binding.name)
    return [peer for peer in fleet.bindings if (peer.namespace, peer.name) != own]


# Affinity


def check_affinity(attempt, cluster):
    failures = []
    if attempt.binding.targets(cluster.name):
        return failures
    leaving = left_behind(attempt.fleet)
    for term in attempt.workload_terms["workloadAffinity"][REQUIRED]:
        placed = []
        for peer in others(attempt.fleet):
            names = {name for name, _ in peer.clusters} - leaving
            if names and term.matches(peer):
                placed.append((peer, names))
        if any(term.shared(cluster, names) for _, names in placed):
            continue
        if not placed and term.matches(attempt.binding) and domains.values(cluster, term.key):
            continue  # the first of its set
        failures.append(failure(AFFINITY, NO_PEER, term, "", [peer for peer, _ in placed]))
    return failures


# Anti-affinity, in both directions


def check_anti_affinity(attempt, cluster):
    failures = []
    if attempt.binding.targets(cluster.name):
        return failures
    for term in attempt.workload_terms["workloadAntiAffinity"][REQUIRED]:
        failures += rejected_by(
            attempt, cluster, PEER, [(term, peer) for peer in others(attempt.fleet) if term.matches(peer)]
        )
    for peer in others(attempt.fleet):
        matching = [(term, peer) for term in owned(attempt.fleet, peer) if term.matches(attempt.binding)]
        failures += rejected_by(attempt, cluster, OWNER, matching)
    return failures


def owned(fleet, peer):
    """The required anti-affinity terms of a peer, without those that are rejected."""
    try:
        terms = read(fleet, peer, checks=False)["workloadAntiAffinity"][REQUIRED]
    except Failure:
        return []
    return [term for term in terms if is_served(term)]


def is_served(term):
    try:
        term.check()
    except Failure:
        return False
    return True


def rejected_by(attempt, cluster, reason, pairs):
    return [
        failure(ANTI_AFFINITY, reason, term, domain, [peer])
        for term, peer in pairs
        for domain in term.shared(cluster, occupied(peer, attempt.fleet.semantics))
    ]


def failure(rule, reason, term, domain, blocking):
    return {
        "rule": rule,
        "reason": reason,
        "term": term.path,
        "domain": domain,
        "peers": [f"{peer.namespace}/{peer.name}" for peer in blocking],
    }


# Preferences


def score(attempt, cluster):
    near = attempt.workload_terms["workloadAffinity"][PREFERRED]
    far = attempt.workload_terms["workloadAntiAffinity"][PREFERRED]
    total = sum(term.weight for term in [*near, *far])
    if total <= 0:
        return 0
    satisfied = sum(term.weight for term in near if beside_a_peer(attempt, term, cluster))
    satisfied += sum(term.weight for term in far if not beside_a_peer(attempt, term, cluster))
    return 100 * satisfied // total


def beside_a_peer(attempt, term, cluster):
    return any(
        term.matches(peer) and term.shared(cluster, {name for name, _ in peer.clusters})
        for peer in others(attempt.fleet)
    )
