"""Random updates of Deployments, StatefulSets and DaemonSets, each with the cluster it happens in."""

import copy

from live.objects import node

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KINDS = {"Deployment": "apps/v1/deployments", "StatefulSet": "apps/v1/statefulsets", "DaemonSet": "apps/v1/daemonsets"}
LABELS = {"app": "web"}
FIRST_WITH_LOST_NODES = 120  # from here on, every other update happens while a node is unreachable
UNREACHABLE = [{"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")]


class Update:
    """Nodes, pods that are in the way, a workload, and the fields of its spec that change; `lost` is an unreachable node."""

    def __init__(self, chance, number):
        self.kind = ("Deployment", "StatefulSet", "DaemonSet", "Deployment", "StatefulSet")[number % 5]
        self.nodes = [node(at, cpu=chance.choice("4468"), zones=2) for at in range(chance.randint(3, 5))]
        self.replicas = chance.randint(2, 5)
        self.workload = self._workload(chance)
        self.others = [filler(at, chance.choice(("1", "2"))) for at in range(len(self.nodes)) if chance.random() < 0.4]
        must_stick = number % 3 == 2
        if must_stick and self.kind == "Deployment" and number % 2:
            self._crowd()
            self.change = {"template": _with_image(self.workload["spec"]["template"])}
        else:
            self.change = self._change(chance, must_stick=must_stick)
        loses_a_node = number >= FIRST_WITH_LOST_NODES and number % 2
        self.lost = chance.choice(self.nodes)["metadata"]["name"] if loses_a_node else ""

    @property
    def resource(self):
        return KINDS[self.kind]

    def _workload(self, chance):
        container = {"name": "c", "image": "example.com/web:1", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": "bayplan", "containers": [container]}
        if self.kind != "DaemonSet":
            spec |= _rules(chance, self.replicas <= len(self.nodes))
        written = {
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": spec},
            **self._strategy(chance),
        }
        if self.kind != "DaemonSet":
            written["replicas"] = self.replicas
        if self.kind == "StatefulSet":
            written |= {"serviceName": "web", "podManagementPolicy": chance.choice(("OrderedReady", "Parallel"))}
        metadata = {"name": "web", "namespace": "default"}
        return {"apiVersion": "apps/v1", "kind": self.kind, "metadata": metadata, "spec": written}

    def _crowd(self):
        """One pod on each node, apart, and a surge for which there is no node: it fits in the end and gets stuck."""
        term = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": HOST}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        spec = self.workload["spec"]
        spec["replicas"] = self.replicas = len(self.nodes)
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        spec["template"]["spec"] |= {"affinity": apart}
        spec["template"]["spec"].pop("topologySpreadConstraints", None)
        self.others = []

    def _strategy(self, chance):
        if self.kind == "StatefulSet":
            partition = chance.choice((0, 0, 0, 1))
            return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}
        if self.kind == "Deployment" and chance.random() < 0.2:
            return {"strategy": {"type": "Recreate"}}
        surge, unavailable = chance.choice(((1, 0), (0, 1), ("25%", "25%"), (2, 0), ("50%", 1)))
        if self.kind == "DaemonSet":
            surge, unavailable = chance.choice(((0, 1), (0, 2), (1, 0)))
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        field = "strategy" if self.kind == "Deployment" else "updateStrategy"
        return {field: {"type": "RollingUpdate", "rollingUpdate": rolling}}

    def _change(self, chance, *, must_stick):
        """What is merged into the spec: another template, and sometimes another number of replicas."""
        template = _with_image(self.workload["spec"]["template"])
        container = template["spec"]["containers"][0]
        if must_stick:
            container["resources"]["requests"]["cpu"] = "64"
        elif chance.random() < 0.6:
            container["resources"]["requests"]["cpu"] = chance.choice(("500m", "1500m", "2", "3"))
        if not must_stick and self.kind != "DaemonSet" and chance.random() < 0.3:
            template["spec"] |= _rules(chance, self.replicas <= len(self.nodes))
        change = {"template": template}
        if self.kind != "DaemonSet" and chance.random() < 0.3:
            change["replicas"] = max(1, self.replicas + chance.choice((-1, 1, 2)))
        return change


def _with_image(template):
    """The template with another image."""
    changed = copy.deepcopy(template)
    changed["spec"]["containers"][0]["image"] = "example.com/web:2"
    return changed


def _rules(chance, may_be_apart):
    """No rule, pods apart, pods preferably apart, or pods spread over zones."""
    term = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": HOST}
    rules = [
        {},
        {"affinity": {"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": term}]}}},
        {"topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": LABELS}}]},
    ]  # fmt: skip
    if may_be_apart:
        rules.append({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    return chance.choice(rules)


def filler(number, cpu):
    """A pod on a node that takes room there."""
    container = {"name": "c", "image": "example.com/filler", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"filler-{number}", "namespace": "default"},
        "spec": {"nodeName": f"node-{number}", "containers": [container]},
    }


def is_complete(live):
    """Whether the status of a workload says that its rollout is complete."""
    spec, status = live["spec"], live["status"]
    if status.get("observedGeneration", 0) < live["metadata"]["generation"]:
        return False
    if live["kind"] == "DaemonSet":
        n_desired = status["desiredNumberScheduled"]
        return n_desired == status.get("updatedNumberScheduled", 0) == status.get("numberAvailable", 0)
    replicas = spec["replicas"]
    if live["kind"] == "Deployment":
        counted = (status.get(field, 0) for field in ("replicas", "updatedReplicas", "availableReplicas"))
        return all(number == replicas for number in counted)
    partition = spec["updateStrategy"]["rollingUpdate"]["partition"]
    is_updated = status.get("updatedReplicas", 0) >= replicas - partition
    return is_updated and status.get("readyReplicas", 0) == status.get("replicas", 0) == replicas
