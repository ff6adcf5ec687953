"""A rollout that waits for a pod whose volume another node has is stuck; the scheduler does not know that."""

import pytest

from rollout_scenes import controller, deployed, node, roll_out

NODES = [node("a"), node("b", cpu="8")]
CLAIM = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}
SURGE, NONE, BOTH = ({"maxSurge": s, "maxUnavailable": u} for s, u in ((1, 0), (0, 1), (1, 1)))


def storage(mode="ReadWriteOnce", *, csi=True):
    """A bound claim and its volume."""
    source = (
        {"csi": {"driver": "disk.example.com", "volumeHandle": "h"}} if csi else {"nfs": {"server": "s", "path": "/"}}
    )
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "v"}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": spec,
         "metadata": {"name": "d", "namespace": "shop", "uid": "d", "annotations": bound}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "uid": "v"},
         "spec": {"accessModes": [mode], "capacity": {"storage": "1Gi"}, **source}},
    ]  # fmt: skip


def driver(name="disk.example.com", **spec):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": name, "uid": name},
        "spec": spec,
    }


def web(rolling=SURGE, image="web:1", replicas=1, cpu="3", **pod):
    # An old pod takes 3 of the 4 cpu of node a, so that the new one is placed on b.
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling} if rolling else {"type": "Recreate"}
    return controller("Deployment", replicas, image=image, cpu=cpu, pod=CLAIM | pod, strategy=strategy)


def end_of(further, new, where="a"):
    return roll_out([*NODES, *further, *deployed(web(), *where)], new)["web"]


ATTACHED = "its volume of claim shop/d is attached to a for shop/web-old-0, and only one node may use it"


@pytest.mark.parametrize("drivers", [[driver()], [driver(attachRequired=True)], [driver("other.example.com")]])
def test_a_surge_waits_for_ever_for_a_volume_of_one_node(drivers):
    found = end_of([*storage(), *drivers], web(image="web:2"))
    assert (found.result, found.stuck_at, found.pending) == ("stuck", 1, ())
    assert found.why.partition(": ")[2] == ATTACHED


@pytest.mark.parametrize("further, new", [
    ([*storage(), driver()], web(NONE, "web:2")),
    ([*storage(), driver()], web(BOTH, "web:2")),
    ([*storage(), driver()], web(None, "web:2")),
    ([*storage(), driver()], web(SURGE, "web:2", cpu="1", nodeSelector={"kubernetes.io/hostname": "a"})),
    ([*storage("ReadWriteMany"), driver()], web(image="web:2")),
    ([*storage(), driver(attachRequired=False)], web(image="web:2")),
    ([*storage(csi=False), driver()], web(image="web:2")),
], ids=["old pod first", "one may be missing", "Recreate", "same node", "many nodes", "nothing is attached", "no driver"])  # fmt: skip
def test_other_rollouts_complete(further, new):
    assert end_of(further, new).result == "complete"


def test_without_the_drivers_it_is_not_judged():
    found = end_of(storage(), web(image="web:2"))
    assert found.result == "not judged"
    assert "CSIDriver disk.example.com is not in the input" in found.why


def test_a_pod_starts_when_the_other_workload_lets_go():
    """Two Deployments share the volume; the new pod of one starts once the other is scaled down."""
    other = controller("Deployment", 1, name="other", cpu="1", pod=CLAIM)
    gone = controller("Deployment", 0, name="other", cpu="1", pod=CLAIM)
    state = [*NODES, *storage(), driver(), *deployed(web(None), "b"), *deployed(other, "a")]
    assert roll_out(state, web(None, "web:2"))["web"].result == "stuck"
    assert roll_out(state, web(None, "web:2"), gone)["web"].result == "complete"
