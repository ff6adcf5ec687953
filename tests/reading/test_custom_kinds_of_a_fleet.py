"""Custom kinds in a fleet: replicas and components that Karmada reads itself, by Lua, or not at all; and what is said."""

import msgspec
import pytest

from bayplan.controllers import resource_interpreter
from bayplan.controllers.custom_kinds import CustomKind, TemplatePath, table
from bayplan.model.semantics import UPSTREAM
from bayplan.reading import fleet, lua_customizations
from reading.test_fleet import CLUSTER

POLICY = """\
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: web}
spec:
  resourceSelectors: [{apiVersion: %s, kind: %s}]
  placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}
"""
OBJECT = "---\n{apiVersion: %s, kind: %s, metadata: {name: x, namespace: web}, spec: %s}\n"
POD = "{spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]}}"
GAME = ("example.com/v1", "Game")
CUSTOMIZATION = """\
---
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: %s}
spec:
  target: {apiVersion: example.com/v1, kind: Game}
  customizations:
    replicaResource:
      luaScript: |
        %s
"""
GATE = msgspec.structs.replace(UPSTREAM, multiple_pod_templates_scheduling=True)


def fleet_of(load, version, kind, spec, more="", **options):
    return fleet.fleet_of(
        load(CLUSTER % "a" + POLICY % (version, kind) + OBJECT % (version, kind, spec) + more), **options
    )


def read_as(load, version, kind, spec, more="", **options):
    """The replicas and requests of the binding, or its components."""
    (binding,) = fleet_of(load, version, kind, spec, more, **options).bindings.values()
    if binding.spec.components:
        return [(one.name, one.replicas, requests(one.replica_requirements)) for one in binding.spec.components]
    return binding.spec.replicas, requests(binding.spec.replica_requirements)


def requests(requirements):
    return dict((requirements.resource_request if requirements else None) or {})


RAY = f"{{headGroupSpec: {{template: {POD % 1}}}, workerGroupSpecs: [{{replicas: 3, template: {POD % '500m'}}}]}}"
FLINK = "{jobManager: {resource: {cpu: 1, memory: 1Gi}}, taskManager: {replicas: 4, resource: {cpu: 2, memory: 2Gi}}}"


@pytest.mark.parametrize("version, kind, spec, expected", [
    ("apps.kruise.io/v1alpha1", "CloneSet", f"{{replicas: 3, template: {POD % '250m'}}}", (3, {"cpu": "250m"})),
    ("flink.apache.org/v1beta1", "FlinkDeployment", FLINK, (5, {"cpu": 2, "memory": "2Gi"})),
    ("ray.io/v1", "RayService", f"{{rayClusterConfig: {RAY}}}", (4, {"cpu": "1"})),
    ("ray.io/v1", "RayCluster", RAY, (0, {})),  # components, which Karmada reads only with its gate
    ("jobset.x-k8s.io/v1alpha2", "JobSet", "{}", (0, {})),  # which Karmada does not know
])  # fmt: skip
def test_replicas_of_custom_kinds_are_those_that_karmada_reads(version, kind, spec, expected, load):
    assert read_as(load, version, kind, spec) == expected


@pytest.mark.parametrize("version, kind, spec, expected", [
    ("ray.io/v1", "RayCluster", RAY, [("ray-head", 1, {"cpu": "1"}), ("worker-1", 3, {"cpu": "500m"})]),
    ("flink.apache.org/v1beta1", "FlinkDeployment", FLINK,
     [("jobmanager", 1, {"cpu": 1, "memory": 2.0**30}), ("taskmanager", 4, {"cpu": 2, "memory": 2.0**31})]),
])  # fmt: skip
def test_with_the_gate_workloads_have_components(version, kind, spec, expected, load):
    assert read_as(load, version, kind, spec, semantics=GATE) == expected


def test_a_binding_with_components_shows_that_the_gate_is_on(load):
    other = """\
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: other-raycluster, namespace: web}
spec: {resource: {apiVersion: ray.io/v1, kind: RayCluster, namespace: web, name: other}, components: [{name: a, replicas: 1}]}
"""
    found = fleet_of(load, "ray.io/v1", "RayCluster", RAY, other)
    assert [one.name for one in found.bindings["web/x-raycluster"].spec.components] == ["ray-head", "worker-1"]


@pytest.mark.parametrize("version, kind, spec, said", [
    ("ray.io/v1", "RayCluster", RAY,
     f"propagated whole, without counting replicas: 1 RayCluster; {resource_interpreter.COMPONENTS_NEED_GATE}"),
    ("example.com/v1", "Game", f"{{template: {POD % 1}}}",
     "propagated whole, without counting replicas: 1 Game; Karmada does not read their replicas"),
    ("apps.kruise.io/v1alpha1", "CloneSet", f"{{template: {POD % 1}}}",
     "replicas are not known, so it is not judged: CloneSet web/x: expected a number at spec.replicas, got nothing"),
])  # fmt: skip
def test_what_is_not_counted_is_said(version, kind, spec, said, load):
    found = fleet_of(load, version, kind, spec)
    assert said in found.notes
    assert found.n_not_judged == ("not judged" in said)
    assert bool(found.bindings) == ("not judged" not in said)


def test_a_kind_of_the_configuration_has_the_sum_of_its_templates_and_their_largest_requests(load):
    paths = (TemplatePath(template="spec.master"), TemplatePath(template="spec.groups.*.template", replicas="size"))
    kinds = table([CustomKind(group="example.com", kind="Game", templates=paths)])
    inputs = load(
        CLUSTER % "a"
        + POLICY % GAME
        + OBJECT % (*GAME, f"{{master: {POD % 2}, groups: [{{size: 3, template: {POD % 1}}}]}}")
    )
    inputs.custom_kinds = kinds
    (binding,) = fleet.fleet_of(inputs).bindings.values()
    assert (binding.spec.replicas, requests(binding.spec.replica_requirements)) == (4, {"cpu": "2"})
    (binding,) = fleet.fleet_of(inputs, semantics=GATE).bindings.values()
    assert [(one.name, one.replicas) for one in binding.spec.components] == [("spec.master", 1), ("0", 3)]


def test_paths_that_lead_nowhere_leave_the_replicas_unknown(load):
    inputs = load(CLUSTER % "a" + POLICY % GAME + OBJECT % (*GAME, "{master: {}}"))
    inputs.custom_kinds = table(
        [CustomKind(group="example.com", kind="Game", templates=(TemplatePath(template="spec.pod"),))]
    )
    found = fleet.fleet_of(inputs)
    assert found.n_not_judged == 1
    (said,) = (note for note in found.notes if "not judged" in note)
    assert said.endswith("Game web/x: customKinds in the configuration: no pod template at spec.pod")


def test_a_webhook_that_karmada_would_ask_leaves_the_replicas_unknown(load):
    webhook = """\
---
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterWebhookConfiguration
metadata: {name: games}
webhooks:
- name: games.example.com
  clientConfig: {url: "https://example.com"}
  interpreterContextVersions: [v1alpha1]
  rules: [{operations: ["*"], apiGroups: [example.com], apiVersions: [v1], kinds: [Game]}]
"""
    found = fleet_of(load, *GAME, "{servers: 3}", webhook)
    assert not found.bindings
    (said,) = (note for note in found.notes if "not judged" in note)
    assert said.endswith(f"Game web/x: {resource_interpreter.WEBHOOK_NOT_ASKED.format('games.example.com')}")


# Lua


@pytest.mark.parametrize("script, expected", [
    ("function GetReplicas(o) return o.spec.servers end", (3, {})),
    ('function GetReplicas(o) return 2, {resourceRequest = {cpu = require("kube").resourceAdd("1", "500m")}} end',
     (2, {"cpu": "1500m"})),
    ('function GetReplicas(o) return 1, require("kube").accuratePodRequirements(o.spec.pod) end', (1, {"cpu": "2"})),
])  # fmt: skip
def test_customizations_are_run(script, expected, load):
    spec = f"{{servers: 3, pod: {POD % 2}}}"
    assert read_as(load, *GAME, spec, CUSTOMIZATION % ("games", script)) == expected


@pytest.mark.parametrize("script, reason", [
    ("function GetReplicas(o) while true do end end",
     "the script was killed: it took longer than 1 second, or too much memory"),
    ("function GetReplicas(o) local t = 'x' for i = 1, 40 do t = t .. t end end", "not enough memory"),
    ("function GetReplicas(o) return o.spec.a.b end", "line 1: attempt to index field 'a' (a nil value)"),
    ("function GetReplicas(o) return 'three' end", "expected a number at the first value, got 'three'"),
    ("function GetReplicas(o) return 1, {resourceRequest = {cpu = 'much'}} end",
     "cpu: expected a quantity such as 500m, 2 or 1.5Gi, got 'much'"),
    ("function GetReplicas(o) return io.open('/etc/passwd') end",
     "line 1: attempt to index global 'io' (a nil value)"),
    ("function Replicas(o) return 1 end", "not found function GetReplicas"),
    ("function GetReplicas(", "error loading code: line 2: <name> or '...' expected near '<eof>'"),
])  # fmt: skip
def test_a_script_that_fails_leaves_the_replicas_unknown(script, reason, load):
    found = fleet_of(load, *GAME, "{}", CUSTOMIZATION % ("games", script))
    said = f"replicas are not known, so it is not judged: Game web/x: ResourceInterpreterCustomization games: {reason}"
    assert said in found.notes
    assert found.n_not_judged == 1


def test_a_script_that_was_killed_is_not_run_again(load):
    others = "".join(OBJECT.replace("name: x", f"name: y{n}") % (*GAME, "{}") for n in range(50))
    script = "function GetReplicas(o) while true do end end"
    found = fleet_of(load, *GAME, "{}", CUSTOMIZATION % ("games", script) + others)
    assert found.n_not_judged == 51


def test_a_script_that_is_slow_for_every_object_is_given_up(load, monkeypatch):
    monkeypatch.setattr(lua_customizations, "MAX_SECONDS_OF_ALL_OBJECTS", 0.0)
    others = "".join(OBJECT.replace("name: x", f"name: y{n}") % (*GAME, "{}") for n in range(3))
    script = "function GetReplicas(o) for i = 1, 1e5 do end return 1 end"
    found = fleet_of(load, *GAME, "{}", CUSTOMIZATION % ("games", script) + others)
    assert (len(found.bindings), found.n_not_judged) == (1, 3)  # the first is read, and the others are not asked
    assert any(note.endswith(lua_customizations.TOO_SLOW) for note in found.notes)


def test_the_first_customization_by_name_decides(load):
    scripts = {"b": "function GetReplicas(o) return 2 end", "a": "function GetReplicas(o) return 1 end"}
    more = "".join(CUSTOMIZATION % one for one in scripts.items())
    assert read_as(load, *GAME, "{}", more) == (1, {})


def test_a_customization_comes_before_what_karmada_ships(load):
    script = CUSTOMIZATION % ("clones", "function GetReplicas(o) return 7 end")
    script = script.replace("example.com/v1, kind: Game", "apps.kruise.io/v1alpha1, kind: CloneSet")
    assert read_as(load, "apps.kruise.io/v1alpha1", "CloneSet", f"{{replicas: 3, template: {POD % 1}}}", script) == (
        7,
        {},
    )


def test_without_lua_the_extra_is_named(load, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = fleet_of(load, *GAME, "{}", CUSTOMIZATION % ("games", "function GetReplicas(o) return 1 end"))
    (said,) = (note for note in found.notes if "not judged" in note)
    assert said.endswith("running Lua needs the extra `lua`: pip install bayplan[lua]")


@pytest.mark.parametrize("written, known", [
    ("{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: x, namespace: web}}", True),
    ("{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: x, namespace: web, uid: u}}", False),
    ("{apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment, metadata: {name: x, namespace: web, resourceVersion: '1'}, status: {}}", False),
])  # fmt: skip
def test_of_a_template_of_which_only_the_metadata_is_there_the_replicas_are_not_known(written, known, load):
    policy = POLICY % ("flink.apache.org/v1beta1", "FlinkDeployment")
    found = fleet.fleet_of(load(CLUSTER % "a" + policy + f"---\n{written}\n"))
    assert [one.spec.replicas for one in found.bindings.values()] == ([2] if known else [])
    assert any(resource_interpreter.ONLY_METADATA in note for note in found.notes) is not known


# What else is said of templates


def test_two_templates_whose_bindings_have_one_name_are_not_both_placed(load):
    other = OBJECT % ("apps.kruise.io/v1alpha1", "CloneSet", f"{{replicas: 5, template: {POD % 1}}}")
    other += POLICY.replace("name: p,", "name: q,") % ("apps.kruise.io/v1alpha1", "CloneSet")
    found = fleet_of(load, "example.com/v1", "CloneSet", "{}", other)
    assert len(found.bindings) == found.n_not_judged == 1
    (said,) = (note for note in found.notes if "not judged" in note)
    assert said.startswith(
        "not judged: CloneSet web/x of apps.kruise.io/v1alpha1: its binding has the name of the one for"
    )


@pytest.mark.parametrize("field, said", [
    ("propagateDeps: true", "because no policy selects them, unless what is propagated depends on them: 1 ConfigMap"),
    ("propagateDeps: false", "because no policy selects them: 1 ConfigMap"),
    ("suspension: {dispatching: true}", "1 binding changes nothing on clusters yet: the policy suspends dispatching"),
])  # fmt: skip
def test_what_a_policy_does_beside_scheduling_is_said(field, said, load):
    text = CLUSTER % "a" + POLICY % GAME + f"  {field}\n" + OBJECT % (*GAME, "{}")
    found = fleet.fleet_of(load(text + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: web}}\n"))
    assert any(said in note for note in found.notes)
