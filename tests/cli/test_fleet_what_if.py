"""What if: clusters that are lost, drained, tainted or recovered, and workloads with other numbers of replicas."""

import json

import pytest

CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: %s, labels: {pool: %s}}
spec: {syncMode: Push, region: %s, provider: %s, zones: [%s]}
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}]
  resourceSummary: {allocatable: {cpu: "10", pods: "100"}, allocated: {cpu: "%d", pods: "%d"}}
---
"""
CLUSTERS = (
    CLUSTER % ("idc-1", "idc", "north", "own", "a", 4, 4)
    + CLUSTER % ("idc-2", "idc", "north", "own", "b", 2, 2)
    + CLUSTER % ("cloud-1", "cloud", "south", "rent", "a, c", 0, 0)
)
DIVIDED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    %s
    %s
---
"""
GROUPS = """clusterAffinities:
    - {affinityName: own, labelSelector: {matchLabels: {pool: idc}}}
    - {affinityName: rent, clusterNames: [cloud-1]}"""
BINDING = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: shop-deployment
  namespace: web
  uid: u
  resourceVersion: "1"
  labels: {propagationpolicy.karmada.io/permanent-id: p}
  annotations:
    propagationpolicy.karmada.io/namespace: web
    propagationpolicy.karmada.io/name: p
    policy.karmada.io/applied-placement: '%s'
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: web, name: shop}
  replicas: %d
  replicaRequirements: {resourceRequest: {cpu: "1"}}
  clusters: %s
  placement: %s
  %s
status: {schedulerObservingAffinityName: own}
"""
APPLIED = json.dumps({
    "clusterAffinities": [
        {"affinityName": "own", "labelSelector": {"matchLabels": {"pool": "idc"}}},
        {"affinityName": "rent", "clusterNames": ["cloud-1"]},
    ],
    "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
})  # fmt: skip
SPREAD = [{"name": "idc-1", "replicas": 4}, {"name": "idc-2", "replicas": 2}]
SUPPOSED = "evictions are supposed"


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """A folder to run in: six replicas in the data centre, two groups of clusters."""
    monkeypatch.chdir(tmp_path)

    def write(policy=POLICY % (GROUPS, DIVIDED), clusters=SPREAD, replicas=6, applied=APPLIED, **spec):
        more = "".join(f"{key}: {json.dumps(value)}\n  " for key, value in spec.items())
        binding = BINDING % (applied, replicas, json.dumps(clusters), applied, more)
        (tmp_path / "state.yaml").write_text(CLUSTERS + policy + binding)

    write()
    return write


@pytest.fixture
def after(run):
    """Run `place` on the state; the clusters of the workload with their replicas, and the result."""

    def place(*options):
        result = run("place", "--state", "state.yaml", "-o", "json", *options)
        if not result.stdout:
            return None, result
        items = json.loads(result.stdout)["items"]
        found = {one["name"]: one["replicas"] for one in items[0]["clusters"]} if items else None
        return found, result

    return place


@pytest.mark.parametrize(
    "options, clusters",
    [
        ((), None),
        (("--lose", "cluster/idc-1"), {"idc-2": 6}),
        (("--lose", "idc-1"), {"idc-2": 6}),
        (("--lose", "cluster/idc-1", "--lose", "cluster/idc-2"), {"cloud-1": 6}),
        (("--lose", "region=north"), {"cloud-1": 6}),
        (("--lose", "provider=own"), {"cloud-1": 6}),
        (("--lose", "pool=idc"), {"cloud-1": 6}),
        (("--lose", "zone=a"), {"idc-2": 6}),  # cloud-1 has another zone
        (("--drain", "cluster/idc-2"), {"idc-1": 6}),
        (("--taint", "cluster/idc-2:sick=yes:NoExecute"), {"idc-1": 6}),
        (("--taint", "cluster/idc-2:sick:NoSchedule"), None),  # nothing is evicted for it
        (("--recover", "cluster/idc-1"), None),  # recovery moves nothing by itself
    ],
)
def test_where_replicas_go(fleet, after, options, clusters):
    found, result = after(*options)
    assert found == clusters
    assert result.exit_code == 0
    assert (SUPPOSED in result.stderr) == any(option == "--lose" or "NoExecute" in option for option in options)


def test_a_lost_group_that_nothing_replaces_is_a_no(fleet, after):
    found, result = after("--lose", "pool=idc", "--lose", "pool=cloud")
    assert found == {}
    assert result.exit_code == 1


def test_duplicated_workloads_leave_the_lost_cluster(fleet, after):
    fleet(POLICY % ("clusterAffinity: {clusterNames: [idc-1, idc-2, cloud-1]}", ""),
          [{"name": "idc-1", "replicas": 6}, {"name": "idc-2", "replicas": 6}],
          applied='{"clusterAffinity": {"clusterNames": ["idc-1", "idc-2"]}}')  # fmt: skip
    found, _ = after("--lose", "cluster/idc-1")
    assert found == {"idc-2": 6, "cloud-1": 6}


TOLERATION = {"key": "cluster.karmada.io/unreachable", "operator": "Exists"}


@pytest.mark.parametrize(
    "toleration, clusters", [(TOLERATION, None), ({**TOLERATION, "tolerationSeconds": 30}, {"idc-2": 6})]
)
def test_tolerations_are_respected(fleet, after, toleration, clusters):
    placement = {**json.loads(APPLIED), "clusterTolerations": [toleration]}
    policy = POLICY % (GROUPS, f"{DIVIDED}\n    clusterTolerations: {json.dumps([toleration])}")
    fleet(policy, applied=json.dumps(placement))
    found, result = after("--lose", "cluster/idc-1")
    assert found == clusters
    assert ("1 binding tolerates the taint of idc-1 and would stay there" in result.stderr) == (clusters is None)


def test_a_cluster_that_the_input_lacks_counts_as_lost(fleet, after):
    fleet(clusters=[{"name": "gone", "replicas": 4}, {"name": "idc-2", "replicas": 2}])
    found, result = after()
    assert sum(found.values()) == 6
    assert "gone" not in found
    assert "not in the input and count as lost: gone" in result.stderr


def test_an_untolerated_taint_on_a_running_cluster_is_shown(fleet, after, tmp_path):
    state = (tmp_path / "state.yaml").read_text()
    (tmp_path / "state.yaml").write_text(state.replace(
        "provider: own, zones: [a]", "provider: own, zones: [a], taints: [{key: sick, effect: NoExecute}]"))  # fmt: skip
    found, result = after()
    assert found is None
    assert "idc-1 has the taint sick:NoExecute, which is not tolerated by 1 binding there" in result.stderr


def test_an_evicted_binding_that_nothing_schedules_again_is_a_no(fleet, after, tmp_path):
    fleet(suspension={"scheduling": True})
    found, result = after("--lose", "cluster/idc-1")
    (item,) = json.loads(result.stdout)["items"]
    assert (found, item["previous"], item["reason"]) == ({"idc-2": 2}, SPREAD, "Evicted")
    assert item["message"] == "evicted, and not scheduled again, because it is suspended"
    assert result.exit_code == 1
    state = (tmp_path / "state.yaml").read_text()
    unclaimed = state.replace("labels: {propagationpolicy.karmada.io/permanent-id: p}", "labels: {}")
    (tmp_path / "state.yaml").write_text(unclaimed.replace("suspension: ", "preserveResourcesOnDeletion: "))
    _, result = after("--drain", "cluster/idc-1")
    assert "not scheduled again, because it belongs to no policy" in result.stdout
    assert after("--drain", "cluster/idc-1", "-n", "other")[1].exit_code == 0
    assert after()[1].exit_code == 0


def test_an_evicted_binding_of_another_scheduler_is_not_judged(fleet, after, tmp_path):
    fleet(POLICY % (GROUPS, f"{DIVIDED}\n  schedulerName: other"), schedulerName="other")
    found, result = after("--lose", "cluster/idc-1")
    assert (found, result.exit_code) == (None, 0)
    expected = "not judged, because they are evicted and another scheduler places them again: web/shop-deployment"
    assert expected in result.stderr
    assert after("--lose", "cluster/idc-1", "--strict")[1].exit_code == 1


TIERED = 'bayplan.io/placement: "{supplements: [{clusterNames: [cloud-1]}]}"'


@pytest.mark.parametrize(
    "options, clusters",
    [
        ((), None),
        (("--lose", "cluster/idc-1"), {"idc-2": 6}),
        (("--lose", "pool=idc"), {"cloud-1": 6}),
        (("--recover", "cluster/cloud-1"), None),
    ],
)
def test_duplicated_workloads_with_tiers_show_what_they_lose(fleet, after, options, clusters):
    policy = POLICY % ("clusterAffinity: {clusterNames: [idc-1, idc-2]}", "")
    fleet(policy.replace("namespace: web}", f"namespace: web, annotations: {{{TIERED}}}}}"),
          [{"name": "idc-1", "replicas": 6}, {"name": "idc-2", "replicas": 6}],
          applied='{"clusterAffinity": {"clusterNames": ["idc-1", "idc-2"]}}')  # fmt: skip
    found, result = after(*options)
    assert (found, result.exit_code) == (clusters, 0)


def test_a_workload_without_replicas_leaves_a_lost_cluster(fleet, after, run):
    fleet(clusters=[{"name": "idc-1", "replicas": 0}], replicas=0)
    found, result = after("--lose", "cluster/idc-1")
    assert (found, result.exit_code) == ({}, 0)
    result = run("explain", "deployment/shop", "--state", "state.yaml", "--lose", "cluster/idc-1")
    assert result.stdout.startswith("web/shop-deployment is placed on no cluster, as it has 0 replicas (group own).\n")
    assert result.exit_code == 0


def test_what_waits_without_being_scheduled_is_explained(fleet, run):
    fleet(clusters=[], suspension={"scheduling": True})
    result = run("explain", "deployment/shop", "--state", "state.yaml")
    note = "web/shop-deployment is not scheduled, because it is suspended; explained is what would be otherwise"
    assert note in result.stderr
    assert result.stdout.startswith("web/shop-deployment is placed on idc-2:6 (group own).\n")


def test_a_replacement_is_explained(fleet, run):
    result = run("explain", "deployment/shop", "--state", "state.yaml", "--lose", "cluster/idc-1")
    assert "is placed on idc-2:6 (group own)" in result.stdout
    assert "idc-1" in result.stdout


@pytest.mark.parametrize(
    "options, message",
    [
        (("--lose", "cluster/idc-3"), "Error: --lose cluster/idc-3: there is no such cluster, did you mean idc-"),
        (("--lose", "node/n1"), "Error: --lose node/n1: expected cluster/NAME or KEY=VALUE in a fleet"),
        (("--lose", "region="), "Error: --lose region=: expected cluster/NAME or KEY=VALUE in a fleet"),
        (("--lose", "=north"), "Error: --lose =north: expected cluster/NAME or KEY=VALUE in a fleet"),
        (("--lose", "region=nort"), "Error: --lose region=nort: no cluster has region=nort, did you mean north?"),
        (
            ("--lose", "region=north", "--recover", "cluster/idc-2"),
            "Error: lose and recover contradict each other: both name cluster idc-2",
        ),
        (
            ("--taint", "idc-1:x:NoExecute", "--recover", "idc-1"),
            "Error: taint and recover contradict each other: both name cluster idc-1",
        ),
    ],
)
def test_bad_what_ifs(fleet, after, options, message):
    found, result = after(*options)
    assert (found, result.exit_code) == (None, 2)
    assert result.stderr.splitlines()[-1].startswith(message)


@pytest.mark.parametrize("text", ["idc-1", "idc-1:x", ":x:NoExecute", "idc-1:x:Never", "idc-1::NoExecute"])
def test_bad_taints(fleet, after, text):
    _, result = after("--taint", text)
    assert result.exit_code == 2
    assert "expected cluster/NAME:KEY[=VALUE]:EFFECT" in result.stderr


def test_clusters_are_lost_in_fleets_only(run, tmp_path):
    (tmp_path / "node.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    for words in (("--recover", "cluster/a"), ("--scale", "3"), ("-o", "bindings")):
        result = run("place", "-f", str(tmp_path), *words)
        assert result.exit_code == 2
        assert "the input has no Cluster objects" in result.stderr


# Other numbers of replicas


def rows(run, *options):
    result = run("place", "--state", "state.yaml", *options, "-o", "json")
    items = json.loads(result.stdout)["items"]
    return [(one["replicas"], {c["name"]: c["replicas"] for c in one["clusters"]}) for one in items], result


def test_a_workload_over_time(fleet, run):
    found, result = rows(run, "--scale", "6,14,2,14")
    assert found[0] == (6, {"idc-1": 4, "idc-2": 2})
    assert [sum(clusters.values()) for _, clusters in found] == [6, 14, 2, 14]
    # What the workload has released is free again: 20 CPUs in the data centre.
    assert set(found[3][1]) == {"idc-1", "idc-2"}
    assert result.exit_code == 0


def test_steps_that_do_not_fit_keep_the_last_result(fleet, run):
    found, result = rows(run, "--scale", "4,99,5")
    assert found[0][1] == found[1][1]
    assert sum(found[2][1].values()) == 5
    assert result.exit_code == 1


@pytest.mark.parametrize("asked, answer, code", [("max", 20, 0), ("20", 20, 0), ("21", 21, 1)])
def test_how_many_fit(fleet, run, asked, answer, code):
    (found,), result = rows(run, "--replicas", asked)
    assert found[0] == answer
    assert result.exit_code == code
    if asked == "max":
        assert sum(found[1].values()) == answer


def test_capacity_does_not_limit_static_weights(fleet, run):
    fleet(POLICY % ("clusterAffinity: {clusterNames: [idc-1, idc-2]}", "replicaScheduling: {}"))
    result = run("place", "--state", "state.yaml", "--replicas", "max")
    assert "no cluster limits the replicas" in result.stdout


@pytest.mark.parametrize(
    "options, message",
    [
        (("--scale", "3,x"), "expected whole numbers such as 3,30,3, got '3,x'"),
        (("--scale", "-3"), "expected whole numbers"),
        (("--scale", "3", "--replicas", "3"), "--replicas and --scale both say how many replicas"),
        (("--scale", "3", "--explain"), "--scale only counts"),
        (("--scale", "3", "-o", "html"), "-o html is not available"),
    ],
)
def test_bad_steps(fleet, run, options, message):
    result = run("place", "--state", "state.yaml", *options)
    assert result.exit_code == 2
    assert message in result.stderr


# Explanations and fixes


def fixes(run, *options):
    result = run("explain", "deployment/shop", "--state", "state.yaml", "-o", "json", *options)
    return {fix["change"]: fix["fitsOn"] for fix in json.loads(result.stdout)["fixes"]}, result


def test_fixes_of_a_workload_without_room(fleet, run):
    fleet(replicas=25)
    found, result = fixes(run)
    assert result.exit_code == 1
    assert found["lower the replicas from 25 to 20"] == ["idc-1", "idc-2"]
    assert "make room for 5 more replicas on idc-1" in found
    assert "make room for 5 more replicas on cloud-1" not in found  # its group has no room for the rest


def test_fixes_of_a_workload_whose_clusters_are_lost(fleet, run):
    found, result = fixes(run, "--taint", "idc-1:sick:NoExecute", "--taint", "idc-2:sick:NoExecute",
                          "--taint", "cloud-1:sick:NoSchedule")  # fmt: skip
    assert result.exit_code == 1
    assert found["tolerate sick:NoSchedule in placement.clusterTolerations"] == ["cloud-1"]


def test_fixes_of_a_spread_constraint(fleet, run):
    spread = "spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 3}]"
    fleet(POLICY % ("clusterAffinity: {clusterNames: [idc-1, idc-2]}", f"{spread}\n    {DIVIDED}"), [])
    found, _ = fixes(run)
    assert found["lower minGroups of cluster to 2"] == ["idc-2"]  # the one with more room takes all
    assert "add cloud-1 to clusterNames" in found
    assert "raise maxGroups of cluster to 4" not in found  # tried, and no help


def test_groups_before_the_observed_one_are_named(fleet, run, tmp_path):
    state = (tmp_path / "state.yaml").read_text()
    (tmp_path / "state.yaml").write_text(state.replace("AffinityName: own}", "AffinityName: rent}"))
    result = run("explain", "deployment/shop", "--state", "state.yaml")
    assert "  not tried: own; scheduling continues with rent, the group observed last" in result.stdout


# A ClusterTaintPolicy of the input

TAINTING = """\
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: failed}
spec:
  targetClusters: %s
  addOnConditions: [{conditionType: Ready, operator: %s, statusValues: [%s]}]
  taints: [{key: failed, effect: NoExecute}, {key: failed, effect: NoSchedule}]
"""
ONLY_BY_POLICY = "and adds such taints only by a ClusterTaintPolicy"


@pytest.mark.parametrize(
    "targets, operator, statuses, applies",
    [
        ("{clusterNames: [idc-1]}", "In", "'False', Unknown", True),
        ("{fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}", "NotIn", "'True'", True),
        ("{labelSelector: {matchLabels: {pool: idc}}}", "In", "Unknown", True),
        ("{clusterNames: [idc-2]}", "In", "Unknown", False),
        ("{exclude: [idc-1]}", "In", "Unknown", False),
        (
            "{fieldSelector: {matchExpressions: [{key: region, operator: NotIn, values: [north]}]}}",
            "In",
            "Unknown",
            False,
        ),
        ("{}", "In", "'False'", False),  # the lost cluster is not reachable, so its condition is Unknown
    ],
)
def test_a_lost_cluster_has_the_taints_of_the_policies_for_it(
    fleet, after, tmp_path, targets, operator, statuses, applies
):
    """What tolerates the taint that would be supposed does not tolerate the one of the policy."""
    placement = {**json.loads(APPLIED), "clusterTolerations": [TOLERATION]}
    fleet(
        POLICY % (GROUPS, f"{DIVIDED}\n    clusterTolerations: {json.dumps([TOLERATION])}"),
        applied=json.dumps(placement),
    )
    with (tmp_path / "state.yaml").open("a") as file:
        file.write(TAINTING % (targets, operator, statuses))
    found, result = after("--lose", "cluster/idc-1")
    assert found == ({"idc-2": 6} if applies else None)
    assert (ONLY_BY_POLICY in result.stderr) != applies
    assert SUPPOSED in result.stderr
    assert after("--drain", "cluster/idc-1")[0] == {"idc-2": 6}  # a drained cluster is not lost


def test_a_taint_of_ones_own_needs_no_policy(fleet, after):
    _, result = after("--taint", "cluster/idc-2:sick=yes:NoExecute")
    assert SUPPOSED in result.stderr
    assert ONLY_BY_POLICY not in result.stderr
