"""
Clusters in which a preemption nearly always happens: every node is held by pods of lower priority, for one to three causes.

The nodes have no other cause to reject the pod, so that which pods are evicted, and where, is what is asked.
"""

import copy

from agreeing import bayplan_answers, drawn_nodes, drawn_pods, drawn_storage, drawn_terms
from agreeing.drawing import HOSTNAME, POD_LABELS, ZONE, ZONES, Theme, thing
from reference.strategies import labels, match_labels

CAUSES = ("cpu", "cpu", "pods", "devices", "ports", "anti-affinity", "their-anti-affinity", "spread", "disks", "once",
          "volumes", "affinity", "pod-level")  # fmt: skip
PRIORITIES = (-10, 0, 0, 1, 5, 10, 50, 99)
PORT = 8080
MOST_ROUNDS = 6


def question_of(theme):
    """Without budgets. A theme for the pods that are not about the causes is drawn by the caller."""
    causes = theme.some(sorted(set(CAUSES)), 1, 3) if theme.rarely(3) else [theme.pick(CAUSES)]
    n_nodes = theme.number(30, 150) if theme.rarely(25) else theme.number(1, 6)
    names = [f"n{i}" for i in range(n_nodes)]
    drawn = {
        "nodes": [_node(theme, name, causes) for name in names],
        "namespaces": drawn_nodes.namespaces(theme),
        "pods": [],
        "pod": _incoming(theme, causes),
        "objects": [],
    }
    crowd = _Crowd(theme, causes, drawn)
    for name in names:
        crowd.fill(name)
    crowd.nominate(names)
    _fill_up(drawn, crowd)
    return drawn


def _fill_up(drawn, crowd):
    """More pods for nodes that the pod still fits on, then away with such nodes; most questions end without any."""
    for number in range(MOST_ROUNDS):
        answer = bayplan_answers.answer("pods", drawn | {"name": ""})
        free = [name for name, one in answer.get("nodes", {}).items() if one["code"] == "Success"]
        if not free:
            return
        if number < MOST_ROUNDS // 2 or len(free) == len(drawn["nodes"]):
            for name in free:
                crowd.fill(name)
        else:
            drawn["nodes"] = [one for one in drawn["nodes"] if one["metadata"]["name"] not in free]
            drawn["pods"] = [one for one in drawn["pods"] if one["spec"].get("nodeName") not in free]


def _node(theme, name, causes):
    made = drawn_nodes.node(theme, name)
    own = made["metadata"].setdefault("labels", {})
    own |= {HOSTNAME: name, ZONE: own.get(ZONE, theme.pick(ZONES))}
    made["spec"] = {}
    room = dict(drawn_nodes.ROOMY)
    if "cpu" in causes or "pod-level" in causes:
        room |= {"cpu": theme.pick(("2", "4", "4", "3500m")), "memory": theme.pick(("4Gi", "8Gi", "256Gi"))}
    if "pods" in causes:
        room["pods"] = theme.pick(("2", "3", "4"))
    if "devices" in causes:
        room["example.com/gpu"] = theme.pick(("1", "2", "4"))
    made["status"] |= {"capacity": room, "allocatable": room}
    return made


def _base(theme, name, namespace):
    """A pod that wants nothing in particular, and one in eight with any needs at all."""
    if theme.rarely(8):
        pod = drawn_pods.pending(theme, name)
        pod["spec"].pop("affinity", None)
        pod["spec"].pop("nodeSelector", None)
    else:
        spec = {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "repo/web:v1"}]}
        pod = thing("Pod", name, namespace=namespace, labels=labels(theme, POD_LABELS, 3), spec=spec)
        pod["metadata"]["creationTimestamp"] = theme.pick(drawn_pods.AGES)
        pod["status"] = {"phase": "Pending"}
    pod["metadata"]["namespace"] = namespace
    return pod


def _incoming(theme, causes):
    pod = _base(theme, "new", "default")
    pod["metadata"].setdefault("labels", {"app": "web"})
    spec = pod["spec"]
    spec["priority"] = theme.pick((100, 100, 100, 1000, 10, 0))
    if theme.rarely(30):
        spec["preemptionPolicy"] = "Never"
    own = pod["metadata"]["labels"]
    if "cpu" in causes:
        _request(spec, theme, {"cpu": theme.pick(("1", "1500m", "2", "3")), "memory": theme.pick(("1Gi", "3Gi"))})
    if "pod-level" in causes:
        spec["resources"] = {"requests": {"cpu": theme.pick(("1", "2")), "memory": "2Gi"}}
        for one in (*spec["containers"], *spec.get("initContainers", ())):
            one.pop("resources", None)
    if "devices" in causes:
        _request(spec, theme, {"example.com/gpu": "1"}, limited=True)
    if "ports" in causes:
        _open_ports(spec["containers"][0], theme, 1)
    terms = {}
    if "anti-affinity" in causes:
        terms["podAntiAffinity"] = {drawn_terms.REQUIRED: [_term(theme, own) for _ in range(theme.number(1, 2))]}
    if "affinity" in causes:
        terms["podAffinity"] = {drawn_terms.REQUIRED: [_term(theme, own)]}
        _request(spec, theme, {"cpu": "40"})
    if terms:
        spec["affinity"] = terms
    if "spread" in causes:
        spec["topologySpreadConstraints"] = [_constraint(theme, own, key) for key in theme.some((HOSTNAME, ZONE), 1, 2)]
    return pod


def _request(spec, theme, amounts, *, limited=False):
    if "resources" in spec:
        return
    resources = theme.pick(spec["containers"]).setdefault("resources", {})
    resources.setdefault("requests", {}).update(amounts)
    if limited:
        resources.setdefault("limits", {}).update(amounts)


def _term(theme, own):
    """Of the few labels that the crowd has; keys and namespaces as drawn for any other term."""
    term = drawn_terms.term(theme, own)
    term["topologyKey"] = theme.pick((HOSTNAME, HOSTNAME, ZONE))
    if theme.often(3):
        term["labelSelector"] = {"matchLabels": match_labels(theme, {"app": POD_LABELS["app"]})}
        for field in ("matchLabelKeys", "mismatchLabelKeys"):
            term.pop(field, None)
    if theme.often(3):
        term.pop("namespaceSelector", None)
        term.pop("namespaces", None)
    return term


def _constraint(theme, own, key):
    made = {"topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}
    made["labelSelector"] = {"matchLabels": {"app": own["app"]}} if "app" in own else {"matchLabels": own}
    if theme.rarely(3):
        made["minDomains"] = theme.number(1, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if theme.rarely(4):
            made[policy] = theme.pick(("Honor", "Ignore"))
    return made


def _open_ports(container, theme, most):
    ports = [{"containerPort": PORT + i, "hostPort": PORT + i, "protocol": "TCP"} for i in range(theme.number(1, most))]
    for one in ports:
        if theme.rarely(4):
            one["hostIP"] = theme.pick(drawn_nodes.ADDRESSES)
        if theme.rarely(6):
            one["protocol"] = "UDP"
    container["ports"] = ports


class _Crowd:
    """Fills nodes with pods of several priorities until nothing is left of what the incoming pod wants."""

    def __init__(self, theme, causes, drawn):
        self.theme, self.causes, self.drawn = theme, causes, drawn
        self.serial = 0
        self.used = []  # claims
        if "disks" in causes:
            self.disk = drawn_pods.disk(theme)
            drawn["pod"]["spec"]["volumes"] = [{"name": "disk", **copy.deepcopy(self.disk)}]
        if "once" in causes or "volumes" in causes:
            drawn["objects"] += drawn_storage.classes(theme)
            self._claim(drawn["pod"], "own", "ReadWriteOncePod" if "once" in causes else "ReadWriteOnce")
            drawn["objects"] += [self._attach_limit(one["metadata"]["name"]) for one in drawn["nodes"]]

    def fill(self, node_name):
        for _ in range(self.theme.number(1, 6)):
            self._add(node_name)

    def nominate(self, names):
        """Now and then a node is promised to others, also to pods that are deleted."""
        theme = self.theme
        for number in range(theme.pick((0,) * 6 + (1, 2))):
            pod = _base(theme, f"w{number}", "default")
            pod["spec"]["priority"] = theme.pick((0, 10, 100, 1000))
            _request(pod["spec"], theme, {"cpu": "500m"})
            if theme.rarely(3):
                _open_ports(pod["spec"]["containers"][0], theme, 2)
            if theme.rarely(4):
                pod["spec"]["affinity"] = {"podAntiAffinity": {drawn_terms.REQUIRED: [_term(theme, {"app": "web"})]}}
            self.drawn["pods"].append(drawn_pods.nominate(theme, pod, names))

    def _add(self, node_name):
        theme, number = self.theme, self.serial
        self.serial += 1
        pod = _base(theme, f"p{number}", theme.pick(("default",) * 4 + ("team-a",)))
        meta, spec = pod["metadata"], pod["spec"]
        spec |= {"nodeName": node_name, "priority": theme.pick(PRIORITIES)}
        pod["status"] = {"phase": "Running"}
        if theme.often(12):  # of equal ages any may be evicted
            pod["status"]["startTime"] = f"2026-01-{1 + theme.below(20):02}T00:{number // 60:02}:{number % 60:02}Z"
        self._take(pod)
        if theme.rarely(12):
            meta |= {"deletionTimestamp": "2026-01-04T00:00:00Z", "deletionGracePeriodSeconds": 30}
            if theme.rarely(2):
                pod["status"]["conditions"] = [
                    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
                ]
        self.drawn["pods"].append(pod)

    def _take(self, pod):
        """What the causes are about, each by most pods."""
        theme, causes, spec = self.theme, self.causes, pod["spec"]
        if theme.often(4) and {"cpu", "pod-level"} & set(causes):
            _request(
                spec, theme, {"cpu": theme.pick(("500m", "1", "1500m", "2")), "memory": theme.pick(("1Gi", "2Gi"))}
            )
        if "devices" in causes and theme.often(3):
            _request(spec, theme, {"example.com/gpu": theme.pick(("1", "1", "2"))}, limited=True)
        if "ports" in causes and theme.often(2):
            _open_ports(spec["containers"][0], theme, 2)
        if {"anti-affinity", "spread", "affinity", "their-anti-affinity"} & set(causes) and theme.often(3):
            pod["metadata"]["labels"] = labels(theme, POD_LABELS, 3) | {"app": theme.pick(POD_LABELS["app"][:2])}
        if "affinity" in causes and theme.often(3):
            _request(spec, theme, {"cpu": theme.pick(("8", "12", "20"))})
        if "their-anti-affinity" in causes and theme.often(2):
            own = pod["metadata"].get("labels", {})
            spec["affinity"] = {"podAntiAffinity": {drawn_terms.REQUIRED: [_term(theme, own)]}}
        if "disks" in causes and theme.often(2):
            spec["volumes"] = [
                {"name": "disk", **copy.deepcopy(self.disk if theme.often(3) else drawn_pods.disk(theme))}
            ]
        if "once" in causes and not self.used and theme.rarely(2):
            self.used.append(pod)
            pod["metadata"]["namespace"] = "default"
            spec["volumes"] = [{"name": "own", "persistentVolumeClaim": {"claimName": "own"}}]
        elif "volumes" in causes and theme.often(2):
            self._claim(pod, f"c{pod['metadata']['name']}", "ReadWriteOnce")

    def _claim(self, pod, name, mode):
        """A claim of the pod that is bound to a volume which every node reaches."""
        theme, namespace = self.theme, pod["metadata"]["namespace"]
        spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "late"}
        claim = thing("PersistentVolumeClaim", name, namespace=namespace, spec=spec, status={"phase": "Pending"})
        driver = {"csi": {"driver": drawn_storage.DRIVER, "volumeHandle": f"handle-{name}"}}
        own = thing(
            "PersistentVolume",
            f"pv-{name}",
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": [mode],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "late",
                **(driver if theme.often(6) else drawn_storage.source(theme, f"pv-{name}")),
            },
            status={"phase": "Bound"},
        )
        if "local" in own["spec"]:
            own["spec"] |= driver
            del own["spec"]["local"]
        drawn_storage.bind(claim, own)
        self.drawn["objects"] += [claim, own]
        pod["spec"]["volumes"] = [{"name": "own", "persistentVolumeClaim": {"claimName": name}}]

    def _attach_limit(self, node_name):
        room = {"allocatable": {"count": self.theme.pick((1, 2, 3))}} if self.theme.often(6) else {}
        spec = {"drivers": [{"name": drawn_storage.DRIVER, "nodeID": node_name, **room}]}
        return thing("CSINode", node_name, drawn_storage.GROUP, spec=spec)


def theme_of(name, seed):
    """Without the features of the theme: what the causes do not need is drawn now and then."""
    theme = Theme(name, seed)
    theme.features = ()
    return theme
