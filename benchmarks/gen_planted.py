"""
Generate groups of pods for which a plan exists, that placing them one by one seldom finds.

usage: gen_planted.py FAMILY SEED   prints one problem: nodes, pending pods, and the planted plan
       gen_planted.py list          prints the families

A problem is made from its plan: pods are put on nodes such that all rules hold, and each node then gets the room that
its pods take, and little more. 10 to 200 pods on 5 to 100 nodes in racks and zones. The same family and seed always
give the same problem. `violations` says, by plain loops, which rules a plan breaks.
"""

import json
import random
import sys
from collections import Counter

HOST, RACK, ZONE = "kubernetes.io/hostname", "example.com/rack", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
GROUP, GROUP_MIN, GROUP_TOPOLOGY, GROUP_AFFINITY = (
    f"bayplan.io/{name}" for name in ("group", "group-min", "group-topology", "group-affinity")
)
MIN_PODS, MAX_PODS = 10, 200


class Problem:
    """Nodes in racks and zones, and pods with the node that the plan has for each."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.pods, self.plan = [], [], {}
        n_zones, n_racks, n_hosts = (self.random.randint(2, most) for most in (4, 4, 6))
        n_hosts = max(n_hosts, 3 if n_zones * n_racks < 5 else 2)
        for zone in range(n_zones):
            for rack in range(n_racks):
                for _ in range(self.random.randint(max(1, n_hosts - 2), n_hosts)):
                    name = f"n{len(self.nodes):03d}"
                    labels = {HOST: name, RACK: f"z{zone}-r{rack}", ZONE: f"z{zone}"}
                    self.nodes.append(
                        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
                    )
        self.milli_cpu = Counter()

    def names_in(self, key, domain):
        return [one["metadata"]["name"] for one in self.nodes if one["metadata"]["labels"][key] == domain]

    def domains(self, key):
        return sorted({one["metadata"]["labels"][key] for one in self.nodes})

    def add(self, app, node, *, cpu, labels=None, annotations=None, **spec):
        """A pending pod that the plan puts on a node."""
        name = f"{app}-{len(self.pods)}"
        metadata = {"name": name, "namespace": "default", "labels": {"app": app, **(labels or {})}}
        if annotations:
            metadata["annotations"] = annotations
        container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": f"{cpu}m"}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}
        self.pods.append(pod)
        self.plan[f"default/{name}"] = node
        self.milli_cpu[node] += cpu

    @property
    def n_left(self):
        return MAX_PODS - len(self.pods)

    def finished(self, name):
        """The problem as a document: each node has the room that its pods take, at times a little more."""
        for node in self.nodes:
            taken = self.milli_cpu[node["metadata"]["name"]]
            slack = self.random.choice((0, 0, 0, 100))
            room = {"cpu": f"{taken + slack}m", "memory": "64Gi", "pods": "110"}
            node["status"] = {"allocatable": room, "capacity": room}
        self.random.shuffle(self.pods)
        return {"name": name, "nodes": self.nodes, "pods": self.pods, "plan": self.plan}


def term(key, **labels):
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def affinity(near=(), apart=()):
    found = {}
    if near:
        found["podAffinity"] = {REQUIRED: list(near)}
    if apart:
        found["podAntiAffinity"] = {REQUIRED: list(apart)}
    return found


def zone_affinity(problem):
    """Groups within one zone, each pod on a machine of its own: large groups fit only into large zones."""
    rng = problem.random
    while len(problem.pods) < MIN_PODS or (rng.random() < 0.9 and problem.n_left > 0):
        hosts = problem.names_in(ZONE, rng.choice(problem.domains(ZONE)))
        app, cpu = f"gang{len(problem.pods)}", rng.choice((500, 1000, 2000, 3000))
        rules = affinity(near=[term(ZONE, app=app)], apart=[term(HOST, app=app)])
        for host in rng.sample(hosts, rng.randint(min(2, len(hosts)), len(hosts)))[: problem.n_left]:
            problem.add(app, host, cpu=cpu, affinity=rules)


def mutual_anti_affinity(problem):
    """Groups within one rack; groups of one tenant are never in the same rack."""
    rng = problem.random
    racks = problem.domains(RACK)
    for tenant in range(rng.randint(2, 5)):
        for rack in rng.sample(racks, rng.randint(max(1, len(racks) - 2), len(racks))):
            app, hosts = f"t{tenant}-{rack}", problem.names_in(RACK, rack)
            others = {"matchLabels": {"tenant": f"t{tenant}"}, "matchExpressions": [
                {"key": "app", "operator": "NotIn", "values": [app]}
            ]}  # fmt: skip
            rules = affinity(near=[term(RACK, app=app)], apart=[{"topologyKey": RACK, "labelSelector": others}])
            cpu = rng.choice((500, 1000, 2000))
            for _ in range(min(rng.randint(2, 4), problem.n_left)):
                problem.add(app, rng.choice(hosts), cpu=cpu, labels={"tenant": f"t{tenant}"}, affinity=rules)


def spread(problem):
    """Deployments spread evenly over zones, each pod on a machine of its own, where zones have unequal room."""
    rng = problem.random
    zones = problem.domains(ZONE)
    smallest = min(len(problem.names_in(ZONE, zone)) for zone in zones)
    while len(problem.pods) < MIN_PODS or (rng.random() < 0.9 and problem.n_left > 0):
        app, cpu = f"web{len(problem.pods)}", rng.choice((500, 1000, 2000))
        constraint = {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        rules = affinity(apart=[term(HOST, app=app)])
        each = min(rng.randint(1, smallest), problem.n_left // len(zones))
        if not each:
            return
        for zone in zones:
            for host in rng.sample(problem.names_in(ZONE, zone), each):
                problem.add(app, host, cpu=cpu, affinity=rules, topologySpreadConstraints=[constraint])


def partners(problem):
    """Pairs that require each other on one machine, so that neither can be the first, and no two of a kind."""
    rng = problem.random
    while len(problem.pods) < MIN_PODS or (rng.random() < 0.9 and problem.n_left > 1):
        name = len(problem.pods)
        hosts = [one["metadata"]["name"] for one in problem.nodes]
        cpus = [rng.choice((500, 1000, 2000)) for _ in range(2)]
        for host in rng.sample(hosts, rng.randint(1, min(6, len(hosts))))[: problem.n_left // 2]:
            for own, other, cpu in ((f"a{name}", f"b{name}", cpus[0]), (f"b{name}", f"a{name}", cpus[1])):
                rules = affinity(near=[term(HOST, app=other)], apart=[term(HOST, app=own)])
                problem.add(own, host, cpu=cpu, affinity=rules)


def group_rules(problem):
    """Groups that share a rack by the rule of the group; instances of one service are never in the same zone."""
    rng = problem.random
    zones = problem.domains(ZONE)
    for service in range(rng.randint(2, 6)):
        for zone in rng.sample(zones, rng.randint(2, len(zones))):
            rack = rng.choice(sorted({r for r in problem.domains(RACK) if r.startswith(f"{zone}-")}))
            group, n_pods = f"s{service}-{zone}", rng.randint(2, 6)
            if n_pods > problem.n_left:
                return
            apart = {"groupAntiAffinity": {REQUIRED: [term(ZONE, service=f"s{service}")]}}
            annotations = {
                GROUP: group,
                GROUP_MIN: str(n_pods),
                GROUP_TOPOLOGY: RACK,
                GROUP_AFFINITY: json.dumps(apart, sort_keys=True),
            }
            cpu = rng.choice((500, 1000, 2000))
            for _ in range(n_pods):
                host = rng.choice(problem.names_in(RACK, rack))
                problem.add(group, host, cpu=cpu, labels={"service": f"s{service}"}, annotations=annotations)
    while len(problem.pods) < MIN_PODS:
        problem.add("filler", rng.choice(problem.nodes)["metadata"]["name"], cpu=100)


def tight(problem):
    """Nodes that are filled exactly by pods of unequal sizes, of which no two of one app share a machine."""
    rng = problem.random
    apps = [(f"app{i}", rng.choice((300, 700, 1100, 1300, 1700, 2300))) for i in range(rng.randint(3, 8))]
    for node in problem.nodes:
        for app, cpu in rng.sample(apps, rng.randint(1, min(4, len(apps)))):
            if problem.n_left > 0:
                problem.add(app, node["metadata"]["name"], cpu=cpu, affinity=affinity(apart=[term(HOST, app=app)]))
    while len(problem.pods) < MIN_PODS:
        problem.add(f"more{len(problem.pods)}", rng.choice(problem.nodes)["metadata"]["name"], cpu=500)


FAMILIES = {
    "zone-affinity": zone_affinity,
    "mutual-anti-affinity": mutual_anti_affinity,
    "spread": spread,
    "partners": partners,
    "group-rules": group_rules,
    "tight": tight,
}


def planted(family, seed):
    problem = Problem(f"{family} {seed}")
    FAMILIES[family](problem)
    return problem.finished(f"{family}-{seed}")


# The plan, judged by plain loops


def selects(selector, labels):
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    return not any(labels.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", ()))  # NotIn


def violations(problem, plan):
    """A text for every rule that a complete plan breaks; empty if it is one that may be carried out."""
    labels_of = {node["metadata"]["name"]: node["metadata"]["labels"] for node in problem["nodes"]}
    pods = {f"default/{pod['metadata']['name']}": pod for pod in problem["pods"]}
    found = [f"{name} has no node" for name in pods if plan.get(name) not in labels_of]
    if found:
        return found
    return [
        *_overfull(problem, pods, plan),
        *(text for name in pods for text in _broken_terms(name, pods, plan, labels_of)),
        *_skewed(pods, plan, labels_of),
        *_broken_group_rules(pods, plan, labels_of),
    ]


def _overfull(problem, pods, plan):
    taken = Counter()
    for name, pod in pods.items():
        taken[plan[name]] += int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1])
    for node in problem["nodes"]:
        name = node["metadata"]["name"]
        if taken[name] > int(node["status"]["allocatable"]["cpu"][:-1]):
            yield f"{name} is overcommitted"


def _broken_terms(name, pods, plan, labels_of):
    rules = pods[name]["spec"].get("affinity", {})
    for kind, wanted in (("podAffinity", True), ("podAntiAffinity", False)):
        for one in rules.get(kind, {}).get(REQUIRED, ()):
            domain = labels_of[plan[name]][one["topologyKey"]]
            peers = [
                other
                for other, pod in pods.items()
                if other != name
                and selects(one["labelSelector"], pod["metadata"]["labels"])
                and labels_of[plan[other]][one["topologyKey"]] == domain
            ]
            alone = wanted and selects(one["labelSelector"], pods[name]["metadata"]["labels"]) and not any(
                selects(one["labelSelector"], pod["metadata"]["labels"]) for other, pod in pods.items() if other != name
            )  # fmt: skip
            if bool(peers) != wanted and not alone:
                yield f"{name} breaks its {kind} in {domain}"


def _skewed(pods, plan, labels_of):
    for name, pod in pods.items():
        for one in pod["spec"].get("topologySpreadConstraints", ()):
            counts = Counter({labels[one["topologyKey"]]: 0 for labels in labels_of.values()})
            for other, peer in pods.items():
                if selects(one["labelSelector"], peer["metadata"]["labels"]):
                    counts[labels_of[plan[other]][one["topologyKey"]]] += 1
            if max(counts.values()) - min(counts.values()) > one["maxSkew"]:
                yield f"{name} is skewed"


def _broken_group_rules(pods, plan, labels_of):
    groups = {}
    for name, pod in pods.items():
        group = pod["metadata"].get("annotations", {}).get(GROUP)
        if group:
            groups.setdefault(group, []).append(name)
    for group, members in groups.items():
        metadata = pods[members[0]]["metadata"]
        key = metadata["annotations"].get(GROUP_TOPOLOGY)
        if key and len({labels_of[plan[name]][key] for name in members}) > 1:
            yield f"group {group} is in several domains of {key}"
        rules = json.loads(metadata["annotations"].get(GROUP_AFFINITY, "{}"))
        for one in rules.get("groupAntiAffinity", {}).get(REQUIRED, ()):
            own = {labels_of[plan[name]][one["topologyKey"]] for name in members}
            for other, others in groups.items():
                is_meant = other != group and selects(one["labelSelector"], pods[others[0]]["metadata"]["labels"])
                if is_meant and own & {labels_of[plan[name]][one["topologyKey"]] for name in others}:
                    yield f"groups {group} and {other} share a domain of {one['topologyKey']}"


def main():
    if sys.argv[1:] == ["list"]:
        print("\n".join(f"{name}: {make.__doc__}" for name, make in FAMILIES.items()))
    else:
        json.dump(planted(sys.argv[1], int(sys.argv[2])), sys.stdout)


if __name__ == "__main__":
    main()
