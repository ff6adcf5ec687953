"""
Preemption: `decide preemption` as plain loops. Question in, answer out.

For every node, pods are removed from it and all rules are evaluated again. `search` returns more than the answer: the
cost of each node, for tests that check it.
"""

from datetime import UTC, datetime

from bayplan.indexing.slots import rank_of
from reference import inter_pod_affinity, pods
from reference.cycle import SKIP, SUCCESS, UNSCHEDULABLE, Cycle, Rejected
from reference.node_ports import host_ports
from reference.objects import Pod, name_of, namespace_of
from reference.selecting import selects, selects_all

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NOW = datetime.max.replace(tzinfo=UTC)  # what has not started yet starts now, later than everything else


def answer(question):
    found = search(question)
    best = found["best"]
    chosen = found["candidates"][best]["victims"] if best else []
    # Victims that are terminating already are not deleted again.
    victims = sorted(key_of(pod) for pod in chosen if not pod.manifest["metadata"].get("deletionTimestamp"))
    return {"name": question.get("name") or "", "nominated": best, "victims": victims, "message": found["message"]}


def search(question):
    """The cost of every node, the best node (by the hash of its name among equals), or why there is none."""
    trial = Trial(question)
    if SUCCESS in trial.codes.values() or not trial.nodes:
        return {"candidates": {}, "best": "", "message": ""}
    if trial.not_eligible():
        return {"candidates": {}, "best": "", "message": f"preemption: {trial.not_eligible()}"}
    candidates, reasons = trial.candidates(across_nodes=False)
    if not candidates and trial.cycle.semantics.preempt_across_nodes:
        candidates, _ = trial.candidates(across_nodes=True)
    best = min(candidates, key=lambda name: (candidates[name]["costs"], rank_of("", name)), default="")
    return {"candidates": candidates, "best": best, "message": "" if best else message(trial, reasons)}


class Trial:
    """The cluster of a question, on which pods are added and removed."""

    def __init__(self, question):
        self.cycle = Cycle(question)
        self.pod, self.nodes = self.cycle.pod, self.cycle.cluster.nodes
        self.classes = {name_of(one): one for one in self.cycle.cluster.of_kind("PriorityClass")}
        self.budgets = self.cycle.cluster.of_kind("PodDisruptionBudget")
        self.priority = self.priority_of(self.pod)
        waiting = [Pod(manifest) for manifest in question.get("pods") or []]
        self.nominated = [
            pod
            for pod in waiting
            if not pod.node_name and not pod.finished and self.priority_of(pod) >= self.priority and pod is not self.pod
        ]
        self.codes = {node.name: self.evaluated(node)[0] for node in self.nodes}

    def priority_of(self, pod):
        written = pod.spec.get("priority")
        if written is not None:
            return written
        named = self.classes.get(pod.spec.get("priorityClassName"))
        default = next((one for one in self.classes.values() if one.get("globalDefault")), {})
        return (named or default).get("value") or 0

    # Evaluating the rules

    def evaluated(self, node):
        """(code, reasons) for the node as it is now: with its nominated pods, and if that passes, without them."""
        nominated = [pod for pod in self.nominated if pod.status.get("nominatedNodeName") == node.name]
        here = node.pods
        node.pods = here + nominated
        code, reasons = self.evaluated_as_is(node)
        node.pods = here
        return self.evaluated_as_is(node) if nominated and code == SUCCESS else (code, reasons)

    def evaluated_as_is(self, node):
        running, allowed = [], None
        for plugin in self.cycle.profile.filters:
            result = pods.call(plugin, "before_filter", self.cycle)
            if isinstance(result, Rejected):
                return result.code, result.reasons
            if result != SKIP:
                running.append(plugin)
                allowed = result if result is not None else allowed
        verdict = pods.verdict(self.cycle, running, allowed, node)
        return verdict["code"], verdict.get("reasons") or []

    # Eligibility

    def not_eligible(self):
        if self.pod.spec.get("preemptionPolicy") == "Never":
            return NEVER
        nominated = self.pod.status.get("nominatedNodeName")
        node = self.cycle.cluster.node_by_name.get(nominated)
        if node is not None and self.codes[nominated] in (UNSCHEDULABLE, SUCCESS):
            for pod in node.pods:
                if self.priority_of(pod) < self.priority and leaves_by_preemption(pod):
                    return TERMINATING
        return ""

    # The cost of each node

    def candidates(self, *, across_nodes):
        """({node: {"victims", "violations"}}, {node: reasons why it is no candidate})"""
        found, reasons = {}, {}
        for node in self.nodes:
            if self.codes[node.name] != UNSCHEDULABLE:
                continue
            before = {each.name: list(each.pods) for each in self.nodes}
            cost_here, rejections = self.dry_run(node, across_nodes=across_nodes)
            for each in self.nodes:
                each.pods = before[each.name]
                each.freed_ports, each.ended = set(), []
            if cost_here is not None:
                found[node.name] = cost_here
            else:
                reasons[node.name] = rejections
        return found, reasons

    def dry_run(self, node, *, across_nodes):
        potential = self.potential_victims(node, across_nodes=across_nodes)
        if not potential:
            return None, [NO_VICTIMS]
        for where, pod in potential:
            where.pods = [other for other in where.pods if other is not pod]
            where.freed_ports |= set(host_ports(pod))
            where.ended += [pod] if pod.terminating else []
        code, reasons = self.evaluated(node)
        if code != SUCCESS:
            return None, reasons
        potential.sort(key=lambda placed: self.importance(placed[1]))
        violating = self.violating([pod for _, pod in potential])
        victims, violations = [], 0
        for tried_first in (True, False):
            for where, pod in potential:
                if (pod in violating) is not tried_first:
                    continue
                where.pods = [*where.pods, pod]
                where.freed_ports -= set(host_ports(pod))
                where.ended = [other for other in where.ended if other is not pod]
                if self.evaluated(node)[0] != SUCCESS:
                    where.pods = where.pods[:-1]
                    where.freed_ports |= set(host_ports(pod))
                    where.ended += [pod] if pod.terminating else []
                    victims.append(pod)
                    violations += tried_first
        return {"victims": victims, "violations": violations, "costs": self.costs(victims, violations)}, []

    def potential_victims(self, node, *, across_nodes):
        """(where, pod) of lower priority on the node; with `across_nodes` also conflicting pods on other nodes."""
        places = [(where, pod) for where in self.nodes for pod in where.pods if where is node]
        if across_nodes:
            places += [(where, pod) for where in self.nodes for pod in where.pods if self.conflicts(node, where, pod)]
        return [
            (where, pod) for where, pod in places if self.priority_of(pod) < self.priority and not self.is_spared(pod)
        ]

    def conflicts(self, node, where, pod):
        """Whether a pod on another node violates anti-affinity, of the incoming pod or its own, on this node."""
        cycle = self.cycle
        daemons = cycle.semantics.daemon_namespaces
        if where is node or pod.namespace in daemons or self.pod.namespace in daemons:
            return False
        ours = [t for t in self.pod.terms.anti_required if inter_pod_affinity.own_match(cycle, t, pod)]
        theirs = [t for t in pod.terms.anti_required if inter_pod_affinity.other_match(cycle, t, self.pod)]
        broken = [(t, domain) for t in ours for domain in shared(cycle, t, node, where) if self.is_full(t, domain)]
        broken += [
            (t, domain)
            for t in theirs
            for domain in shared(cycle, t, node, where)
            if inter_pod_affinity.would_be_violated(cycle, t, inter_pod_affinity.peers_in(cycle, t, pod, domain))
        ]
        return bool(broken)

    def is_full(self, term, domain):
        """Whether the domain holds more matches than the term allows."""
        cycle = self.cycle
        matches = [
            pod
            for node, pod in inter_pod_affinity.placed(cycle)
            if domain in term.domains(node, cycle.semantics)
            and pod.namespace not in cycle.semantics.daemon_namespaces
            and inter_pod_affinity.own_match(cycle, term, pod)
        ]
        return len(matches) > term.limit

    def is_spared(self, pod):
        """Whether required affinity selects this pod, and the switch exempts such pods from eviction."""
        cycle, terms = self.cycle, self.pod.terms.required
        if not cycle.semantics.spare_affinity_partners or not terms:
            return False
        met = [inter_pod_affinity.own_match(cycle, term, pod) for term in terms]
        return any(met) if cycle.semantics.affinity_terms_met_apart else all(met)

    def importance(self, pod):
        """
        Smaller is more important: the higher priority, then the older one; equals by the hash of their name.

        Of those that have not started, kube-scheduler 1.36 takes the one that came last for the more important.
        """
        came = self.cycle.cluster.placed.index(pod)
        last = -came if started(pod) == NOW else rank_of("", key_of(pod))
        return -self.priority_of(pod), started(pod), last

    def violating(self, potential):
        """The pods whose eviction violates a budget, after the eviction of the more important ones."""
        allowed = [(budget.get("status") or {}).get("disruptionsAllowed") or 0 for budget in self.budgets]
        found = []
        for pod in potential:
            charged = [i for i, budget in enumerate(self.budgets) if charges(budget, pod)]
            for i in charged:
                allowed[i] -= 1
            if any(allowed[i] < 0 for i in charged):
                found.append(pod)
        return found

    def costs(self, victims, violations):
        """The criteria by which nodes are compared, the lowest first."""
        priorities = [self.priority_of(pod) for pod in victims]
        oldest = min((started(pod) for pod in victims if self.priority_of(pod) == max(priorities)), default=NOW)
        total = sum(priority + 2**31 for priority in priorities)
        return violations, max(priorities, default=0), total, len(victims), -(oldest - datetime.min.replace(tzinfo=UTC))


def shared(cycle, term, one, other):
    """The domains of a term that two nodes are both in."""
    return [d for d in term.domains(one, cycle.semantics) if d in term.domains(other, cycle.semantics)]


def charges(budget, pod):
    selector = (budget.get("spec") or {}).get("selector")
    if not pod.labels or namespace_of(budget) != pod.namespace or selector is None or selects_all(selector):
        return False
    return selects(selector, pod.labels) and pod.name not in ((budget.get("status") or {}).get("disruptedPods") or {})


def leaves_by_preemption(pod):
    conditions = pod.status.get("conditions") or []
    target = next((one for one in conditions if one.get("type") == "DisruptionTarget"), {})
    return pod.terminating and target.get("status") == "True" and target.get("reason") == "PreemptionByScheduler"


def started(pod):
    written = pod.status.get("startTime")
    return datetime.fromisoformat(written) if written else NOW


def key_of(pod):
    return f"{pod.namespace}/{pod.name}"


def message(trial, reasons):
    counts = {}
    for node in trial.nodes:
        for reason in reasons.get(node.name, [NOT_HELPFUL]):
            counts[reason] = counts.get(reason, 0) + 1
    parts = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"preemption: 0/{len(trial.nodes)} nodes are available: {', '.join(parts)}."
