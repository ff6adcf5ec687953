"""Rules that have no effect are said, by `place`, `explain` and `validate`, with the object and the field."""

import json

import pytest

NODES = """\
apiVersion: v1
kind: Node
metadata: {name: a, labels: {topology.kubernetes.io/zone: a, kubernetes.io/hostname: a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: b, labels: {kubernetes.io/hostname: b}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: i}]
      topologySpreadConstraints: [CONSTRAINTS]
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [TERMS]}}
"""
TERM = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
WEB = "labelSelector: {matchLabels: {app: web}}"
ZONEE = f"{{topologyKey: topology.kubernetes.io/zonee, {WEB}}}"
TEAM = f"{{topologyKey: kubernetes.io/hostname, {WEB}, namespaceSelector: {{matchLabels: {{team: a}}}}}}"
STUCK = "in a rolling update no old pod is deleted"
CASES = [
    (
        ZONEE,
        f"{TERM}.topologyKey: no node has the label topology.kubernetes.io/zonee, so the term keeps no pods apart",
    ),
    (
        f"{{topologyKey: topology.kubernetes.io/zone, {WEB}}}",
        f"{TERM}.topologyKey: 1 of 2 nodes have no label topology.kubernetes.io/zone: the term does not apply there",
    ),
    (
        "{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: wbe}}}",
        f"{TERM}.labelSelector: no pod of the input matches app=wbe in the namespaces of the term",
    ),
    (TEAM, f"{TERM}.namespaceSelector: the input has no Namespace objects, so the only label of a namespace"),
]  # fmt: skip


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(terms="", constraints="", further=""):
        (tmp_path / "nodes.yaml").write_text(NODES + further)
        (tmp_path / "web.yaml").write_text(DEPLOYMENT.replace("TERMS", terms).replace("CONSTRAINTS", constraints))

    return write


@pytest.mark.parametrize("terms, warning", CASES)
def test_a_term_without_effect_is_said_by_place_and_explain(run, scene, terms, warning):
    scene(terms)
    for command in (["place"], ["explain", "deploy/web"]):
        result = run(*command, "-f", ".")
        assert f"warning: Deployment shop/web: {warning}" in result.stderr
        assert result.stderr.count("warning: ") == 1
        assert result.exit_code == 0


@pytest.mark.parametrize("terms, warning", CASES)
def test_a_term_without_effect_is_said_by_validate(run, scene, terms, warning):
    scene(terms)
    result = run("validate", "-f", ".")
    (line,) = [one for one in result.stderr.splitlines() if STUCK not in one]
    assert line.startswith("warning: ./web.yaml:")
    assert f"Deployment shop/web: {warning.replace('spec.', 'spec.template.spec.', 1)}" in line
    assert result.exit_code == 0
    assert run("validate", "-f", ".", "--fail-on", "warning").exit_code == 1


def test_of_a_change_the_rules_are_said_and_of_the_state_they_are_not(run, scene, tmp_path):
    scene(ZONEE)
    (tmp_path / "web.yaml").rename(tmp_path / "state.yaml")
    (tmp_path / "new.yaml").write_text((tmp_path / "state.yaml").read_text().replace("name: web", "name: new"))
    result = run("place", "--state", "nodes.yaml", "--state", "state.yaml", "-f", "new.yaml")
    assert "Deployment shop/new" in result.stderr
    assert "Deployment shop/web:" not in result.stderr


PREEMPTING = """\
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 10
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: old, namespace: shop, uid: u1, resourceVersion: "1"}
spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}}}
---
apiVersion: v1
kind: Pod
metadata:
  {name: old-1, namespace: shop, uid: u2, labels: {app: web},
   ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: old, uid: u1, controller: true}]}
spec:
  nodeName: a
  containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
    {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}}
status: {phase: Running}
"""


def test_a_term_about_pods_that_were_preempted_has_an_effect(run, scene, tmp_path):
    """Victims that fit nowhere have no node in the end, and are pods of the input nevertheless."""
    scene(further=f"---\n{PREEMPTING}")
    spec = "{priorityClassName: high, containers: [{name: c, image: i, resources: {requests: {cpu: '4'}}}]}"
    one = "apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: " + spec
    (tmp_path / "web.yaml").write_text(f"{one % 'one'}\n---\n{one % 'two'}\n")
    result = run("place", "--state", "nodes.yaml", "-f", "web.yaml")
    assert "preempted from a" in result.stdout
    assert "warning" not in result.stderr


def test_a_constraint_without_nodes_is_said(run, scene):
    scene(constraints=f"{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, {WEB}}}")
    result = run("place", "-f", ".")
    assert (
        "spec.topologySpreadConstraints[0].topologyKey: no node has the label zone, so the pod fits on no node, did you mean "
        "topology.kubernetes.io/zone?" in result.stderr
    )
    scene(constraints=f"{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, {WEB}}}")
    assert "warning" not in run("place", "-f", ".").stderr


def test_a_term_is_void_for_daemon_namespaces(run, scene):
    scene(f"{{topologyKey: kubernetes.io/hostname, {WEB}, namespaces: [kube-system]}}")
    result = run("place", "-f", ".", "--semantics", "design")
    assert (
        f"{TERM}: pods of daemon namespaces neither block nor are blocked, so this term has no effect" in result.stderr
    )


@pytest.mark.parametrize("key, near", [
    ("topology.kubernetes.io/zonee", "topology.kubernetes.io/zone"),
    ("kubernetes.io/hostnam", "kubernetes.io/hostname"),
    ("topology.kubernetes.io/zone", ""),
    ("example.com/rack", ""),
])  # fmt: skip
def test_without_nodes_validate_knows_the_keys_of_kubernetes(run, scene, tmp_path, key, near):
    scene(f"{{topologyKey: {key}, {WEB}}}")
    (tmp_path / "nodes.yaml").unlink()
    result = run("validate", "-f", ".")
    assert (f"{key} is no label that Kubernetes gives nodes, did you mean {near}?" in result.stderr) == bool(near)
    assert all(STUCK in line for line in result.stderr.splitlines()) == (not near)


@pytest.mark.parametrize("expressions, none", [
    ("{key: app, operator: In, values: [a]}, {key: app, operator: NotIn, values: [a]}", True),
    ("{key: app, operator: In, values: [a]}, {key: app, operator: In, values: [b]}", True),
    ("{key: app, operator: Exists}, {key: app, operator: DoesNotExist}", True),
    ("{key: app, operator: In, values: [a, b]}, {key: app, operator: NotIn, values: [a]}", False),
    ("{key: app, operator: Exists}, {key: app, operator: NotIn, values: [a]}", False),
])  # fmt: skip
def test_a_selector_that_excludes_what_it_requires_is_said(run, scene, tmp_path, expressions, none):
    scene(f"{{topologyKey: kubernetes.io/hostname, labelSelector: {{matchExpressions: [{expressions}]}}}}")
    (tmp_path / "nodes.yaml").unlink()
    assert ("no pod can match" in run("validate", "-f", ".").stderr) == none


# The label that every namespace has


@pytest.mark.parametrize("namespaces", ["", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"])
def test_the_name_of_a_namespace_is_a_label_of_it(run, scene, namespaces):
    selector = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}"
    scene(f"{{topologyKey: kubernetes.io/hostname, {WEB}, {selector}}}", further=namespaces)
    result = run("place", "-f", ".", "--replicas", "max", "-o", "json")
    assert json.loads(result.stdout)["items"][0]["fit"] == 2, "one on each node"
    assert "warning" not in run("place", "-f", ".").stderr
