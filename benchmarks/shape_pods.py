"""
Inputs of `bayplan bench pods` by shape: which labels pods have, what their terms select by, and how large apps are.

An app is what one template creates. Existing and pending pods are of one population, which only their numbers describe:
the same shape and sizes always give the same input. Does not know how inputs are measured.
"""

import dataclasses
import functools

from shape_axes import Shape, axis

HOST = "kubernetes.io/hostname"
TOPOLOGY = {
    "host": HOST,
    "rack": "example.com/rack",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

# Labels by who has the same value.
SHARED = [f"app.kubernetes.io/{name}" for name in ("name", "component", "part-of", "managed-by", "version")]
INSTANCE, APP, TIER, CANARY = "app.kubernetes.io/instance", "app", "tier", "canary"
HASH = "pod-template-hash"
TEAM, STAGE = "team", "stage"  # of a namespace: its own value, and one that many share
POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
JOB_NAME, JOB_INDEX = "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index"

# What terms select by. The operator applies to the first label, the others are equal.
SELECTED = {
    "own": (INSTANCE,),
    "shared": (SHARED[0],),
    "own+shared": (INSTANCE, *SHARED[:2]),
    "shared+own": (*SHARED[:2], INSTANCE),
    "tier": (TIER,),
    "tier+shared": (TIER, SHARED[0]),
    "hash": (HASH,),
    "pod": (POD_NAME,),
    "index": (POD_INDEX, INSTANCE),
    "all": (INSTANCE, *SHARED, TIER),
}


@dataclasses.dataclass(frozen=True)
class PodShape(Shape):
    # Apps: every pod its own, one for all, so many pods to an app, or so many apps in all.
    apps: str = axis("size-3", "size-10", "size-100", "each", "one", "of-10", "of-100", "of-2000")
    new: int = axis(0, 50, 100)  # percent of pending pods that are of apps without existing pods
    # Labels
    shared: int = axis(0, 2, 5)  # with one value for all pods
    tiers: int = axis(3, 10, 100, 1000)  # values of a label that many apps share
    own: int = axis(1, 2)  # with the app's own value
    template_hash: int = axis(0, 1)  # two ReplicaSets to an app
    per_pod: str = axis("none", "statefulset", "job", "both")
    further: int = axis(0, 10)  # labels that no term selects by
    # Terms
    share: int = axis(100, 50, 10, 1)  # percent of apps that have terms
    required: int = axis(0, 1, 2, 4)
    anti_required: int = axis(0, 1, 2, 8)
    preferred: int = axis(0, 1, 2, 8)
    anti_preferred: int = axis(0, 1, 2, 8)
    weights: str = axis("same", "varied")
    by: str = axis(*SELECTED)
    operator: str = axis(
        "in",
        "in-5",
        "in-100",
        "notin",
        "notin-100",
        "exists",
        "absent",
        "in+notin",
        "in+exists",
        "in+absent",
        "exists+notin",
        # The app's own value and one that all apps name.
        "in-common",
        "notin-common",
        # A key that only pods of the app have.
        "exists-own",
        "absent-own",
    )
    toward: str = axis("self", "next", "one")  # the app that the first term names; further terms name further apps
    namespaces: str = axis("1", "10", "1000", "app")
    # Namespaces of terms; the last levels are label selectors like those of the operators.
    scope: str = axis(
        "own", "list", "label", "all", "not-label", "exists+not-label", "label-common", "not-label-common", "absent-own"
    )
    # Topology
    keys: str = axis("host", "zone", "rack", "region", "host+zone", "zone+rack", "host+rack+zone+region")
    zones: int = axis(3, 1, 10, 100)
    racks: int = axis(10, 1000)
    regions: int = axis(1, 3, 50)
    # Nodes and everything that is not about peers
    nodes: str = axis("many", "few")  # few: a tenth of the number, each ten times as large
    empty: int = axis(0, 20, 50)  # percent of nodes without existing pods
    spread: str = axis("none", "hard-zone", "soft-zone", "soft-host", "hard-host", "hard-zone+soft-host", "hash")
    spread_by: str = axis("own", "shared")
    select: str = axis("none", "pool", "names", "not-names", "prefer", "prefer-names")
    taints: str = axis("none", "pools", "many-soft", "many-hard")
    requests: str = axis("same", "app", "pod", "none")
    ports: str = axis("none", "app", "same")
    gpus: int = axis(0, 1)
    images: str = axis("same", "app")


def generate(shape, n_nodes, n_init, n_pods, n_known=None):
    """
    {"nodes", "namespaces", "init", "pods"} for `bayplan bench pods`.

    Pending pods of known apps are of those of the first `n_known` existing pods, by default of any.
    """
    n_nodes = n_nodes if shape.nodes == "many" else max(4, n_nodes // 10)
    population = Population(shape, n_nodes, n_init)
    n_known = min(n_known or n_init, n_init)
    n_used = max(1, n_nodes - n_nodes * shape.empty // 100)
    init = []
    for i in range(n_init):
        app, replica = population.existing(i)
        # Replicas of one app are on different nodes, and successive apps do not begin on the same one.
        pod = population.pod(i, app, replica)
        pod["spec"]["nodeName"] = node_name((app * 7 + replica) % n_used)
        init.append(pod)
    pods = [population.pod(n_init + j, *population.pending(j, n_known)) for j in range(n_pods)]
    names = sorted({pod["metadata"]["namespace"] for pod in (*init, *pods)})
    namespaces = [{"metadata": {"name": name, "labels": population.namespace_labels(name)}} for name in names]
    return {
        "nodes": [population.node(i) for i in range(n_nodes)],
        "namespaces": namespaces,
        "init": init,
        "pods": pods,
    }


def node_name(i):
    return f"node-{i:05d}"


class Population:
    """The pods and nodes of a shape; apps are numbers, those up to `n_apps` have existing pods."""

    def __init__(self, shape, n_nodes, n_init):
        self.shape, self.n_nodes, self.n_init = shape, n_nodes, n_init
        kind, _, number = shape.apps.partition("-")
        self.size = int(number) if kind == "size" else 1  # pods to an app, unless their number is given
        self.n_given = {"one": 1, "of": int(number or 1)}.get(kind)
        self.n_apps = max(1, min(self.n_given, n_init) if self.n_given else -(-n_init // self.size))

    def existing(self, i):
        """The app and the replica of an existing pod."""
        if self.n_given:
            return i % self.n_given, i // self.n_given
        return i // self.size, i % self.size

    def pending(self, j, n_known):
        """The app and the replica of a pending pod. New and known apps alternate."""
        n_new = j * self.shape.new // 100  # before this one
        if (j + 1) * self.shape.new // 100 > n_new:
            return self.n_apps + n_new // max(self.size, 1), n_new % self.size
        app, replica = self.existing(j * 7919 % max(1, n_known))
        return app, replica + (self.n_init if self.n_given else self.size)

    # Nodes

    def node(self, i):
        shape, larger = self.shape, 1 if self.shape.nodes == "many" else 10
        room = {"cpu": str(64 * larger), "memory": f"{256 * larger}Gi", "pods": str(250 * larger)}
        if shape.gpus and i % 4 == 0:
            room["example.com/gpu"] = str(64 * larger)
        labels = {
            HOST: node_name(i),
            TOPOLOGY["rack"]: f"rack-{i % shape.racks}",
            TOPOLOGY["zone"]: f"zone-{i % shape.zones}",
            TOPOLOGY["region"]: f"region-{i * shape.regions // self.n_nodes}",
            "pool": f"pool-{i % 10}",
        }
        made = {"metadata": {"name": node_name(i), "labels": labels}, "spec": {}, "status": {"allocatable": room}}
        taint = self._taint(i)
        if taint:
            made["spec"]["taints"] = [taint]
        if shape.images == "app":
            stored = [{"names": [f"app-{app}:1"], "sizeBytes": 500_000_000} for app in range(i * 3, i * 3 + 10)]
            made["status"]["images"] = stored
        return made

    def _taint(self, i):
        kind = self.shape.taints
        if kind == "pools" and i % 10 == 0:
            return {"key": "pool", "value": "pool-0", "effect": "NoSchedule"}
        if kind == "many-soft":
            return {"key": "team", "value": f"team-{i % 1000}", "effect": "PreferNoSchedule"}
        if kind == "many-hard" and i % 2:
            return {"key": "team", "value": f"team-{i % 1000}", "effect": "NoSchedule"}
        return None

    # Pods

    def pod(self, i, app, replica):
        spec = {**self._spec(app)}
        container = {"name": "main", "image": f"app-{app}:1" if self.shape.images == "app" else "app:1"}
        varying = {"same": 0, "app": app, "pod": i}.get(self.shape.requests)
        if varying is not None:
            requests = {"cpu": f"{10 + varying % 97}m", "memory": f"{16 + varying % 89}Mi"}
            if self.shape.gpus and app % 10 == 0:
                requests["example.com/gpu"] = "1"
            container["resources"] = {"requests": requests, "limits": {k: requests[k] for k in requests if "gpu" in k}}
        port = {"app": 20_000 + app % 1000, "same": 8080 if app % 50 == 0 else None}.get(self.shape.ports)
        if port:
            container["ports"] = [{"containerPort": 80, "hostPort": port, "protocol": "TCP"}]
        spec["containers"] = [container]
        spread, affinity = self._spread(app, replica), self._affinity(app, replica)
        if spread:
            spec["topologySpreadConstraints"] = spread
        if affinity:
            spec["affinity"] = affinity
        metadata = {"name": f"pod-{i}", "namespace": self.namespace(app), "uid": f"pod-{i}"}
        return {"metadata": {**metadata, "labels": self.labels(app, replica)}, "spec": spec}

    def namespace(self, app):
        number = self.shape.namespaces
        return f"app-{app}" if number == "app" else f"team-{app % int(number)}"

    def namespace_labels(self, name):
        labels = {TEAM: name, STAGE: f"stage-{int(name.rpartition('-')[2]) % 3}"}
        return {**labels, f"of-{name}": "yes"} if self.shape.scope == "absent-own" else labels

    def labels(self, app, replica):
        shape, keys = self.shape, SELECTED[self.shape.by]
        n_shared = max([shape.shared, *(SHARED.index(key) + 1 for key in keys if key in SHARED)])
        labels = {key: f"all-{n}" for n, key in enumerate(SHARED[:n_shared])}
        labels |= {INSTANCE: f"app-{app}", TIER: f"tier-{app % shape.tiers}"}
        if shape.own > 1:
            labels[APP] = f"app-{app}"
        if app % 10 == 9:
            labels[CANARY] = "yes"
        if shape.template_hash or shape.spread == "hash" or HASH in keys:
            labels[HASH] = f"{app}-{replica % 2}"
        if shape.per_pod in ("statefulset", "both") or POD_NAME in keys or POD_INDEX in keys:
            labels |= {POD_NAME: f"app-{app}-{replica}", POD_INDEX: str(replica)}
        if shape.per_pod in ("job", "both"):
            labels |= {JOB_NAME: f"app-{app}", JOB_INDEX: str(replica)}
        if shape.operator in ("exists-own", "absent-own"):
            labels[f"of-app-{app}"] = "yes"
        labels.update({f"further-{n}": f"value-{app % (n + 1)}" for n in range(shape.further)})
        return labels

    @functools.cache  # noqa: B019 - a population is used once
    def _spec(self, app):
        """What does not depend on the replica."""
        shape, spec = self.shape, {}
        pool = {"key": "pool", "operator": "In", "values": [f"pool-{app % 10}"]}
        names = [node_name((app * 17 + n) % self.n_nodes) for n in range(3)]
        if shape.select == "pool":
            spec["nodeSelector"] = {"pool": f"pool-{app % 10}"}
        if shape.taints == "pools" and app % 10 == 0:
            spec["tolerations"] = [{"key": "pool", "value": "pool-0", "effect": "NoSchedule"}]
        if shape.taints in ("many-soft", "many-hard"):
            spec["tolerations"] = [{"key": "team", "value": f"team-{(app + n) % 1000}"} for n in range(2)]
        if shape.select in ("names", "not-names"):
            operator = "In" if shape.select == "names" else "NotIn"
            asked = {"matchExpressions": [{"key": HOST, "operator": operator, "values": names}]}
            spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [asked]}}}
        if shape.select in ("prefer", "prefer-names"):
            wanted = pool if shape.select == "prefer" else {"key": HOST, "operator": "In", "values": names}
            terms = [{"weight": self._weight(app, 0), "preference": {"matchExpressions": [wanted]}}]
            spec["affinity"] = {"nodeAffinity": {PREFERRED: terms}}
        return spec

    def _weight(self, app, n):
        return 10 if self.shape.weights == "same" else 1 + (app * 7 + n) % 100

    def _spread(self, app, replica):
        kind, selector = self.shape.spread, {"matchLabels": {INSTANCE: f"app-{app}"}}
        if kind == "none":
            return []
        if self.shape.spread_by == "shared":
            selector = {"matchLabels": {TIER: f"tier-{app % self.shape.tiers}"}}
        words = ["hard-zone", "soft-host"] if kind == "hash" else kind.split("+")
        constraints = []
        for hardness, where in (word.split("-") for word in words):
            unless = "DoNotSchedule" if hardness == "hard" else "ScheduleAnyway"
            constraint = {"maxSkew": 5, "topologyKey": TOPOLOGY[where], "whenUnsatisfiable": unless}
            if kind == "hash":  # with what an API server adds to the selector
                same = {"key": HASH, "operator": "In", "values": [f"{app}-{replica % 2}"]}
                constraint["matchLabelKeys"] = [HASH]
                selector = {**selector, "matchExpressions": [same]}
            constraints.append({**constraint, "labelSelector": selector})
        return constraints

    # Terms

    def _affinity(self, app, replica):
        shape = self.shape
        affinity = dict(self._spec(app).get("affinity", {}))
        if app * 37 % 100 >= shape.share:
            return affinity
        for field, n_required, n_preferred in (
            ("podAffinity", shape.required, shape.preferred),
            ("podAntiAffinity", shape.anti_required, shape.anti_preferred),
        ):
            required = [self._term(app, replica, n) for n in range(n_required)]
            preferred = [
                {"weight": self._weight(app, n), "podAffinityTerm": self._term(app, replica, n)}
                for n in range(n_preferred)
            ]
            written = {REQUIRED: required, PREFERRED: preferred}
            affinity[field] = {name: terms for name, terms in written.items() if terms}
        return {name: content for name, content in affinity.items() if content}

    def _term(self, app, replica, n):
        """The n-th term of a pod: about the app itself, one after it or one that all name, and n apps further."""
        shape, keys = self.shape, self.shape.keys.split("+")
        peer = app if shape.toward == "self" and n == 0 else (app + n + 1) % self.n_apps
        peer = n % self.n_apps if shape.toward == "one" else peer
        term = {"labelSelector": self._selector(peer, replica), "topologyKey": TOPOLOGY[keys[n % len(keys)]]}
        if shape.scope not in ("own", "list"):
            term["namespaceSelector"] = self._namespace_selector(self.namespace(peer))
        elif shape.scope == "list" or self.namespace(peer) != self.namespace(app):
            further = range(1, 4) if shape.scope == "list" else ()
            names = [self.namespace(app), self.namespace(peer), *(self.namespace(app + step) for step in further)]
            term["namespaces"] = list(dict.fromkeys(names))
        return term

    def _namespace_selector(self, name):
        stages = dict.fromkeys((self.namespace_labels(name)[STAGE], "stage-0", name))
        exists = {"key": TEAM, "operator": "Exists"}
        excluded = {"key": TEAM, "operator": "NotIn", "values": [name]}
        expressions = {
            "label": [{"key": TEAM, "operator": "In", "values": [name]}],
            "all": [],
            "not-label": [excluded],
            "exists+not-label": [exists, excluded],
            "label-common": [{"key": STAGE, "operator": "In", "values": list(stages)}],
            "not-label-common": [{"key": STAGE, "operator": "NotIn", "values": list(stages)}],
            "absent-own": [{"key": f"of-{name}", "operator": "DoesNotExist"}],
        }[self.shape.scope]
        return {"matchExpressions": expressions} if expressions else {}

    def _selector(self, peer, replica):
        first, *others = SELECTED[self.shape.by]
        labels = self.labels(peer, replica)

        def values(number):
            """The value of the first label for this many successive apps."""
            return list(dict.fromkeys(self.labels(peer + step, replica)[first] for step in range(number)))

        written = []
        for part in self.shape.operator.split("+"):
            name, _, number = part.partition("-")
            is_second = bool(written)
            if number == "own":
                written.append({"key": f"of-app-{peer}", "operator": "Exists" if name == "exists" else "DoesNotExist"})
            elif name == "absent" or (is_second and name == "notin" and written[0]["operator"] == "In"):
                written.append({"key": CANARY, "operator": "DoesNotExist" if name == "absent" else "NotIn"})
                if name == "notin":
                    written[-1]["values"] = ["yes"]
            elif name == "exists":
                written.append({"key": TIER if is_second else first, "operator": "Exists"})
            else:
                operator = "In" if name == "in" else "NotIn"
                if number == "common":
                    some = list(dict.fromkeys((labels[first], self.labels(0, replica)[first], f"app-{peer}")))
                else:
                    some = values(int(number or 1))
                written.append({"key": first, "operator": operator, "values": some})
        written += [{"key": key, "operator": "In", "values": [labels[key]]} for key in others]
        return {"matchExpressions": written}
