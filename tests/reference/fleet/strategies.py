"""
Random small fleets with a binding to place, as questions of `decide fleet`.

Everything is drawn from few values, so that labels, groups, zones and shortages meet often. `questions()` is for
Hypothesis, which then looks for the smallest example; `seeded` draws evenly and fast, for long runs. With
`additions=False` a question holds nothing that karmada-scheduler v1.18.2 does not know.
"""

import json
import random

from hypothesis import strategies as st

from reference.strategies import Dice, _whole_numbers, label_selector, labels, match_labels

REGIONS, PROVIDERS = ("eu", "us", "ap"), ("aws", "gcp", "idc")
CLUSTER_LABELS = {"env": ("prod", "test"), "pool": ("idc", "cloud"), "rack": ("r1", "r2")}
NAMESPACES = ("default", "default", "default", "team-a")
WORKLOAD_LABELS = {"app": ("web", "db"), "ha.group": ("x", "y"), "tier": ("front", "back")}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TOPOLOGY_KEYS = ("cluster", "zone", "region", "provider", "rack", "topology.karmada.io/zone")
SWITCHES = (
    "spreadByEveryField",
    "firstTierAlone",
    "drainingCopiesCount",
    "groupsMoveTogether",
    "emptyNamespacesMeanAll",
)


@st.composite
def questions(draw, **choices):
    """Questions as `question` draws them."""
    return question(Dice(lambda below: draw(_whole_numbers(below))), **choices)


def seeded(seed, **choices):
    """The question of this number."""
    return question(Dice(random.Random(seed).randrange), **choices)


def question(dice, presets=("upstream", "design"), additions=True, most_clusters=8, most_bindings=6):
    """A whole question for `decide fleet`; `additions` allows what only Bayplan has."""
    names = [f"m{i}" for i in range(dice.number(2, most_clusters))]
    calm = dice.often(2)  # clusters have no taints and the like, so that there is more to select and divide
    binding = pending(dice, "new", names, calm)
    binding["spec"]["placement"] = placement(dice, binding, names, additions)
    bindings = [placed(dice, f"w{i}", names) for i in range(dice.number(0, most_bindings))]
    drawn = {
        "name": "random",
        "clusters": [cluster(dice, name, calm) for name in names],
        "bindings": bindings,
        "binding": binding,
        "resources": [],
        "options": {},
    }
    if additions:
        drawn["resources"] = namespaces(dice)
        drawn["options"] = options(dice, presets)
        switchable = "affinityLabelKeys" in drawn["options"]
        for each in [binding, *bindings]:
            rules_of_ours(dice, each, drawn["resources"], switchable)
    return drawn


def component_sets(dice):
    """A workload of several components under Karmada's gate for them, mostly for exactly one cluster."""
    drawn = question(dice, presets=("upstream",), additions=False)
    drawn["options"] = {**drawn.get("options", {}), "switches": {"multiplePodTemplatesScheduling": True}}
    spec = drawn["binding"]["spec"]
    spec["components"] = [component(dice, f"c{i}") for i in range(dice.number(1, 3))]
    if dice.often(6):
        spec["placement"]["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    return drawn


def large_fleet(dice):
    """
    Aggregated replicas over more clusters than Go sorts in a stable way, scaled up, down or again from the start.

    Capacities are few, so that many clusters are equal. Of what karmada-scheduler knows, nothing else is drawn.
    """
    names = [f"m{i:02}" for i in range(dice.number(13, 60))]
    binding = pending(dice, "new", names, calm=True)
    pods = dice.pick(((1, 2), (1, 2, 3), (3,), (0, 5, 9), tuple(range(1, 12))))
    clusters = [cluster(dice, name, calm=True) for name in names]
    for each in clusters:
        each["status"]["resourceSummary"] = {"allocatable": {"pods": str(dice.pick(pods))}}
        each["spec"].pop("resourceModels", None)
    in_use = dice.some(names, 0, len(names)) if dice.often(2) else dice.some(names, 0, 4)
    shares = [{"name": name, "replicas": dice.pick(pods)} for name in in_use]
    binding["spec"] = {
        "resource": reference("apps/v1", "Deployment", "default", "new", uid=f"uid-{dice.number(0, 3)}"),
        "replicas": dice.number(1, sum(each["replicas"] for each in shares) + dice.pick((1, 10, 40))),
        "clusters": shares,
        "placement": {
            "clusterAffinity": {},
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
        },
    }
    binding["status"] = {}
    if dice.rarely(5):
        binding["spec"]["rescheduleTriggeredAt"] = "2026-01-02T00:00:00Z"
        binding["status"]["lastScheduledTime"] = "2026-01-01T00:00:00Z"
    if dice.rarely(4):
        limits = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": dice.number(13, 60)}
        binding["spec"]["placement"]["spreadConstraints"] = [limits]
    if dice.rarely(4):
        first, *others = (names[i::3] for i in range(3))
        tiers = [{"affinityName": f"tier{i}", "clusterNames": tier} for i, tier in enumerate(others)]
        del binding["spec"]["placement"]["clusterAffinity"]
        term = {"affinityName": "only", "clusterNames": first, "overflowAffinities": tiers}
        binding["spec"]["placement"]["clusterAffinities"] = [term]
    return {"name": "large", "clusters": clusters, "bindings": [], "binding": binding, "resources": [], "options": {}}


# Clusters


def cluster(dice, name, calm=False):
    spec, metadata = {"syncMode": "Push"}, {"name": name, "labels": labels(dice, CLUSTER_LABELS, 3)}
    region = dice.pick(REGIONS)
    if dice.often(8):
        spec["region"] = region
    if dice.often(8):
        spec["provider"] = dice.pick(PROVIDERS)
    if dice.often(8):
        spec["zones"] = [f"{region}-{zone}" for zone in dice.some("abc", 1)]
    status = {"apiEnablements": [served("apps/v1", "Deployment"), served("v1", "ConfigMap"), served("x/v1", "Flink")]}
    if not calm:
        if dice.rarely(5):
            spec["taints"] = [taint(dice) for _ in range(dice.number(1, 2))]
        if dice.rarely(8):
            status["apiEnablements"] = [served("apps/v1", "StatefulSet")]
        if dice.rarely(12):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            metadata["finalizers"] = ["karmada.io/cluster-controller"]
    if dice.often(15):
        status["resourceSummary"] = summary(dice)
        if dice.rarely(4):
            models(dice, spec, status["resourceSummary"])
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def served(group_version, kind):
    return {"groupVersion": group_version, "resources": [{"kind": kind, "name": f"{kind.lower()}s"}]}


def taint(dice):
    return {
        "key": dice.pick(("gpu", "maintenance")),
        "value": dice.pick(("yes", "")),
        "effect": dice.pick(("NoSchedule", "NoExecute", "PreferNoSchedule")),
    }


def summary(dice):
    """Often several with the same capacity, so that ties have to be broken."""
    reported = {
        "allocatable": {"cpu": dice.pick(("8", "4", "16")), "memory": dice.pick(("16Gi", "8Gi")), "pods": "20"},
        "allocated": {"cpu": dice.pick(("0", "2", "3500m")), "memory": dice.pick(("0", "4Gi", "1000M")), "pods": "4"},
    }
    if dice.rarely(4):
        reported["allocating"] = {"cpu": "500m", "pods": dice.pick(("1", "30"))}
    if dice.rarely(4):
        reported["allocatable"]["example.com/gpu"] = dice.pick(("2", "4"))
    if dice.rarely(10):
        del reported["allocatable"]["memory"]
    return reported


def models(dice, spec, reported):
    sizes = (("0", "0"), ("1", "4Gi"), ("2", "16Gi"), ("4", "32Gi"))
    spec["resourceModels"] = [
        {
            "grade": grade,
            "ranges": [{"name": "cpu", "min": cpu, "max": "64"}, {"name": "memory", "min": mem, "max": "1Ti"}],
        }
        for grade, (cpu, mem) in enumerate(sizes)
        if dice.often(6)
    ]
    reported["allocatableModelings"] = [
        {"grade": grade, "count": -1 if dice.rarely(20) else dice.pick((0, 1, 2, 5))} for grade in range(4)
    ]


# Affinities


def cluster_affinity(dice, names):
    affinity = {}
    if dice.often(3):
        affinity["clusterNames"] = dice.some([*names, "m9"], 1, 4)
    if dice.rarely(4):
        affinity["labelSelector"] = label_selector(dice, CLUSTER_LABELS)
    if dice.rarely(5):
        affinity["exclude"] = dice.some(names, 1)
    if dice.rarely(5):
        affinity["fieldSelector"] = {"matchExpressions": [field_requirement(dice)]}
    return affinity


def field_requirement(dice):
    values = {"region": REGIONS, "provider": PROVIDERS, "zone": ("eu-a", "us-a", "ap-b")}
    key, operator = dice.pick(sorted(values)), dice.pick(("In", "NotIn", "Exists", "DoesNotExist"))
    if operator in ("In", "NotIn"):
        return {"key": key, "operator": operator, "values": dice.some(values[key], 1)}
    return {"key": key, "operator": operator}


def tiers(dice, names, named=True):
    drawn = [cluster_affinity(dice, names) for _ in range(dice.number(1, 2))]
    return [{"affinityName": f"tier{i}", **tier} if named else tier for i, tier in enumerate(drawn)]


def affinity_terms(dice, names):
    return [
        {"affinityName": f"group{0 if dice.rarely(20) else i}", **cluster_affinity(dice, names)}
        for i in range(dice.number(1, 3))
    ]


def affinities(dice, names, additions):
    """One of the forms that select clusters."""
    form = dice.pick(("none", "single", "terms", "terms", "overflow", "overflow", *(DESIGN_FORMS if additions else ())))
    if form == "none":
        return {}
    if form == "single":
        return {"clusterAffinity": cluster_affinity(dice, names)}
    terms = affinity_terms(dice, names)
    if form == "overflow":
        for term in terms:
            if dice.often(3):
                term["overflowAffinities"] = [] if dice.rarely(10) else tiers(dice, names)
    if form == "supplements of terms":
        for term in terms:
            if dice.often(3):
                term["supplements"] = tiers(dice, names, named=False)
    if form == "supplements":
        return {"clusterAffinity": {**cluster_affinity(dice, names), "supplements": tiers(dice, names, named=False)}}
    if form == "preferred":
        return {"preferredClusterAffinities": terms}
    if form == "inherited":
        return {"clusterAffinities": terms, "affinityStrategy": {"mode": "Inherited"}}
    return {"clusterAffinities": terms}


DESIGN_FORMS = ("supplements", "supplements of terms", "inherited", "preferred")


# Placement


def placement(dice, binding, names, additions):
    drawn = affinities(dice, names, additions)
    if dice.often(2):
        drawn["replicaScheduling"] = replica_scheduling(dice, names)
    if dice.rarely(2):
        drawn["spreadConstraints"] = spread_constraints(dice)
    if dice.rarely(4):
        drawn["clusterTolerations"] = [toleration(dice)]
    terms = drawn.get("clusterAffinities")
    if terms and dice.rarely(3):
        observed = "gone" if dice.rarely(6) else dice.pick(terms)["affinityName"]
        binding["status"]["schedulerObservingAffinityName"] = observed
    return drawn


def replica_scheduling(dice, names):
    divided = {"replicaSchedulingType": "Divided"}
    kind = dice.pick(("aggregated", "aggregated", "dynamic", "dynamic", "static", "even", "odd", "duplicated"))
    if kind == "duplicated":
        return {"replicaSchedulingType": "Duplicated"}
    if kind == "aggregated":
        return {**divided, "replicaDivisionPreference": "Aggregated"}
    divided["replicaDivisionPreference"] = "Weighted"
    if kind == "dynamic":
        divided["weightPreference"] = {"dynamicWeight": "AvailableReplicas"}
    if kind == "static":
        divided["weightPreference"] = {
            "staticWeightList": [
                {"targetCluster": cluster_affinity(dice, names), "weight": dice.number(1, 3)}
                for _ in range(dice.number(1, 3))
            ]
        }
    if kind == "odd" and dice.rarely(2):
        divided["weightPreference"] = {}
    elif kind == "odd" and dice.rarely(3):
        del divided["replicaDivisionPreference"]
    return divided


def spread_constraints(dice):
    drawn = []
    if dice.often(8):
        drawn.append({"spreadByField": "cluster", **limits(dice)})
    fields = dice.some(("region", "region", "zone", "provider"), 0, 2)
    drawn += [{"spreadByField": field, **limits(dice)} for field in fields]
    if dice.rarely(6):
        drawn.append({"spreadByLabel": dice.pick(sorted(CLUSTER_LABELS)), **limits(dice)})
    return drawn


def limits(dice):
    least = dice.pick((1, 1, 2, 2, 3))
    drawn = {"minGroups": least, "maxGroups": least + dice.number(0, 2)}
    if dice.rarely(15):
        drawn["minGroups"] = 0
    if dice.rarely(15):
        del drawn["maxGroups"]
    return drawn


def toleration(dice):
    drawn = {"operator": "Exists"} if dice.rarely(2) else {"value": "yes"}
    if dice.often(4) or "operator" not in drawn:
        drawn["key"] = dice.pick(("gpu", "maintenance"))
    if dice.rarely(3):
        drawn["effect"] = dice.pick(("NoSchedule", "NoExecute"))
    return drawn


# Bindings


def pending(dice, name, names, calm=False):
    api_version, kind = dice.pick((("apps/v1", "Deployment"),) * 6 + (("v1", "ConfigMap"), ("x/v1", "Flink")))
    namespace = dice.pick(NAMESPACES)
    spec = {"resource": reference(api_version, kind, namespace, name, uid=f"uid-{dice.number(0, 3)}"), "placement": {}}
    if kind == "Deployment":
        spec["replicas"] = dice.pick((3, 0, 1, 2, 5, 8, 13, 20, 40))
        if dice.often(4):
            spec["replicaRequirements"] = {"resourceRequest": request(dice)} if dice.often(8) else {}
    if kind == "Flink":
        spec["components"] = [component(dice, f"c{i}") for i in range(dice.number(1, 2))]
    if dice.rarely(2):
        spec["clusters"] = [
            {"name": each, "replicas": dice.number(0, 6)} if kind == "Deployment" else {"name": each}
            for each in dice.some([*names, "m9"], 1, 4)
        ]
    if dice.rarely(6):
        spec["gracefulEvictionTasks"] = [eviction(dice, each) for each in dice.some(names, 1)]
    spec.update(groups(dice))
    status = {}
    if dice.rarely(6):
        spec["rescheduleTriggeredAt"] = "2026-01-02T00:00:00Z"
        status["lastScheduledTime"] = dice.pick(("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
    metadata = {"name": f"{name}-{kind.lower()}", "namespace": namespace, "uid": f"b-{name}", "resourceVersion": "1"}
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def placed(dice, name, names):
    """Another binding; sometimes it is not scheduled yet, or on a cluster that does not exist."""
    binding = pending(dice, name, names)
    places = [*names, "m9"] if dice.rarely(4) else names
    binding["spec"]["clusters"] = [
        {"name": each, "replicas": dice.number(0, 3)} for each in dice.some(places, 0 if dice.rarely(6) else 1, 3)
    ]
    return binding


def reference(api_version, kind, namespace, name, uid):
    return {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid}


def request(dice):
    asked = {"cpu": dice.pick(("500m", "1", "250m", "0"))}
    if dice.often(3):
        asked["memory"] = dice.pick(("512Mi", "1Gi", "1G"))
    if dice.rarely(8):
        asked["example.com/gpu"] = "1"
    if dice.rarely(15):
        asked["gpu"] = "1"
    return asked


def component(dice, name):
    drawn = {"name": name, "replicas": dice.number(1, 3)}
    if dice.often(3):
        drawn["replicaRequirements"] = {"resourceRequest": request(dice)}
    return drawn


def eviction(dice, name):
    task = {"fromCluster": name, "reason": "TaintUntolerated", "producer": "TaintManager"}
    if dice.rarely(3):
        task["purgeMode"] = dice.pick(("Directly", "Gracefully"))
    return task


def groups(dice):
    drawn = {}
    if dice.rarely(4):
        drawn["affinityGroup"] = f"app={dice.pick(('web', 'db'))}"
    if dice.rarely(4):
        drawn["antiAffinityGroup"] = f"ha.group={dice.pick(('x', 'y'))}"
    return {"workloadAffinityGroups": drawn} if drawn else {}


# What only Bayplan knows


def namespaces(dice):
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": name[-1]}}}
        for name in ("default", "team-a")
        if dice.often(4)
    ]


def rules_of_ours(dice, binding, resources, switchable):
    """Labels by template or by annotation, and the design document's lists typed or in either annotation."""
    annotations, resource = {}, binding["spec"]["resource"]
    found = labels(dice, WORKLOAD_LABELS, 4)
    template = {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "metadata": {"name": resource["name"], "namespace": resource["namespace"], "labels": found, "annotations": {}},
    }
    if dice.often(2):
        resources.append(template)
    else:
        annotations["bayplan.io/workload-labels"] = json.dumps(found)
    if dice.often(2):
        lists = workload_lists(dice, switchable)
        where = dice.pick(("typed", "binding", "template"))
        if where == "typed":
            binding["spec"]["placement"].update(lists)
        elif where == "binding":
            annotations["bayplan.io/placement"] = json.dumps(lists)
        else:
            template["metadata"]["annotations"]["bayplan.io/placement"] = json.dumps(lists)
    if annotations:
        binding["metadata"]["annotations"] = annotations


def workload_lists(dice, switchable):
    drawn = {}
    for sign in dice.some(("workloadAffinity", "workloadAntiAffinity"), 1):
        side = {}
        if dice.often(2):
            side[REQUIRED] = [workload_term(dice, switchable) for _ in range(dice.number(1, 2))]
        if dice.rarely(2):
            side[PREFERRED] = [
                {"weight": dice.pick((1, 10, 100)), "workloadAffinityTerm": workload_term(dice, switchable)}
                for _ in range(dice.number(1, 2))
            ]
        drawn[sign] = side
    return drawn


def workload_term(dice, switchable):
    """The switch form mostly where there are keys to switch on."""
    term = {}
    if dice.rarely(3 if switchable else 30):
        term["affinityEnabled"] = dice.often(4)
    elif dice.often(12):
        few = {"matchLabels": match_labels(dice, WORKLOAD_LABELS)}
        term["labelSelector"] = label_selector(dice, WORKLOAD_LABELS) if dice.rarely(2) else few
    if dice.rarely(3) and "affinityEnabled" not in term:  # the two options exclude each other
        term["matchLabelKeys"] = dice.some(sorted(WORKLOAD_LABELS), 1)
    if dice.rarely(2):
        term["topologyKey"] = dice.pick(TOPOLOGY_KEYS)
    if dice.rarely(5):
        term["namespaces"] = dice.some(("default", "team-a"))
    if dice.rarely(6):
        term["namespaceSelector"] = label_selector(dice, {"team": ("t", "a")})
    return term


def options(dice, presets):
    drawn = {"semantics": dice.pick(presets)}
    if dice.rarely(3):
        drawn["switches"] = {switch: dice.rarely(2) for switch in dice.some(SWITCHES, 1, 3)}
    if dice.rarely(3):
        for option in ("affinityLabelKeys", "antiAffinityLabelKeys"):
            drawn[option] = dice.some(sorted(WORKLOAD_LABELS), 2, 3)
    return drawn
