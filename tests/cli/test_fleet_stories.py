"""
The examples and stories of the three design documents of Karmada, from what `kubectl get` prints: clusters, policies and
bindings, without a template.
"""

import json

import pytest
import yaml

DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}}
ONE_CLUSTER = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}


def cluster(name, cpu="100", used="0"):
    kinds = [
        ("apps/v1", "Deployment"),
        ("flink.apache.org/v1beta1", "FlinkDeployment"),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("ray.io/v1", "RayService"),
        ("redis.redis.opstreelabs.in/v1beta2", "RedisCluster"),
    ]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "uid": name},
        "spec": {"syncMode": "Push"},
        "status": {
            "apiEnablements": [{"groupVersion": version, "resources": [{"kind": kind}]} for version, kind in kinds],
            "resourceSummary": {"allocatable": {"cpu": cpu, "pods": "110"}, "allocated": {"cpu": used}},
        },
    }


def policy(text):
    """A policy as the document writes it, with its namespace."""
    found = yaml.safe_load(text)
    found["metadata"].setdefault("namespace", "default")
    found["metadata"]["uid"] = "p"
    return found


def binding(
    name, of, clusters=(), *, kind="Deployment", version="apps/v1", replicas=3, observed="", labels=None, more=()
):
    """As Karmada keeps it: the policy's placement, and neither labels nor annotations of the template."""
    placement = {**of["spec"]["placement"], **dict(more)}
    annotations = {
        "propagationpolicy.karmada.io/namespace": "default",
        "propagationpolicy.karmada.io/name": of["metadata"]["name"],
    }
    if clusters:
        annotations["policy.karmada.io/applied-placement"] = json.dumps(placement)
    if labels is not None:
        annotations["bayplan.io/workload-labels"] = json.dumps(labels)
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": f"{name}-{kind}".lower(),
            "namespace": "default",
            "uid": name,
            "resourceVersion": "1",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "p"},
            "annotations": annotations,
        },
        "spec": {
            "resource": {"apiVersion": version, "kind": kind, "namespace": "default", "name": name},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}} if replicas else None,
            "clusters": [{"name": one, "replicas": count} for one, count in dict(clusters).items()],
            "placement": placement,
        },
        "status": {"schedulerObservingAffinityName": observed},
    }


@pytest.fixture
def placed(run, tmp_path):
    """What `place` says of a state: the clusters of each row, or its message; and the exit code."""

    def place(objects, *words):
        (tmp_path / "state.yaml").write_text(yaml.safe_dump_all(objects))
        result = run("place", "--state", str(tmp_path / "state.yaml"), *words, "-o", "json")
        items = json.loads(result.stdout)["items"] if result.stdout else []
        rows = [
            {one["name"]: one["replicas"] for one in item["clusters"]} if item["placed"] else item["message"]
            for item in items
        ]
        return rows, result.exit_code

    return place


# Inherited cluster affinities: the five examples, each as a field and as the annotation that a real API server keeps.

HEAD = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  placement:
"""
FORMS = {
    "supplements of clusterAffinity": """
    clusterAffinity:
      clusterNames:
        - cluster1
      supplements:
        - clusterNames:
          - cluster2
          - cluster3
""",
    "supplements of a term": """
    clusterAffinities:
      - affinityName: "cost-sensitive"
        clusterNames:
          - cluster1
        supplements:
          - clusterNames:
            - cluster2
            - cluster3
""",
    "affinityStrategy": """
    clusterAffinities:
      - affinityName: primary
        clusterNames:
          - cluster1
      - affinityName: backup
        clusterNames:
          - cluster2
          - cluster3
    affinityStrategy:
      mode: Inherited
""",
    "preferredClusterAffinities": """
    preferredClusterAffinities:
      - affinityName: primary
        clusterNames:
          - cluster1
      - affinityName: backup
        clusterNames:
          - cluster2
          - cluster3
""",
    "overflowAffinities": """
    clusterAffinities:
      - affinityName: primary
        clusterNames:
          - cluster1
        overflowAffinities:
          - affinityName: backup
            clusterNames:
              - cluster2
              - cluster3
""",
}
THREE = [cluster("cluster1", "10", "3"), cluster("cluster2", "10"), cluster("cluster3", "10")]
OWN = ("affinityStrategy", "preferredClusterAffinities")


def nginx(form, where):
    found = policy(HEAD + FORMS[form])
    placement = found["spec"]["placement"]
    placement.update(DIVIDED)
    if where == "annotation" and form != "overflowAffinities":
        own = {name: placement.pop(name) for name in OWN if name in placement}
        for holder in (placement.get("clusterAffinity"), *placement.get("clusterAffinities", ())):
            if holder and "supplements" in holder:
                own["supplements"] = holder.pop("supplements")
        found["metadata"]["annotations"] = {"bayplan.io/placement": json.dumps(own)}
    return found


def group_of(found):
    terms = found["spec"]["placement"].get("clusterAffinities") or found["spec"]["placement"].get(
        "preferredClusterAffinities"
    )
    text = found["metadata"].get("annotations", {}).get("bayplan.io/placement")
    terms = terms or (json.loads(text).get("preferredClusterAffinities") if text else None)
    return terms[0]["affinityName"] if terms else ""


@pytest.mark.parametrize("where", ["field", "annotation"])
@pytest.mark.parametrize("form", FORMS)
def test_replicas_go_to_the_cloud_last_and_leave_it_first(form, where, placed):
    found = nginx(form, where)
    state = [*THREE, found, binding("nginx", found, {"cluster1": 3}, observed=group_of(found))]
    rows, code = placed(state, "--scale", "3,12,25,12,3,31")
    assert rows[:2] in (
        [{"cluster1": 3}, {"cluster1": 10, "cluster2": 2}],
        [{"cluster1": 3}, {"cluster1": 10, "cluster3": 2}],
    )
    assert [sum(row.values()) for row in rows[:5]] == [3, 12, 25, 12, 3]
    assert rows[2]["cluster1"] == rows[3]["cluster1"] == 10
    assert rows[4] == {"cluster1": 3}
    assert "not enough" in rows[5]
    assert code == 1


@pytest.mark.parametrize("where", ["field", "annotation"])
@pytest.mark.parametrize("form", FORMS)
def test_a_lost_cluster_is_replaced_and_nothing_returns_by_itself(form, where, placed):
    found = nginx(form, where)
    first = group_of(found)
    (row,), code = placed(
        [*THREE, found, binding("nginx", found, {"cluster1": 3}, observed=first)], "--lose", "cluster/cluster1"
    )
    assert (set(row) <= {"cluster2", "cluster3"}, sum(row.values()), code) == (True, 3, 0)
    assert placed([*THREE, found, binding("nginx", found, row, observed=first)]) == ([], 0)


# Multiple scheduling groups


GROUPS = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  placement:
    clusterAffinities:
      - affinityName: dc-shanghai
        clusterNames:
          - unavailable
      - affinityName: dc-beijing
        clusterNames:
          - member1
      - affinityName: dc-hongkong
        clusterNames:
          - member2
"""
ONE_GROUP = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: foo
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: foo
  placement:
    clusterAffinity:
      clusterNames:
        - member1
        - member2
"""
TWO = [cluster("member1"), cluster("member2")]


def test_one_group_of_candidates(placed):
    foo = policy(ONE_GROUP)
    assert placed([*TWO, foo, binding("foo", foo)]) == ([{"member1": 3, "member2": 3}], 0)


def test_groups_are_tried_in_order_and_resumed(placed):
    found = policy(GROUPS)
    assert placed([*TWO, found, binding("nginx", found)]) == ([{"member1": 3}], 0)
    beijing = binding("nginx", found, {"member1": 3}, observed="dc-beijing")
    assert placed([*TWO, found, beijing], "--lose", "cluster/member1") == ([{"member2": 3}], 0)
    hongkong = binding("nginx", found, {"member2": 3}, observed="dc-hongkong")
    assert placed([*TWO, found, hongkong]) == ([{"member2": 3}], 0)  # member1 is back, and nothing returns


def test_private_clusters_come_before_those_of_a_provider_also_for_capacity(placed):
    found = policy(GROUPS)
    found["spec"]["placement"].update(DIVIDED)
    small = [cluster("member1", "4"), cluster("member2", "20")]
    rows, code = placed(
        [*small, found, binding("nginx", found, {"member1": 3}, observed="dc-beijing")], "--scale", "3,8,3"
    )
    assert (rows, code) == ([{"member1": 3}, {"member2": 8}, {"member2": 3}], 0)


# Workload affinity


HA = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: ha-flink-deployment
spec:
  resourceSelectors:
  - apiVersion: flink.apache.org/v1beta1
    kind: FlinkDeployment
  placement:
    workloadAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - labelSelector:
            matchLabels:
              app.tier: "prod"
          matchLabelKeys:
            - karmada.io/group
"""
TOGETHER = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: training
spec:
  resourceSelectors:
  - apiVersion: batch.volcano.sh/v1alpha1
    kind: Job
  placement:
    workloadAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - labelSelector:
            matchLabels:
              training: llm
"""
PROD = {"app.tier": "prod", "karmada.io/group": "indexer-job"}
FLINK = {"kind": "FlinkDeployment", "version": "flink.apache.org/v1beta1"}
JOB = {"kind": "Job", "version": "batch.volcano.sh/v1alpha1"}
UNKNOWN = "labels of {} are not known"


def pair(text, labels, **kind):
    """The first copy runs on member1, the second one waits."""
    found = policy(text)
    found["spec"]["placement"].update(ONE_CLUSTER)
    first = binding("first", found, {"member1": 3}, labels=labels, **kind)
    return [*TWO, found, first, binding("second", found, labels=labels, **kind)]


@pytest.mark.parametrize("text, kind, labels, expected", [
    (HA, FLINK, PROD, {"member2": 3}),
    (HA, FLINK, {**PROD, "app.tier": "test"}, {"member1": 3}),
    (HA, FLINK, None, None),
    (TOGETHER, JOB, {"training": "llm"}, {"member1": 3}),
    (TOGETHER, JOB, None, None),
])  # fmt: skip
def test_copies_apart_and_shards_together_or_honestly_not_known(text, kind, labels, expected, placed):
    rows, code = placed(pair(text, labels, **kind))
    if expected is None:
        assert rows[-1].startswith("labels of ")
        assert rows[-1].endswith(" are not known")
        assert code == 1
    else:
        assert (rows[-1], code) == (expected, 0)


def test_karmadas_own_groups_are_in_the_bindings(placed):
    found = policy(HA)
    found["spec"]["placement"] = {
        "workloadAffinity": {"antiAffinity": {"groupByLabelKey": "karmada.io/group"}},
        **ONE_CLUSTER,
    }
    state = [*TWO, found, binding("first", found, {"member1": 3}, **FLINK), binding("second", found, **FLINK)]
    for one in state[-2:]:
        one["spec"]["workloadAffinityGroups"] = {"antiAffinityGroup": "karmada.io/group=indexer-job"}
    assert placed(state)[0][-1] == {"member2": 3}


# Two applications that are together: a pipeline with the consumers of its topic, and a service with its cache.
NEAR = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: co-located
spec:
  resourceSelectors:
  - apiVersion: %s
    kind: %s
  - apiVersion: %s
    kind: %s
  placement:
    workloadAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - labelSelector:
            matchLabels:
              stack: %s
"""
CONSUMERS = {"kind": "Deployment", "version": "apps/v1"}
SERVICE = {"kind": "RayService", "version": "ray.io/v1"}
CACHE = {"kind": "RedisCluster", "version": "redis.redis.opstreelabs.in/v1beta2", "replicas": 0}


@pytest.mark.parametrize("running, newcomer, stack", [(CONSUMERS, FLINK, "kafka"), (CACHE, SERVICE, "redis")])
def test_applications_that_need_each_other_share_a_cluster(running, newcomer, stack, placed):
    found = policy(NEAR % (running["version"], running["kind"], newcomer["version"], newcomer["kind"], stack))
    found["spec"]["placement"].update(ONE_CLUSTER)
    large = cluster("large", "900")  # where the newcomer would go by itself

    def rows(first, second, *words):
        old = binding("first", found, {"member2": running.get("replicas", 3)}, labels=first, **running)
        return placed([*TWO, large, found, old, binding("second", found, labels=second, **newcomer)], *words)

    own = {"stack": stack}
    assert rows(own, own)[0][-1] == {"member2": 3}
    assert rows({"stack": "other"}, own)[0][-1] == {"large": 3}  # the first of its stack
    refused, code = rows(None, own)
    assert refused[-1] == UNKNOWN.format(f"{running['kind']} default/first")
    assert code == 1
    # Both leave a lost cluster, and are together again.
    together, code = rows(own, own, "--lose", "cluster/member2")
    (where,) = together[-1]
    assert [set(row) for row in together] == [{where}, {where}]
    assert (where != "member2", code) == (True, 0)


# The alternative that the document on scheduling groups rejects

PROPAGATE_PRIORITY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
 name: foo
spec:
 resourceSelectors:
   - apiVersion: apps/v1
     kind: Deployment
     name: foo
 placement:
   clusterAffinity:
     clusterNames:
       - member1
       - member2
     propagatePriority:
       - weight: 30
         preference:
           matchExpressions:
             - key: topology
               operator: In
               values:
                 - us
       - weight: 20
         preference:
           matchExpressions:
             - key: topology
               operator: In
               values:
                 - cn
"""


def test_priorities_of_clusters_are_no_field(placed, run, tmp_path):
    """Both clusters are candidates, as an API server drops the field; who is about to apply it is told."""
    found = policy(PROPAGATE_PRIORITY)
    assert placed([*TWO, found, binding("foo", found)]) == ([{"member1": 3, "member2": 3}], 0)
    written = yaml.safe_load(PROPAGATE_PRIORITY)
    (tmp_path / "foo.yaml").write_text(yaml.safe_dump(written))
    for command in (("validate",), ("place", "--state", str(tmp_path / "state.yaml"))):
        result = run(*command, "-f", str(tmp_path / "foo.yaml"))
        assert "spec.placement.clusterAffinity.propagatePriority" in result.output
        assert "unknown field" in result.output
        assert result.exit_code != 0
