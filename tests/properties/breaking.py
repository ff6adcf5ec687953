"""A randomly changing cluster whose pods have execution-time rules, kept twice: in an index and as manifests."""

import json
import random

import msgspec

from bayplan.enforcing.tracking import ViolationTracker
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod
from reference.strategies import HOSTNAME, ZONE

EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"
NAMESPACES = ("default", "default", "default", "team-a", "kube-system")
APPS = ("web", "db", "cache")
TIERS = ("front", "back")


class BreakingCluster:
    """`step` makes one random change to both; `tracked` is what the tracker lists, as the reference implementation writes it."""

    def __init__(self, seed, semantics, options, n_nodes=5, n_pods=6):
        self.chance = random.Random(seed)
        self.options = options
        self.index = PlacementIndex(semantics)
        self.nodes, self.pods, self.namespaces, self.serial = {}, {}, {}, 0
        for _ in range(n_nodes):
            self.add_node()
        for _ in range(n_pods):
            self.add_pod()
        self.tracker = ViolationTracker(self.index)

    def question(self):
        return {
            "nodes": list(self.nodes.values()),
            "pods": list(self.pods.values()),
            "namespaces": [{"metadata": {"name": name, "labels": found}} for name, found in self.namespaces.items()],
            "options": self.options,
        }

    def consents(self, rule_namespace, victim_namespace):
        """Whether a rule of one namespace may evict pods of the other."""
        named = self.namespaces.get(victim_namespace, {}).get("bayplan.io/evictable-by", "").split("_")
        across = self.index.semantics.evict_across_namespaces or rule_namespace == victim_namespace
        return across or "ANY" in named or rule_namespace in named

    @staticmethod
    def workload(pod):
        return _workload(pod)

    def tracked(self):
        return violations_of(self.tracker)

    # Changing

    def step(self):
        changes = [self.add_pod, self.add_pod, self.add_pod, self.remove_pod, self.relabel_pod, self.relabel_pod]
        changes += [self.end_pod, self.relabel_node, self.relabel_node, self.add_node, self.remove_node]
        changes += [self.relabel_namespace]
        self.chance.choice(changes)()

    def add_pod(self):
        self.serial += 1
        pod = self.draw_pod(f"p{self.serial}")
        self.pods[pod["metadata"]["name"]] = pod
        self.index.add(_workload(pod), pod["spec"]["nodeName"])

    def remove_pod(self):
        if self.pods:
            pod = self.pods.pop(self.chance.choice(sorted(self.pods)))
            self.index.remove(_workload(pod).key)

    def relabel_pod(self):
        self.change_pod(lambda metadata: metadata.update(labels=self.draw_labels()))

    def end_pod(self):
        """Mark it as terminating, or undo that, which no API server does."""
        self.change_pod(
            lambda metadata: (
                metadata.pop("deletionTimestamp", None) or metadata.update(deletionTimestamp="2026-01-01T00:00:00Z")
            )
        )

    def change_pod(self, change):
        if self.pods:
            name = self.chance.choice(sorted(self.pods))
            pod = json.loads(json.dumps(self.pods[name]))
            change(pod["metadata"])
            self.pods[name] = pod
            self.index.replace(_workload(pod))

    def add_node(self):
        self.serial += 1
        node = self.draw_node(f"n{self.serial}")
        self.nodes[node["metadata"]["name"]] = node
        self.index.add_target(_target(node))

    def remove_node(self):
        if len(self.nodes) > 2:
            name = self.chance.choice(sorted(self.nodes))
            del self.nodes[name]
            self.index.remove_target(name)

    def relabel_node(self):
        node = self.draw_node(self.chance.choice(sorted(self.nodes)))
        self.nodes[node["metadata"]["name"]] = node
        self.index.update_target(_target(node))

    def relabel_namespace(self):
        name = self.chance.choice(NAMESPACES)
        consenting = {"team": "a", "bayplan.io/evictable-by": self.chance.choice(["ANY", "default", "other_team-a"])}
        labels = self.chance.choice([None, {}, {"team": "a"}, {"team": "b"}, consenting])
        self.namespaces.pop(name, None)
        if labels is not None:
            self.namespaces[name] = labels
        self.index.set_namespace(name, labels)

    # Drawing

    def maybe(self, share):
        return self.chance.random() < share

    def draw_labels(self):
        drawn = {"app": self.chance.choice(APPS)}
        return {**drawn, "tier": self.chance.choice(TIERS)} if self.maybe(0.5) else drawn

    def draw_node(self, name):
        labels = {key: value for key, value in self.draw_domains(name).items() if self.maybe(0.9)}
        return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": {"pods": "110", "cpu": "64"}}}

    def draw_domains(self, name):
        return {HOSTNAME: name, ZONE: self.chance.choice("ab"), "rack": self.chance.choice("123")}

    def draw_pod(self, name):
        rules = {}
        for field in ("podAffinity", "podAntiAffinity"):
            if self.maybe(0.45):
                lists = {EXECUTION: [self.draw_term(field) for _ in range(self.chance.choice((1, 1, 2)))]}
                if self.maybe(0.3):
                    lists[SCHEDULING] = [self.draw_term(field)]
                rules[field] = lists
        # Sometimes a node that does not exist.
        where = self.chance.choice([*sorted(self.nodes), f"n{self.serial + 1}"])
        metadata = {"name": name, "namespace": self.chance.choice(NAMESPACES), "uid": name}
        metadata["labels"] = self.draw_labels()
        spec = {"nodeName": where, "priority": self.chance.choice((0, 0, 5, 10)), "containers": []}
        if self.maybe(0.05):  # reading YAML is slow
            metadata["annotations"] = {"bayplan.io/affinity": json.dumps(rules)}
        else:
            spec["affinity"] = rules
        started = f"2026-01-01T00:00:0{self.chance.randrange(5)}Z"
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "startTime": started}}

    def draw_term(self, field):
        term = {"topologyKey": self.chance.choice((HOSTNAME, ZONE, ZONE, "rack", ""))}
        term["labelSelector"] = self.chance.choice(
            [
                {"matchLabels": {"app": self.chance.choice(APPS)}},
                {"matchLabels": {"app": self.chance.choice(APPS)}},
                {"matchLabels": {"tier": self.chance.choice(TIERS)}},
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [self.chance.choice(APPS)]}]},
                {},
                None,
            ]
        )
        if self.maybe(0.2):
            term["namespaces"] = self.chance.choice(([], ["team-a"], ["default", "kube-system"]))
        if self.maybe(0.2):
            negative = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
            term["namespaceSelector"] = self.chance.choice(({}, {"matchLabels": {"team": "a"}}, negative))
        if field == "podAntiAffinity":
            if self.maybe(0.4):
                term["limit"] = self.chance.choice((1, 2))
            if self.maybe(0.2):
                term["tolerateNamespaces"] = [self.chance.choice(NAMESPACES)]
        return term


def violations_of(tracker):
    """The violations as the reference implementation writes them."""
    return sorted(
        (v.owner, v.rule_type.value, v.term, v.topology_key, v.domain, v.target, v.peers) for v in tracker.violations()
    )


def _workload(pod):
    return pods.workload_of(msgspec.convert(pod, Pod))


def _target(node):
    return targets.target_of_node(msgspec.convert(node, Node))
