"""Planned moves and their actual gains, on an example that needs no server."""

import pathlib

import pytest

from bayplan.enforcing.rebalancing import DisruptionLimits
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.live.pod_moves import PodMoves
from bayplan.mapping import pods
from bayplan.reading import cluster
from bayplan.reading.files import ReadOptions
from bayplan.rules import profiles
from bayplan.wire.meta import ObjectMeta, OwnerReference
from bayplan.wire.pods import Pod, PodSpec

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "17-after-a-node-came-back"
ANY = DisruptionLimits(max_moves=5, movable=lambda _workload: True)


@pytest.fixture
def moves():
    return PodMoves(cluster.load(ReadOptions([str(EXAMPLE)])), profiles.pod_rules())


def test_moves_made_as_planned_gain_what_was_planned(moves):
    plan = moves.plan(ANY)
    assert len(plan.moves) == 2
    gains = moves.gains_of([(move.workload, move.after[0][0]) for move in plan.moves])
    assert gains == tuple(sum(move.gain.values()) for move in plan.moves)
    assert moves.plan(ANY) == plan  # the computation changes nothing


def test_a_pod_recreated_on_its_old_node_gains_nothing(moves):
    plan = moves.plan(ANY)
    assert moves.gains_of([(move.workload, move.before[0][0]) for move in plan.moves]) == (0, 0)


def test_a_node_added_after_the_plan_is_handled(moves):
    (api, _) = moves.plan(ANY).moves
    assert moves.gains_of([(api.workload, "a-new-node")]) == (100,)  # one pod less in the crowded domain


def test_pods_without_a_controller_are_named(moves):
    assert moves.orphans(lambda workload: workload.name.startswith("web")) == ["shop/web-1", "shop/web-3"]


@pytest.mark.parametrize(
    "owner, is_recreated",
    [
        (None, False),
        (OwnerReference(kind="ReplicaSet", name="web", uid="1", controller=True), True),
        (OwnerReference(kind="ReplicaSet", name="web", uid="1"), False),  # owned, but not by a controller
        (OwnerReference(kind="Node", name="a", uid="1", controller=True), False),  # a static pod
    ],
)
def test_only_a_controller_recreates_a_pod(owner, is_recreated):
    index = PlacementIndex()
    meta = ObjectMeta(name="web-1", namespace="shop", owner_references=None if owner is None else [owner])
    index.add(pods.workload_of(Pod(metadata=meta, spec=PodSpec(node_name="a"))), "a")
    moves = PodMoves(
        cluster.LoadedCluster(index=index, pending=[], spread_context=pods.EMPTY_SPREAD_CONTEXT), profiles.pod_rules()
    )
    assert moves.is_recreated("shop/web-1") is is_recreated
    assert not moves.is_recreated("shop/unknown")


@pytest.mark.parametrize("granted, label, moved", [
    ((), "", []),
    (("lab",), "", ["shop/web"]),
    ((), "lab", ["shop/web"]),
    ((), "other", []),
])  # fmt: skip
def test_preferred_terms_of_other_namespaces_move_pods_only_with_consent(granted, label, moved, tmp_path):
    """A tenant that cannot move itself prefers not to be near any pod of any namespace."""
    term = "{labelSelector: {}, namespaceSelector: {}, topologyKey: kubernetes.io/hostname}"
    (tmp_path / "cluster.yaml").write_text(f"""
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: Namespace, metadata: {{name: shop, labels: {{bayplan.io/evictable-by: "{label}"}}}}}}
- {{apiVersion: v1, kind: Namespace, metadata: {{name: lab}}}}
- apiVersion: v1
  kind: Node
  metadata: {{name: a, labels: {{kubernetes.io/hostname: a}}}}
  status: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 10}}}}
- apiVersion: v1
  kind: Node
  metadata: {{name: b, labels: {{kubernetes.io/hostname: b}}}}
  status: {{allocatable: {{cpu: 4, memory: 8Gi, pods: 10}}}}
- apiVersion: v1
  kind: Pod
  metadata: {{name: tenant, namespace: lab}}
  spec:
    nodeName: a
    nodeSelector: {{kubernetes.io/hostname: a}}
    containers: [{{name: c, image: i}}]
    affinity:
      podAntiAffinity:
        preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 100, podAffinityTerm: {term}}}]
- apiVersion: v1
  kind: Pod
  metadata: {{name: web, namespace: shop}}
  spec: {{nodeName: a, containers: [{{name: c, image: i}}]}}
""")
    loaded = cluster.load(ReadOptions([str(tmp_path)]))
    plan = PodMoves(loaded, profiles.pod_rules(), frozenset(granted)).plan(ANY)
    assert [move.workload for move in plan.moves] == moved
