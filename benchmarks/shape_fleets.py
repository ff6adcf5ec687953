"""
Inputs of `bayplan bench fleet` by shape: how many policies there are, what they select, which groups workloads form.

Workload terms are in annotations, which karmada-scheduler does not read, so with `terms` it decides less than Bayplan.
Does not know how inputs are measured.
"""

import dataclasses
import json

from shape_axes import Shape, axis

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GROUP, TIER, TEAM = "karmada.io/group", "app.tier", "team"
SIZES = {"pair": 2, "ten": 10, "hundred": 100, "each": 1}
DIVISIONS = {
    "aggregated": {"replicaDivisionPreference": "Aggregated"},
    "dynamic": {
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
}


@dataclasses.dataclass(frozen=True)
class FleetShape(Shape):
    policies: str = axis("each", "one", "of-10", "of-1000")  # distinct placements
    new: int = axis(0, 50, 100)  # percent of pending bindings whose group has no scheduled member
    # Clusters
    regions: int = axis(4, 1, 50)
    affinity: str = axis("label", "none", "labels", "names", "exclude", "region")
    tiers: str = axis("none", "overflow", "overflow-3", "alternatives")
    spread: str = axis("none", "one", "some", "region")
    taints: int = axis(0, 1)
    # Replicas
    division: str = axis("duplicated", "aggregated", "dynamic", "static")
    replicas: str = axis("same", "varied")
    requests: str = axis("same", "policy", "each")
    # Groups of workloads, by Karmada's own field and by Bayplan's terms
    groups: str = axis("none", "anti", "affinity", "both")
    group_size: str = axis("pair", "ten", "hundred", "each")
    terms: str = axis("none", "anti", "affinity", "both", "preferred")
    select: str = axis("both", "keys", "selector", "not-selector")
    topology: str = axis("cluster", "zone", "region")
    labels: int = axis(2, 10)
    namespaces: int = axis(1, 10, 1000)

    @property
    def same_rules(self):
        return self.terms == "none"


def generate(shape, n_clusters, n_scheduled, n_pending, n_known=None):
    """{"clusters", "bindings", "pending"} for `bayplan bench fleet`."""
    fleet = Fleet(shape, n_clusters)
    bindings = []
    for i in range(n_scheduled):
        binding = fleet.binding(i, i)
        names = [cluster_name((i * 7 + copy) % n_clusters) for copy in range(1 + i % 2)]
        replicas = binding["spec"]["replicas"]
        binding["spec"]["clusters"] = [{"name": name, "replicas": replicas} for name in dict.fromkeys(names)]
        bindings.append(binding)
    pending = []
    for j in range(n_pending):
        is_new = (j + 1) * shape.new // 100 > j * shape.new // 100
        like = n_scheduled + j if is_new else j * 7919 % max(1, min(n_known or n_scheduled, n_scheduled))
        pending.append(fleet.binding(n_scheduled + j, like))
    return {"clusters": [fleet.cluster(i) for i in range(n_clusters)], "bindings": bindings, "pending": pending}


def cluster_name(i):
    return f"member-{i:04d}"


class Fleet:
    """The clusters and bindings of a shape."""

    def __init__(self, shape, n_clusters):
        self.shape, self.n_clusters = shape, n_clusters

    def cluster(self, i):
        region, cpu = f"region-{i % self.shape.regions}", (640, 1280, 5120)[i % 3]
        spec = {"syncMode": "Push", "region": region, "zones": [f"{region}{'abc'[i // 7 % 3]}"], "provider": "idc"}
        if self.shape.taints:
            spec["taints"] = [{"key": TEAM, "value": f"team-{i % 20}", "effect": "NoSchedule"}] if i % 2 else []
        amounts = {"cpu": cpu, "memory": cpu * 4, "pods": 20_000}
        used = {"cpu": cpu * (i % 7) // 10, "memory": cpu * (i % 5), "pods": i * 13 % 9000}
        summary = {
            kind: {name: f"{n}Gi" if name == "memory" else str(n) for name, n in numbers.items()}
            for kind, numbers in (("allocatable", amounts), ("allocated", used))
        }
        ready = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": ""}
        return {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {
                "name": cluster_name(i),
                "labels": {"env": ("prod", "test")[i % 2], "region": region, "pool": f"pool-{i % 10}"},
            },
            "spec": spec,
            "status": {
                "apiEnablements": [
                    {"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}
                ],
                "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "resourceSummary": summary,
            },
        }

    def binding(self, i, like):
        """The binding with this number, of the policy and the group of `like`."""
        shape, group = self.shape, like // SIZES[self.shape.group_size]
        kind, _, number = shape.policies.partition("-")
        policy = {"one": 0, "each": like}.get(kind, like % int(number or 1))
        varying = {"same": 0, "policy": policy, "each": i}[shape.requests]
        requests = {"cpu": f"{500 + varying % 97}m", "memory": f"{1024 + varying % 89}Mi"}
        namespace = f"team-{group % shape.namespaces}"
        spec = {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": namespace,
                "name": f"app-{i}",
                "uid": f"app-{i}",
            },
            "replicas": 2 if shape.replicas == "same" else (2, 5, 20)[i % 3],
            "replicaRequirements": {"resourceRequest": requests},
            "placement": self._placement(policy),
        }
        groups = {}
        if shape.groups in ("anti", "both"):
            groups["antiAffinityGroup"] = f"{GROUP}={group}"
        if shape.groups in ("affinity", "both"):
            groups["affinityGroup"] = f"{TEAM}={group // 2}"
        if groups:
            spec["workloadAffinityGroups"] = groups
        metadata = {"name": f"app-{i}-deployment", "namespace": namespace, "uid": f"b{i}", "resourceVersion": "1"}
        if shape.terms != "none":
            metadata["annotations"] = self._annotations(i, group)
        return {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": metadata,
            "spec": spec,
            "status": {},
        }

    def _placement(self, policy):
        shape, placement = self.shape, {}
        affinity = self._cluster_affinity(policy)
        further = [{"affinityName": f"more-{n}", **self._cluster_affinity(policy + 1 + n)} for n in range(3)]
        if shape.tiers == "none":
            placement["clusterAffinity"] = affinity
        elif shape.tiers == "alternatives":
            placement["clusterAffinities"] = [{"affinityName": "main", **affinity}, *further[:2]]
        else:
            n_further = 3 if shape.tiers == "overflow-3" else 1
            main = {"affinityName": "main", **affinity, "overflowAffinities": further[:n_further]}
            placement["clusterAffinities"] = [main]
        spread = {
            "one": [("cluster", 1, 1)],
            "some": [("cluster", 2, 5)],
            "region": [("region", 1, 2), ("cluster", 2, 5)],
        }
        if shape.spread != "none":
            placement["spreadConstraints"] = [
                {"spreadByField": field, "minGroups": low, "maxGroups": high}
                for field, low, high in spread[shape.spread]
            ]
        if shape.division == "static":
            weights = [{"targetCluster": affinity or {"labelSelector": {}}, "weight": 1 + policy % 5}]
            preference = {"replicaDivisionPreference": "Weighted", "weightPreference": {"staticWeightList": weights}}
            placement["replicaScheduling"] = {"replicaSchedulingType": "Divided", **preference}
        elif shape.division in DIVISIONS:
            placement["replicaScheduling"] = {"replicaSchedulingType": "Divided", **DIVISIONS[shape.division]}
        if shape.taints:
            team = {"key": TEAM, "operator": "Equal", "value": f"team-{policy % 20}", "effect": "NoSchedule"}
            placement["clusterTolerations"] = [team]
        return placement

    def _cluster_affinity(self, policy):
        """What one policy selects; successive policies select something else."""
        kind, n = self.shape.affinity, self.n_clusters
        region = f"region-{policy % self.shape.regions}"
        if kind == "label":
            return {"labelSelector": {"matchLabels": {"env": ("prod", "test")[policy % 2]}}}
        if kind == "labels":
            pools = {"key": "pool", "operator": "In", "values": [f"pool-{(policy + step) % 10}" for step in range(3)]}
            return {"labelSelector": {"matchExpressions": [{"key": "env", "operator": "Exists"}, pools]}}
        if kind == "names":
            return {"clusterNames": [cluster_name((policy * 3 + step) % n) for step in range(min(n, 20))]}
        if kind == "exclude":
            return {"exclude": [cluster_name((policy * 3 + step) % n) for step in range(min(n // 2, 20))]}
        if kind == "region":
            return {"fieldSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": [region]}]}}
        return {}

    def _annotations(self, i, group):
        shape = self.shape
        labels = {GROUP: f"group-{group}", TIER: ("prod", "test")[group % 2]}
        labels.update({f"label-{n}": f"value-{i if n == 2 else i % n}" for n in range(2, shape.labels)})
        term = {"topologyKey": shape.topology, "labelSelector": {}}
        if shape.select in ("both", "selector"):
            term["labelSelector"] = {"matchLabels": {TIER: labels[TIER]}}
        if shape.select in ("both", "keys"):
            term["matchLabelKeys"] = [GROUP]
        if shape.select in ("selector", "not-selector"):
            operator = "In" if shape.select == "selector" else "NotIn"
            values = [f"group-{group + step}" for step in range(3)]
            term["labelSelector"]["matchExpressions"] = [{"key": GROUP, "operator": operator, "values": values}]
        weighted = {PREFERRED: [{"weight": 1 + group % 100, "workloadAffinityTerm": term}]}
        rules = {
            "anti": {"workloadAntiAffinity": {REQUIRED: [term]}},
            "affinity": {"workloadAffinity": {REQUIRED: [term]}},
            "both": {"workloadAntiAffinity": {REQUIRED: [term]}, "workloadAffinity": weighted},
            "preferred": {"workloadAffinity": weighted, "workloadAntiAffinity": weighted},
        }[shape.terms]
        return {"bayplan.io/workload-labels": json.dumps(labels), "bayplan.io/placement": json.dumps(rules)}
