"""
Random small clusters with a pending pod, as questions of `decide pods`.

Everything is drawn from few values, so that labels, ports, claims and domains match often. What an API server would
reject is not drawn, except where a file or an annotation may hold it nevertheless (empty `namespaces`, an empty
`topologyKey`). `questions()` is for Hypothesis, which then looks for the smallest example; `seeded` draws evenly and
fast, for long runs.
"""

import json
import random
from functools import cache

from hypothesis import strategies as st

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
TOPOLOGY_KEYS = (HOSTNAME, ZONE, REGION, "rack")
ZONES, REGIONS = ("z1", "z2", "z3"), ("r1", "r2")
NAMESPACES = ("default", "team-a", "team-b", "kube-system")
HOMES = ("default", "default", "default", *NAMESPACES)  # pods mostly live together, else nothing would ever match
POD_LABELS = {"app": ("web", "db"), "tier": ("front", "back"), "version": ("v1", "v2")}
NODE_LABELS = {ZONE: ZONES, REGION: REGIONS, "rack": ("rack1", "rack2"), "disk": ("ssd", "hdd"), "gen": ("1", "5", "x")}
IMAGES = ("repo/web:v1", "repo/db:v1", "repo/job:latest", "repo/big:v2")
MIB = 1024 * 1024
CONFIG = "kubescheduler.config.k8s.io/v1"

SWITCHES = (
    "affinityTermsMetApart",
    "firstPodPerTerm",
    "firstPodNeedsTopologyKey",
    "antiAffinityNeedsTopologyKey",
    "neighboursRejectWhenSatisfied",
    "softTermsCountOnce",
    "neighboursCountWhenChanged",
    "softAntiAffinitySymmetric",
    "emptyNamespacesMeanAll",
    "emptyTopologyKeyMeansAny",
    "negativeNamespaceSelectorMatchesAll",
)


class Dice:
    """All chance comes from here; `below(n)` gives a whole number from 0 to n - 1, and 0 is the plainest."""

    def __init__(self, below):
        self.below = below

    def often(self, times=2):
        """All but once in so many times."""
        return self.below(times) < times - 1

    def rarely(self, one_in=4):
        return not self.often(one_in)

    def number(self, low, high):
        return low + self.below(high - low + 1)

    def pick(self, values):
        return values[self.below(len(values))]

    def some(self, values, least=0, most=2):
        """Distinct ones, in any order."""
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in range(self.number(least, min(most, len(left))))]


@cache
def _whole_numbers(below):
    return st.integers(0, below - 1)


@st.composite
def questions(draw, **choices):
    """Questions as `question` draws them."""
    return question(Dice(lambda below: draw(_whole_numbers(below))), **choices)


def seeded(seed, **choices):
    """The question of this number."""
    return question(Dice(random.Random(seed).randrange), **choices)


def question(dice, presets=("upstream", "design"), switches=True, most_nodes=8, most_pods=16):
    """A whole question for `decide pods`; `switches` says whether single ones may be flipped."""
    node_names = [f"n{i}" for i in range(dice.number(2, most_nodes))]
    calm = dice.often(2)  # nothing but affinity keeps pods from nodes, so that there is more to score
    claims = ("c0", "c1") if not calm and dice.rarely(3) else ()
    pod = pending_pod(dice, "new", claims, calm=calm)
    namespace = pod["metadata"]["namespace"]
    if not calm and dice.rarely(15):
        pod["spec"]["nodeName"] = dice.pick(node_names)
    objects = storage(dice, namespace) if claims else []
    objects += selecting_objects(dice, pod)
    return {
        "name": "random",
        "nodes": [node(dice, name, calm) for name in node_names],
        "namespaces": [
            thing("Namespace", name, labels={"team": name[-1]} if name.startswith("team") else {})
            for name in NAMESPACES
            if dice.often(10)
        ],
        "pods": [placed_pod(dice, f"p{i}", node_names, claims, calm) for i in range(dice.number(0, most_pods))],
        "pod": pod,
        "objects": objects,
        "options": options(dice, presets, switches),
    }


def thing(kind, name, api_version="v1", labels=None, namespace=None, **rest):
    metadata = {"name": name, "labels": labels or {}}
    if namespace is not None:
        metadata.update(namespace=namespace, uid=f"uid-{name}", annotations={})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


# Labels and selectors


def labels(dice, values_by_key=POD_LABELS, one_in=2):
    return {key: dice.pick(values) for key, values in values_by_key.items() if dice.often(one_in)}


def requirement(dice, values_by_key):
    key = dice.pick(sorted(values_by_key))
    operator = dice.pick(("In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("In", "NotIn"):
        return {"key": key, "operator": operator, "values": dice.some(values_by_key[key], 1)}
    return {"key": key, "operator": operator}


def match_labels(dice, values_by_key):
    return {key: dice.pick(values_by_key[key]) for key in dice.some(sorted(values_by_key), 1)}


def label_selector(dice, values_by_key=POD_LABELS):
    kind = dice.below(6)
    if kind == 0:
        return {}
    if kind == 1:
        return {"matchExpressions": [requirement(dice, values_by_key) for _ in range(dice.number(1, 2))]}
    return {"matchLabels": match_labels(dice, values_by_key)}


# Affinity terms


def affinity_term(dice, ours=False, exempting=False):
    """A term; `ours` adds what only Bayplan knows, `exempting` what only required anti-affinity may have."""
    term = {"topologyKey": dice.pick(TOPOLOGY_KEYS)}
    if dice.often(12):
        term.update(selector_with_keys(dice))
        if dice.rarely(6):
            term["mismatchLabelKeys"] = ["tier"]
    if dice.rarely(3):
        term["namespaces"] = dice.some(NAMESPACES)
    if dice.rarely(3):
        negative = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
        term["namespaceSelector"] = negative if dice.rarely() else label_selector(dice, {"team": ("a", "b")})
    if exempting and dice.rarely(2):
        term["limit"] = dice.number(0, 2)
    if exempting and dice.rarely(3):
        term["tolerateNamespaces"] = dice.some(NAMESPACES)
    if ours and dice.rarely():
        term["topologyKey"] = ""
    return term


def selector_with_keys(dice):
    """A selector, perhaps with `matchLabelKeys`, which must not name a key of the selector."""
    if dice.rarely(6):
        others = {key: values for key, values in POD_LABELS.items() if key != "version"}
        return {"labelSelector": label_selector(dice, others), "matchLabelKeys": ["version"]}
    return {"labelSelector": label_selector(dice)}


def one_sign(dice, sign, ours=False):
    """A `podAffinity` or `podAntiAffinity`."""
    side, exempting = {}, ours and sign == "podAntiAffinity"
    if dice.rarely(3):
        side["requiredDuringSchedulingIgnoredDuringExecution"] = [
            affinity_term(dice, ours, exempting) for _ in range(dice.number(1, 2))
        ]
    if dice.often(3):
        side["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.pick((1, 2, 10, 100)), "podAffinityTerm": affinity_term(dice, ours)}
            for _ in range(dice.number(1, 2))
        ]
    if ours and dice.rarely(2):
        side["requiredDuringSchedulingRequiredDuringExecution"] = [affinity_term(dice, ours, exempting)]
    return side


# Nodes


def node(dice, name, calm=False):
    found = labels(dice, NODE_LABELS, 2)
    for key in (ZONE, REGION):  # most nodes have them
        if dice.often(6):
            found.setdefault(key, dice.pick(NODE_LABELS[key]))
    if dice.often(10):
        found[HOSTNAME] = name
    spec, room = {}, dict(ROOMY) if calm else allocatable(dice)
    if not calm and dice.rarely(6):
        spec["taints"] = [taint(dice) for _ in range(dice.number(1, 2))]
    if not calm and dice.rarely(12):
        spec["unschedulable"] = True
    status = {"capacity": room} if dice.rarely(12) else {"capacity": room, "allocatable": room}
    if dice.rarely(2):
        sizes = (10 * MIB, 300 * MIB, 1500 * MIB)
        # One size for each: of several, kube-scheduler takes that of the node that had the image first.
        status["images"] = [
            {"names": [image], "sizeBytes": sizes[IMAGES.index(image) % 3]} for image in dice.some(IMAGES, 1, 3)
        ]
    return thing("Node", name, labels=found, spec=spec, status=status)


def taint(dice):
    return {
        "key": dice.pick(("dedicated", "gpu")),
        "value": dice.pick(("a", "b", "")),
        "effect": dice.pick(("PreferNoSchedule", "NoSchedule", "NoExecute")),
    }


def toleration(dice):
    drawn = {"key": dice.pick(("dedicated", "gpu", "node.kubernetes.io/unschedulable"))}
    if dice.rarely(2):
        drawn["effect"] = dice.pick(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    if dice.rarely(2):
        drawn["value"] = dice.pick(("a", "b"))
        return drawn if dice.rarely(2) else {**drawn, "operator": "Equal"}
    drawn["operator"] = "Exists"
    if dice.rarely(5):
        drawn.pop("key")
    return drawn


ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi", "example.com/gpu": "64"}


def allocatable(dice):
    room = {
        "cpu": dice.pick(("4", "2", "7500m")),
        "memory": dice.pick(("8Gi", "4Gi", "9000M")),
        "pods": "3" if dice.rarely(5) else "110",
    }
    if dice.often(3):
        room["ephemeral-storage"] = "10Gi"
    if dice.rarely(3):
        room["example.com/gpu"] = dice.pick(("1", "4"))
    return room


# Pods


def pending_pod(dice, name, claims=(), calm=False, lively=1):
    """An unscheduled pod; the higher `lively`, the rarer its rules; a `calm` pod names no node."""
    metadata = {"name": name, "namespace": dice.pick(HOMES), "uid": name, "labels": labels(dice, one_in=3)}
    if dice.rarely(3 * lively):
        sides = {sign: one_sign(dice, sign, ours=True) for sign in dice.some(("podAffinity", "podAntiAffinity"), 1)}
        metadata["annotations"] = {"bayplan.io/affinity": json.dumps(sides)}
    spec = {"schedulerName": "default-scheduler", "containers": [container(dice, "c", calm)]}
    if dice.rarely(3):
        spec["containers"].append(container(dice, "d", calm))
    if dice.rarely(6):
        spec["initContainers"] = [init_container(dice, f"i{i}", calm) for i in range(dice.number(1, 2))]
    affinity = {sign: one_sign(dice, sign) for sign in ("podAffinity", "podAntiAffinity") if dice.rarely(2)}
    if dice.rarely(4 * lively):
        affinity["nodeAffinity"] = node_affinity(dice, soft=calm)
    if affinity:
        spec["affinity"] = affinity
    if not calm and dice.rarely(10 * lively):
        spec["nodeSelector"] = match_labels(dice, {"disk": NODE_LABELS["disk"], ZONE: ZONES})
    if dice.rarely(3):
        spec["tolerations"] = [toleration(dice) for _ in range(dice.number(1, 2))]
    if dice.rarely(3 * lively):
        spec["topologySpreadConstraints"] = spread_constraints(dice)
    if dice.rarely(10):
        spec["overhead"] = {"cpu": "250m", "memory": "64Mi"}
    if dice.rarely(12):
        spec["resources"] = {
            "requests": dice.pick(({"cpu": "1", "memory": "1Gi"}, {"memory": "1Gi"}, {"cpu": "1500m"}))
        }
    if claims and dice.often(3 - min(lively, 1)):
        spec["volumes"] = [
            {"name": f"v-{claim}", "persistentVolumeClaim": {"claimName": claim}} for claim in dice.some(claims, 1)
        ]
    if dice.rarely(2) and not any("ephemeral" in one for one in spec.get("volumes", ())):
        del metadata["uid"]  # as it is written, before a server merges label keys into its affinity
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def placed_pod(dice, name, node_names, claims=(), calm=False):
    pod = pending_pod(dice, name, claims if dice.rarely(3) else (), calm, lively=2)
    pod["spec"]["nodeName"] = "gone" if dice.rarely(20) else dice.pick(node_names)
    pod["status"]["phase"] = dice.pick(("Pending", "Succeeded", "Failed")) if dice.rarely(8) else "Running"
    if dice.rarely(6):
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod


def requests(dice):
    asked = {}
    if dice.often(3):
        asked["cpu"] = dice.pick(("100m", "0", "500m", "1", "1500m"))
    if dice.often(3):
        asked["memory"] = dice.pick(("128Mi", "0", "1Gi", "3000M"))
    if dice.rarely(8):
        asked["ephemeral-storage"] = "4Gi"
    if dice.rarely(12):
        asked["example.com/gpu"] = dice.pick(("1", "2"))
    return asked


def container(dice, name, calm=False):
    drawn = {"name": name, "image": dice.pick((*IMAGES, "repo/job"))}
    if dice.often(3):
        drawn["resources"] = {"requests": requests(dice)}
    if not calm and dice.rarely(5):
        port = {"containerPort": 80, "hostPort": dice.pick((8080, 8081))}
        if dice.rarely(2):
            port["protocol"] = dice.pick(("TCP", "UDP"))
        if dice.rarely(2):
            port["hostIP"] = dice.pick(("0.0.0.0", "10.0.0.1", "10.0.0.2"))
        drawn["ports"] = [port]
    return drawn


def init_container(dice, name, calm=False):
    drawn = container(dice, name, calm)
    return {**drawn, "restartPolicy": "Always"} if dice.rarely(2) else drawn


def node_term(dice):
    """Now and then an empty one, which matches nothing."""
    term = {"matchExpressions": [node_requirement(dice) for _ in range(0 if dice.rarely(10) else dice.number(1, 2))]}
    if dice.rarely(4):
        operator = dice.pick(("In", "In", "NotIn"))
        term["matchFields"] = [
            {"key": "metadata.name", "operator": operator, "values": [dice.pick(("n0", "n1", "n9"))]}
        ]
        if dice.rarely(2):
            term.pop("matchExpressions")
    return term


def node_requirement(dice):
    if dice.rarely(5):
        return {"key": "gen", "operator": dice.pick(("Gt", "Lt")), "values": [dice.pick(("1", "4"))]}
    return requirement(dice, NODE_LABELS)


def node_affinity(dice, soft=False):
    affinity = {}
    if not soft and dice.rarely(2):
        terms = [node_term(dice) for _ in range(dice.number(1, 2))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if dice.rarely(2):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.pick((1, 5, 100)), "preference": node_term(dice)} for _ in range(dice.number(0, 2))
        ]
    return affinity


def spread_constraints(dice):
    """Constraints without two of the same key and action, which no API server takes."""
    pairs = [(key, action) for key in TOPOLOGY_KEYS for action in ("DoNotSchedule", "ScheduleAnyway")]
    drawn = []
    for key, action in dice.some(pairs, 1, 3):
        constraint = {"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": dice.number(1, 3)}
        if dice.often(12):
            constraint.update(selector_with_keys(dice))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if dice.rarely(3):
                constraint[policy] = dice.pick(("Honor", "Ignore"))
        if action == "DoNotSchedule" and dice.rarely(3):
            constraint["minDomains"] = dice.number(1, 4)
        drawn.append(constraint)
    return drawn


# Services, controllers and volumes


def selecting_objects(dice, pod):
    """A Service and a ReplicaSet that may select the pod; the ReplicaSet owns it."""
    namespace, objects = pod["metadata"]["namespace"], []
    if dice.rarely(3):
        selector = match_labels(dice, POD_LABELS)
        objects.append(thing("Service", "s", namespace=namespace, spec={"selector": selector}))
    if dice.rarely(4):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "uid-rs", "controller": True}
        pod["metadata"]["ownerReferences"] = [owner]
        spec = {"selector": label_selector(dice)}
        objects.append(thing("ReplicaSet", "rs", "apps/v1", namespace=namespace, spec=spec))
    return objects


def storage(dice, namespace):
    """Classes, volumes and the claims c0 and c1 of the namespace: bound, waiting, stuck or missing."""
    group = "storage.k8s.io/v1"
    now = thing("StorageClass", "now", group, provisioner="csi.example.com", volumeBindingMode="Immediate")
    late = thing("StorageClass", "late", group, provisioner="csi.example.com", volumeBindingMode="WaitForFirstConsumer")
    if dice.rarely(4):
        late["provisioner"] = "kubernetes.io/no-provisioner"
    if dice.rarely(2):
        late["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": dice.some(ZONES, 1)}]}]
    made = [*claim_and_volume(dice, "c0", namespace), *claim_and_volume(dice, "c1", namespace)]
    return [now, late, *made, *drivers(dice)]


def drivers(dice):
    """How many volumes nodes can attach, and the storage capacity that the driver publishes."""
    group, found = "storage.k8s.io/v1", []
    if dice.rarely(2):
        for number in range(4):
            spec = {
                "drivers": [{"name": "csi.example.com", "nodeID": "x", "allocatable": {"count": dice.pick((1, 2))}}]
            }
            found.append(thing("CSINode", f"n{number}", group, spec=spec))
        for number in range(dice.pick((0, 0, 1, 3))):
            driver = dice.pick(("csi.example.com", "csi.example.com", "other.example.com"))
            volume = {"persistentVolumeName": dice.pick(("pv-c0", "pv-c1", "pv-other"))}
            spec = {"attacher": driver, "nodeName": f"n{dice.number(0, 3)}", "source": volume}
            found.append(thing("VolumeAttachment", f"a{number}", group, spec=spec))
    if dice.rarely(2):
        found.append(thing("CSIDriver", "csi.example.com", group, spec={"storageCapacity": dice.pick((True, False))}))
        for zone in ZONES:
            space = {"storageClassName": "late", "nodeTopology": {"matchLabels": {ZONE: zone}}}
            space |= {"capacity": dice.pick(("512Mi", "1Gi", "4Gi"))}
            space |= {"maximumVolumeSize": dice.pick(("512Mi", "4Gi"))} if dice.rarely(3) else {}
            found.append(thing("CSIStorageCapacity", f"in-{zone}", group, namespace="default", **space))
    return found


def claim_and_volume(dice, name, namespace):
    state = dice.pick(("bound", "bound", "bound", "waiting", "waiting", "waiting", "stuck", "missing"))
    if state == "missing":
        return []
    modes = ["ReadWriteOncePod"] if dice.rarely(4) else ["ReadWriteOnce"]
    claim_spec = {
        "accessModes": modes,
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "now" if state == "stuck" else "late",
    }
    claim = thing("PersistentVolumeClaim", name, namespace=namespace, spec=claim_spec, status={"phase": "Pending"})
    volume_spec = {"accessModes": modes, "capacity": {"storage": dice.pick(("1Gi", "2Gi"))}, "storageClassName": "late"}
    zone = {ZONE: dice.pick(ZONES)} if dice.rarely(2) else {}
    volume = thing("PersistentVolume", f"pv-{name}", labels=zone, spec=volume_spec, status={"phase": "Available"})
    if not zone and dice.rarely(2):
        reach = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": dice.some(ZONES, 1)}]}]
        volume_spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": reach}}
    if dice.rarely(2):
        volume_spec["csi"] = {"driver": "csi.example.com", "volumeHandle": f"handle-{name}"}
    if state == "bound":
        claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
        claim["status"]["phase"] = volume["status"]["phase"] = "Bound"
        claim_spec["volumeName"] = f"pv-{name}"
        keeper = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "uid": f"uid-{name}"}
        volume_spec["claimRef"] = keeper
    return [claim, volume] if state == "bound" or dice.rarely(2) else [claim]


# Options


def options(dice, presets, switches):
    drawn = {"semantics": dice.pick(presets)}
    if switches and dice.rarely(3):
        drawn["switches"] = {switch: dice.rarely(2) for switch in dice.some(SWITCHES, 1, 3)}
    if dice.rarely(4):
        drawn["daemonNamespaces"] = dice.some(NAMESPACES)
    if dice.rarely(4):
        drawn["config"] = config(dice)
    return drawn


def resource_weights(dice):
    names = dice.some(("cpu", "memory", "ephemeral-storage", "example.com/gpu"), 1, 3)
    return [{"name": name, "weight": dice.number(1, 5)} for name in names]


def scoring_strategy(dice):
    kind = dice.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))
    strategy = {"type": kind}
    if kind == "RequestedToCapacityRatio":
        at = sorted(dice.some(range(0, 101, 10), 1, 3))
        shape = [{"utilization": utilization, "score": dice.number(0, 10)} for utilization in at]
        strategy["requestedToCapacityRatio"] = {"shape": shape}
    if kind == "RequestedToCapacityRatio" or dice.rarely(2):
        strategy["resources"] = resource_weights(dice)
    return strategy


def plugin_arguments(dice):
    args = {}
    if dice.rarely(2):
        args["NodeResourcesFit"] = {"scoringStrategy": scoring_strategy(dice)}
        if dice.rarely(3):
            args["NodeResourcesFit"]["ignoredResources"] = ["example.com/gpu"]
    if dice.rarely(3):
        resources = [{**entry, "weight": 1} for entry in resource_weights(dice)]
        args["NodeResourcesBalancedAllocation"] = {"resources": resources}
    if dice.rarely(2):
        args["InterPodAffinity"] = {"hardPodAffinityWeight": dice.pick((1, 0, 50))}
        if dice.rarely(2):
            args["InterPodAffinity"]["ignorePreferredTermsOfExistingPods"] = dice.rarely(2)
    if dice.rarely(3):
        args["NodeAffinity"] = {"addedAffinity": node_affinity(dice)}
    if dice.rarely(3):
        args["PodTopologySpread"] = {
            "defaultingType": "List",
            "defaultConstraints": [
                {
                    "maxSkew": dice.number(1, 2),
                    "topologyKey": key,
                    "whenUnsatisfiable": dice.pick(("ScheduleAnyway", "DoNotSchedule")),
                }
                for key in dice.some((ZONE, HOSTNAME))
            ],
        }
    return args


def config(dice):
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [
            {"name": name, "args": {"apiVersion": CONFIG, "kind": f"{name}Args", **given}}
            for name, given in plugin_arguments(dice).items()
        ],
    }
    if dice.rarely(2):
        scorers = ("InterPodAffinity", "NodeAffinity", "PodTopologySpread", "ImageLocality")
        changes = {"enabled": [{"name": name, "weight": dice.number(1, 10)} for name in dice.some(scorers)]}
        if dice.rarely(4):
            changes["disabled"] = [{"name": dice.pick(("TaintToleration", "NodeResourcesFit", "ImageLocality"))}]
        profile["plugins"] = {"multiPoint": changes}
    return {"apiVersion": CONFIG, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
