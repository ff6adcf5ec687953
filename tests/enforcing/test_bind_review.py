"""Review of a bind against rules over nodes that must hold during execution, in both directions."""

import json

import msgspec
import pytest

from bayplan.enforcing import bind_review
from bayplan.explaining.peer_names import PeerNames
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping import pods, targets
from bayplan.model.semantics import DESIGN, UPSTREAM
from bayplan.wire.nodes import Node
from bayplan.wire.pods import Pod

HOSTNAME = "kubernetes.io/hostname"
RUNNING = "requiredDuringSchedulingRequiredDuringExecution"
SCHEDULING = "requiredDuringSchedulingIgnoredDuringExecution"


def workload(name, app, rule=None, **metadata):
    annotations = {"bayplan.io/affinity": json.dumps(rule)} if rule else {}
    meta = {"name": name, "namespace": "shop", "labels": {"app": app}, "annotations": annotations, **metadata}
    return pods.workload_of(msgspec.convert({"metadata": meta, "spec": {}}, Pod))


def rule(app, sign="podAntiAffinity", key=HOSTNAME, when=RUNNING, **more):
    return {sign: {when: [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}]}}


def index_of(*placed, semantics=UPSTREAM):
    index = PlacementIndex(semantics)
    for name, zone in (("n1", "a"), ("n2", "a")):
        labels = {HOSTNAME: name, "zone": zone}
        index.add_target(targets.target_of_node(msgspec.convert({"metadata": {"name": name, "labels": labels}}, Node)))
    for one, node in placed:
        index.add(one, node)
    return index


def broken(pod, node, *placed, semantics=UPSTREAM):
    found = bind_review.broken_rules(pod, node, index_of(*placed, semantics=semantics))
    return [rule.text(PeerNames()) for rule in found]


PATH = f"metadata.annotations[bayplan.io/affinity].%s.{RUNNING}[0]"
ANTI = PATH % "podAntiAffinity"
OWN = [f"{ANTI} of shop/p rejects app=db on its node, and n1 has shop/db"]
THEIRS = [f"{ANTI} of shop/db rejects app=web on its node, and n1 has shop/p"]
WITHOUT_PEER = [f"{PATH % 'podAffinity'} of shop/p requires app=db on its node, and n1 has none"]


@pytest.mark.parametrize("pod, placed, node, said", [
    (workload("p", "web", rule("db")), workload("db", "db"), "n1", OWN),
    (workload("p", "web", rule("db")), workload("db", "db"), "n2", []),
    (workload("p", "web", rule("db")), workload("db", "cache"), "n1", []),
    (workload("p", "web", rule("db", when=SCHEDULING)), workload("db", "db"), "n1", []),  # checked by the scheduler only
    (workload("p", "web", rule("db", key="zone")), workload("db", "db"), "n1", []),  # a larger domain than a node
    (workload("p", "web", rule("db", limit=1)), workload("db", "db"), "n1", []),
    (workload("p", "web", rule("db")), workload("db", "db", deletionTimestamp="2026-01-01T00:00:00Z"), "n1", []),
    (workload("p", "web"), workload("db", "db", rule("web")), "n1", THEIRS),
    (workload("p", "web"), workload("db", "db", rule("web")), "n2", []),
    (workload("p", "web"), workload("db", "db", rule("web", limit=1)), "n1", []),
    (workload("p", "web"), workload("db", "db", rule("web", when=SCHEDULING)), "n1", []),
    (workload("p", "web", rule("db")), workload("db", "db", rule("web")), "n1", OWN + THEIRS),
    (workload("p", "web", rule("db", "podAffinity")), workload("db", "db"), "n1", []),
    (workload("p", "web", rule("db", "podAffinity")), workload("x", "x"), "n1", WITHOUT_PEER),
    (workload("p", "web", rule("web", "podAffinity")), workload("x", "x"), "n1", []),  # the first of its set
    (workload("p", "web"), workload("db", "db", rule("web", "podAffinity")), "n1", []),  # affinity is not symmetric
    (workload("p", "web", rule("db")), workload("db", "db"), "unknown", []),
])  # fmt: skip
@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN])
def test_one_pod_on_the_first_node(pod, placed, node, said, semantics):
    assert broken(pod, node, (placed, "n1"), semantics=semantics) == said


@pytest.mark.parametrize("labels, conflicting, unmet", [
    ({"n1": {}}, [], True),  # no domain: nothing conflicts, and no affinity is met
    ({"n1": {HOSTNAME: "same"}, "n2": {HOSTNAME: "same"}}, ["shop/p", "shop/db"], False),
])  # fmt: skip
def test_a_node_is_identified_by_its_hostname_label(labels, conflicting, unmet):
    index = PlacementIndex(UPSTREAM)
    for name, given in labels.items():
        index.add_target(targets.target_of_node(msgspec.convert({"metadata": {"name": name, "labels": given}}, Node)))
    index.add(workload("db", "db", rule("web")), [*labels][-1])
    found = bind_review.broken_rules(workload("p", "web", rule("db")), "n1", index)
    assert [one.owner for one in found] == conflicting
    attracted = workload("p", "friend", rule("db", "podAffinity"))
    assert bool(bind_review.broken_rules(attracted, "n1", index)) is unmet


def test_a_second_member_must_share_the_node_of_the_first():
    near = rule("web", "podAffinity")
    assert broken(workload("p", "web", near), "n1", (workload("q", "web", near), "n2"))
    assert not broken(workload("p", "web", near), "n2", (workload("q", "web", near), "n2"))


@pytest.mark.parametrize("semantics", [UPSTREAM, DESIGN])
def test_members_of_a_set_are_found_by_labels_that_no_held_term_selects(semantics):
    first = workload("q", "web")  # a member without the rule: no held term selects its label
    assert broken(workload("p", "web", rule("web", "podAffinity")), "n1", (first, "n2"), semantics=semantics)


@pytest.mark.parametrize(
    "semantics, limit, n_broken", [(UPSTREAM, 0, 1), (DESIGN, 0, 0), (UPSTREAM, 1, 1), (DESIGN, 1, 1)]
)
@pytest.mark.parametrize("leaving", [{}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
def test_a_rule_that_is_violated_already_rejects_no_bind_in_the_design_semantics(semantics, limit, n_broken, leaving):
    """As the scheduler decides, so that its binds are not rejected; with a limit of one the rule is still satisfied."""
    owner, web = workload("db", "db", rule("web", limit=limit)), workload("web", "web", **leaving)
    found = broken(workload("p", "web"), "n1", (owner, "n1"), (web, "n1"), semantics=semantics)
    assert len(found) == (n_broken if not leaving or limit == 0 else 0)


def test_a_pod_is_not_its_own_peer():
    owner = workload("p", "web", rule("web"))
    assert not broken(owner, "n1", (owner, "n1"))


def test_a_limit_counts_pods_already_on_the_node():
    owner, peer = workload("o", "db", rule("web", limit=1)), workload("q", "web")
    assert broken(workload("p", "web"), "n1", (owner, "n1"), (peer, "n1"))
    assert not broken(workload("p", "web"), "n1", (owner, "n1"), (peer, "n2"))


def test_daemons_neither_block_nor_are_blocked_in_the_design_semantics():
    all_pods = {"podAntiAffinity": {RUNNING: [{"labelSelector": {}, "namespaceSelector": {}, "topologyKey": HOSTNAME}]}}
    agent = workload("agent", "agent", namespace="kube-system")
    assert broken(workload("p", "web", all_pods), "n1", (agent, "n1"), semantics=UPSTREAM)
    assert not broken(workload("p", "web", all_pods), "n1", (agent, "n1"), semantics=DESIGN)
    assert not broken(agent, "n1", (workload("p", "web", all_pods), "n1"), semantics=DESIGN)


@pytest.mark.parametrize("names, shown", [
    (PeerNames(), "a rule of a pod of another namespace on n1 rejects this pod"),
    (PeerNames(show_all=True), " of bank/vault rejects app=web in namespace shop on its node, and n1 has shop/p"),
])  # fmt: skip
def test_pods_of_other_namespaces_are_named_only_if_configured(names, shown):
    vault = msgspec.structs.replace(workload("vault", "db", rule("web", namespaces=("shop",))), namespace="bank")
    (found,) = bind_review.broken_rules(workload("p", "web"), "n1", index_of((vault, "n1")))
    assert found.text(names).endswith(shown)
