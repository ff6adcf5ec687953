"""The registry of kinds: its rows fit everything that reads them, and no other module keeps a list of kinds."""

import ast
import json
import pathlib

import msgspec
import pytest

import bayplan
from bayplan.controllers import resource_interpreter
from bayplan.controllers.desired_state import DesiredState
from bayplan.enforcing import pod_guard
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.kube_api import resources as api_resources
from bayplan.library import workload_names
from bayplan.mapping import pods
from bayplan.model.semantics import UPSTREAM
from bayplan.reading import audit_files, cluster, files, questions
from bayplan.reading.files import ReadOptions
from bayplan.validating import admission
from bayplan.watching import audit_fetching, fetching, resources
from bayplan.watching.cluster_state import ClusterState
from bayplan.webhook.manifests import WebhookAddress, manifests
from bayplan.wire import kinds
from bayplan.wire.controllers import Controller
from bayplan.wire.kinds import ApiKind, PodNames, Trait
from bayplan.wire.meta import ApiObject
from bayplan.wire.pods import Pod
from bayplan.writing import snapshots

SOURCE = pathlib.Path(bayplan.__file__).parent
ARMADA = ApiKind(
    "Armada", "ships.k8s.io", "v1", "armadas", Controller, kinds.CONTROLLERS,
    Trait.DECIDES | Trait.SPREADS | Trait.AUDITED | Trait.DISPLACED | Trait.INTERPRETED,
    Controller, kinds.TEMPLATE, PodNames.RANDOM, "arm",
)  # fmt: skip
CACHED = (kinds.handling_of, workload_names.pod_suffixes, workload_names.short_names)


@pytest.fixture
def armada(monkeypatch):
    """The registry with one more row."""
    monkeypatch.setitem(kinds.KINDS, ARMADA.key, ARMADA)
    for function in CACHED:
        function.cache_clear()
    yield ARMADA
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def read(tmp_path):
    def read(*objects, **options):
        path = tmp_path / "objects.json"
        path.write_text("\n".join(map(json.dumps, objects)))
        return files.load(ReadOptions([str(path)], **options))

    return read


def written(kind="Armada", version="ships.k8s.io/v1", **spec):
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def watched():
    state = ClusterState(PlacementIndex(UPSTREAM), None, None, is_responsible=lambda _name: True)
    return [one.resource for one in resources.scheduling_resources(state)]


# One row is enough


def test_files_read_a_kind_of_the_registry(armada, read):
    (found,) = read(written()).controllers["Armada"]
    assert (found.metadata.name, found.metadata.namespace) == ("a", "default")


def test_without_the_row_it_is_skipped(read):
    assert [one.kind for one in read(written()).unread_objects] == ["Armada"]


@pytest.mark.parametrize("version, kind, problem", [
    ("ships.k8s.io/v1", "Armadda", "unknown kind Armadda, did you mean Armada?"),
    ("apps/v1", "Armada", "expected ships.k8s.io/v1 for a Armada, got apps/v1"),
])  # fmt: skip
def test_its_name_and_its_version_are_checked(armada, read, version, kind, problem):
    with pytest.raises(bayplan.errors.InputError, match=problem.replace("?", r"\?")):
        read(written(kind, version))


def test_it_is_listed_watched_and_audited(armada):
    resource = api_resources.of_kind("Armada")
    assert resource.path("fleet", "a") == "/apis/ships.k8s.io/v1/namespaces/fleet/armadas/a"
    for known in (fetching.optional_resources(), watched(), audit_fetching.audited_resources()):
        assert known.count(resource) == 1


def test_a_cluster_wide_kind_has_no_namespace_in_its_path(monkeypatch):
    row = msgspec.structs.replace(ARMADA, traits=Trait.CLUSTER_WIDE)
    monkeypatch.setitem(kinds.KINDS, row.key, row)
    assert api_resources.of_kind("Armada").path("fleet", "a") == "/apis/ships.k8s.io/v1/armadas/a"


def test_its_pod_template_is_validated_guarded_and_reviewed(armada):
    wrong = written(dnsPolicy="Sometimes")
    assert [cause.field for cause in admission.validate_all(wrong)] == ["spec.template.spec.dnsPolicy"]
    assert pod_guard.read_pod_like(written(), "default").path == "spec.template."
    reviewed = [
        rule
        for one in manifests(WebhookAddress(), "ops", mutate=False)
        for hook in one["webhooks"]
        if hook["name"] == "workloads.bayplan.io"
        for rule in hook["rules"]
    ]
    assert (["ships.k8s.io"], ["v1"], ["armadas"]) in [
        (rule["apiGroups"], rule["apiVersions"], rule["resources"]) for rule in reviewed
    ]


def test_snapshots_decisions_and_spread_constraints_include_it(armada, read):
    inputs = read(written())
    assert [one.kind for one in snapshots.snapshot_of(inputs, []).objects] == ["Armada"]
    assert list(cluster.spread_context_of(inputs).controllers) == [("Armada", "default", "a")]
    index = PlacementIndex(UPSTREAM)
    assert list(questions._objects([written()], index).controllers) == [("Armada", "default", "a")]


def test_an_audit_decodes_it(armada, tmp_path):
    gathered, placeable = audit_files.AuditObjects(), audit_files.PlaceableObjects()
    (tmp_path / "a.json").write_text(json.dumps(written()))
    for document in files.documents_of(files.open_source(str(tmp_path / "a.json"), None)):
        assert gathered.add(document)
        placeable.add(document)
    assert [one.metadata.name for one in gathered._found["Armada"]] == ["a"]
    assert [one.metadata.name for one in placeable._collector.inputs.controllers["Armada"]] == ["a"]


@pytest.mark.parametrize("held_in, traits, replicas", [
    (kinds.CONTROLLERS, Trait.INTERPRETED, 1),
    (kinds.CONTROLLERS, Trait.NONE, 0),
    ("csi_drivers", Trait.NONE, 0),
    ("csi_drivers", Trait.CLUSTER_WIDE, 0),
])  # fmt: skip
def test_a_fleet_propagates_it(held_in, traits, replicas, armada, read, monkeypatch):
    row = msgspec.structs.replace(armada, held_in=held_in, traits=traits)
    monkeypatch.setitem(kinds.KINDS, row.key, row)
    found = [one for one in resource_interpreter.templates_of(read(written())) if one.kind == "Armada"]
    assert {one.metadata.name: (one.replicas, one.interpreted) for one in found} == {"a": (replicas, bool(replicas))}


@pytest.mark.parametrize("held_in", [kinds.CONTROLLERS, "csi_drivers"])
def test_its_namespace_is_used(held_in, armada, read, monkeypatch):
    monkeypatch.setitem(kinds.KINDS, armada.key, msgspec.structs.replace(armada, held_in=held_in))
    assert read(written(), namespace="fleet").namespace_names() == {"fleet"}


def test_explain_knows_its_pods(armada):
    assert workload_names.parse("arm/a") == workload_names.parse("armada/a")
    owner = {"apiVersion": "ships.k8s.io/v1", "kind": "Armada", "name": "a", "uid": "u", "controller": True}
    metadata = {"name": "named-otherwise", "namespace": "default", "ownerReferences": [owner]}
    pod = msgspec.convert({"metadata": metadata, "spec": {"containers": []}}, Pod)
    assert workload_names.parse("arm/a").matches_pod(pods.workload_of(pod))
    assert not workload_names.parse("arm/b").matches_pod(pods.workload_of(pod))


# The rows


def test_each_decoded_kind_is_held_in_a_list_of_its_type():
    state = DesiredState()
    for row in kinds.decoded():
        assert state.list_of(row) == []
    assert {row.kind for row in kinds.KINDS.values() if bool(row.held_in) != bool(row.wire_type)} == set()


def test_pods_come_from_pods_and_templates_only():
    for row in kinds.KINDS.values():
        assert (row.held_in == kinds.CONTROLLERS) <= (row.pod_path == kinds.TEMPLATE)
        assert (row.pod_names is None) <= (row.held_in not in {"pods", kinds.CONTROLLERS})
        assert row.pod_path is None or row.pod_path in pod_guard._TYPES


def test_a_fleet_places_on_targets():
    assert [row.kind for row in kinds.having(Trait.TARGET)] == ["Node", "Cluster"]


def test_names_are_unique():
    rows = list(kinds.KINDS.values())
    short = [row.short_name for row in rows if row.short_name]
    assert len(short) == len(set(short))
    assert len({row.key for row in kinds._ROWS}) == len(kinds._ROWS)
    assert len({(row.group, row.plural) for row in rows}) == len(rows)
    assert {row.kind for row in rows if len([one for one in rows if one.kind == row.kind]) > 1} == {"Event", "PodGroup"}


def test_events_have_a_resource_in_each_of_their_groups():
    assert api_resources.EVENTS.path() == "/apis/events.k8s.io/v1/events"
    assert api_resources.CORE_EVENTS.path() == "/api/v1/events"


def test_all_wire_types_are_api_objects():
    for row in kinds.KINDS.values():
        for wire_type in (row.wire_type, row.audited_type):
            assert wire_type is None or issubclass(wire_type, ApiObject)


def test_the_recipe_for_a_dump_has_every_kind_that_is_read():
    recipe = pathlib.Path(__file__).parents[2] / "docs/how-to/read-a-dump-of-a-cluster.md"
    commands = [line.split()[2] for line in recipe.read_text().splitlines() if line.startswith("kubectl get ")]
    short = {
        "pv": "persistentvolumes",
        "pvc": "persistentvolumeclaims",
        "hpa": "horizontalpodautoscalers",
        "pdb": "poddisruptionbudgets",
    }
    named = {short.get(name, name) for command in commands for name in command.split(",")}
    assert named == {row.plural for row in kinds.decoded() if not row.is_karmada}  # fmt: skip


def test_a_live_cluster_is_listed_group_by_group():
    assert [str(one) for one in fetching.REQUIRED_RESOURCES] == ["nodes", "pods"]
    assert [str(one) for one in fetching.optional_resources()] == [
        "namespaces", "services", "replicationcontrollers", "limitranges", "resourcequotas", "persistentvolumes",
        "persistentvolumeclaims", "mutatingwebhookconfigurations.admissionregistration.k8s.io", "validatingwebhookconfigurations.admissionregistration.k8s.io", "deployments.apps",
        "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "horizontalpodautoscalers.autoscaling",
        "jobs.batch", "cronjobs.batch", "runtimeclasses.node.k8s.io", "poddisruptionbudgets.policy", "priorityclasses.scheduling.k8s.io", "podgroups.scheduling.k8s.io", "podgroups.scheduling.x-k8s.io", "storageclasses.storage.k8s.io",
        "csinodes.storage.k8s.io", "volumeattachments.storage.k8s.io", "csidrivers.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
    ]  # fmt: skip
    assert [str(one) for one in fetching.fleet_resources()] == [
        "propagationpolicies.policy.karmada.io", "clusterpropagationpolicies.policy.karmada.io",
        "resourcebindings.work.karmada.io", "clusterresourcebindings.work.karmada.io",
    ]  # fmt: skip


def test_an_audit_lists_what_it_reads():
    assert {one.plural for one in audit_fetching.audited_resources()} == {
        "pods", "leases", "endpointslices", "poddisruptionbudgets", "namespaces", "services", "persistentvolumes",
        "persistentvolumeclaims", "deployments", "replicasets", "statefulsets", "csinodes", "storageclasses",
        "priorityclasses", "machines",
    }  # fmt: skip


def test_nodes_and_namespaces_are_watched_before_pods():
    assert [one.plural for one in watched()] == [
        "namespaces", "nodes", "storageclasses", "csinodes", "volumeattachments", "csidrivers", "csistoragecapacities",
        "persistentvolumes", "persistentvolumeclaims", "poddisruptionbudgets", "services", "replicasets",
        "statefulsets", "replicationcontrollers", "pods",
    ]  # fmt: skip


# Nothing else keeps a list of kinds

# Functions by kind: what a kind is comes from its row, what is done with it is written here.
DISPATCHING = {
    "controllers/custom_kinds.py",  # custom kinds with the names of Kubernetes' own
    "controllers/finding_rollouts.py",  # how a controller is updated
    "controllers/object_counts.py",  # which objects a controller creates beside pods
    "controllers/pod_creation.py",  # which pods a controller creates
    "placing/leaving.py",  # which controllers create a pod again before the old one is gone
    "placing/placement_revisions.py",  # of which kinds a fix for a fleet may change the replicas
    "reading/manifests.py",  # which objects of a fleet the manifest of a fix is looked up in
    "simulating/initial_state.py",  # in which order objects are stored
    "simulating/measuring.py",  # of which controllers the unavailable time is measured
    "simulating/store.py",  # which objects are looked up by kind
    "simulating/timeline_checks.py",  # what may be scaled, restarted and applied
    "simulating/timeline_reader.py",  # which kinds may be relabelled
    "simulating/workloads.py",  # which controllers are played
    "validating/admission.py",  # which rules an object of the kind has
    "validating/served_versions.py",  # in which versions a kind is served
    "validating/updates.py",  # which fields of the kind are fixed
    "watching/fetching.py",  # which kinds of a fleet are read beside those that decisions need
    "watching/resources.py",  # how a change of a watched object changes the state
}
OTHER_WORDS = {
    "reading/lua_library.py",  # what a volume refers to has the names of kinds
    "validating/resources.py",  # what a ResourceQuota counts has the names of resources
}
URL_PATHS = {"webhook/serving.py"}  # paths of reviews have the names of lists
TABLES = (ast.Dict, ast.Set, ast.Tuple, ast.List, ast.Match, ast.BinOp)


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")


def has_table_of_kinds(source):
    """Whether the source contains a table with three or more names of kinds or resources."""
    rows = kinds.KINDS.values()
    names = {name for row in rows for name in (row.kind, row.plural)}
    names |= {row.kind.lower() for row in rows if not row.kind.istitle()}  # `namespace` may also be a field
    return any(len(names & words) >= 3 for words, _ in words_of_tables(source))


def has_table_of_lists(source):
    """Whether the source contains a table with three or more lists of a DesiredState, as attributes or by name."""
    names = {row.held_in for row in kinds.decoded()}
    return any(len(names & (words | attributes)) >= 3 for words, attributes in words_of_tables(source))


def words_of_tables(source):
    """The texts and the attributes of each table."""
    for table in ast.walk(ast.parse(source)):
        if isinstance(table, TABLES):
            nodes = list(ast.walk(table))
            texts = {one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)}
            yield texts, {one.attr for one in nodes if isinstance(one, ast.Attribute)}


def test_no_other_module_has_a_table_of_kinds():
    found = {name for name, source in modules() if has_table_of_kinds(source)}
    assert found == {"wire/kinds.py", *DISPATCHING, *OTHER_WORDS}


def test_no_other_module_has_a_table_of_the_lists_of_objects():
    found = {name for name, source in modules() if has_table_of_lists(source)}
    assert found == {"wire/kinds.py", *URL_PATHS}


@pytest.mark.parametrize("source", [
    "(*inputs.services, *inputs.claims, *inputs.volumes)",
    "[inputs.services, inputs.claims, inputs.volumes]",
    "{Service: inputs.services, Claim: inputs.claims, Volume: inputs.volumes}",
    "inputs.services + inputs.claims + inputs.volumes",
    "('services', 'claims', 'volumes')",
    "{'services', *inputs.claims, 'volumes'}",
])  # fmt: skip
def test_a_table_of_lists_is_found_in_any_form(source):
    assert has_table_of_lists(source)


@pytest.mark.parametrize("source", ["(inputs.services, inputs.claims)", "index(inputs.services); index(inputs.claims)"])
def test_two_lists_are_no_table(source):
    assert not has_table_of_lists(source)
