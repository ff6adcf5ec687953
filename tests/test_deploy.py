"""The shipped manifests, applied as the page describes."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner

from bayplan.cli import main
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.mapping.bindings import BindingContext
from bayplan.model.semantics import UPSTREAM
from bayplan.watching import audit_fetching, fleet_resources, pod_group_watches, resources
from bayplan.watching.cluster_state import ClusterState
from bayplan.watching.fetching import NODES
from bayplan.watching.fleet_state import FleetState
from bayplan.wire import kinds

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "run-the-scheduler.md"


@pytest.fixture(scope="module")
def manifests(tmp_path_factory):
    """What `kubectl apply -k` sends for the directory that the page describes."""
    deploy = tmp_path_factory.mktemp("repository") / "deploy"
    shutil.copytree(ROOT / "deploy", deploy)
    text = PAGE.read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n# deploy/ours/kustomization\.yaml\n(.*?)```", text, re.DOTALL)
    (deploy / "ours").mkdir()
    (deploy / "ours" / "kustomization.yaml").write_text(block, encoding="utf-8")
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    done = subprocess.run([kubectl, "kustomize", deploy / "ours"], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


@pytest.fixture(scope="module")
def container(manifests):
    (deployment,) = (one for one in manifests if (one["kind"], one["metadata"]["name"]) == ("Deployment", "bayplan"))
    return deployment["spec"]["template"]["spec"]["containers"][0]


def test_the_pushed_image_is_the_deployed_one(container):
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"docker build .* -t (\S+) ", text) == [container["image"]]
    assert re.findall(r"docker push (\S+)", text) == [container["image"]]


def test_each_part_adds_its_flag(container):
    assert {"--enforce=on", "--audit", "--webhook"} <= set(container["args"])
    with_context = main.cli.commands["run"].make_context("run", container["args"][1:])
    assert with_context.params["enforce"] == "on"
    assert with_context.params["audit"] is True
    assert with_context.params["webhook"] is True


def test_the_webhook_configuration_reaches_the_port_of_the_container(manifests, container):
    """From the configurations to the Service, and through the network policy to the port of the container."""
    options = main.cli.commands["run"].make_context("run", container["args"][1:]).params
    (port,) = (one for one in container["ports"] if one["name"] == "webhook")
    assert options["webhook_bind_address"] == f"0.0.0.0:{port['containerPort']}"
    named = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]): one for one in manifests}
    namespace, _, name = options["webhook_service"].partition("/")
    service, policy = (named[kind, namespace, name] for kind in ("Service", "NetworkPolicy"))
    (deployment,) = (one for one in manifests if (one["kind"], one["metadata"]["name"]) == ("Deployment", "bayplan"))
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["metadata"]["namespace"] == namespace
    assert service["spec"]["selector"].items() <= labels.items()
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert service["spec"]["ports"][0]["targetPort"] == policy["spec"]["ingress"][0]["ports"][0]["port"] == "webhook"
    asked = [hook["clientConfig"]["service"] for one in manifests for hook in one.get("webhooks", ())]
    outside = service["spec"]["ports"][0]["port"]
    assert {(one["namespace"], one["name"], one["port"]) for one in asked} == {(namespace, name, outside)}


def test_the_shipped_manifests_are_valid_and_cause_no_warning(manifests, tmp_path):
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(manifests))
    done = CliRunner().invoke(main.cli, ["validate", "-f", str(tmp_path / "all.yaml")])
    assert done.exit_code == 0, done.output
    assert "warning" not in done.output.lower()


# The rights and rules that follow from the registry of kinds


def documents(name, kind):
    return [one for one in yaml.safe_load_all((ROOT / "deploy" / name).read_text()) if one["kind"] == kind]


def granted(component, verb):
    """The resources on which the ClusterRole of a component allows the verb, by group and name."""
    (role,) = documents(f"{component}/rbac.yaml", "ClusterRole")
    rules = [rule for rule in role["rules"] if verb in rule["verbs"]]
    return {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}


def rights(found):
    return {(one.group, one.plural) for one in found}


def watched():
    state = ClusterState(PlacementIndex(UPSTREAM), None, None, is_responsible=lambda _name: True)
    return [one.resource for one in resources.scheduling_resources(state)]


def test_the_base_may_list_and_watch_exactly_what_is_watched():
    pod_groups = {(group, "podgroups") for group in pod_group_watches.SOURCES}
    assert granted("base", "list") == granted("base", "watch") == rights(watched()) | pod_groups


def test_the_scheduler_of_bindings_may_list_and_watch_exactly_what_it_watches():
    state = FleetState(PlacementIndex(UPSTREAM), None, BindingContext(), ())
    of_templates = {("apps", name) for name in ("daemonsets", "deployments", "statefulsets")}
    of_templates |= {("batch", name) for name in ("cronjobs", "jobs")}
    expected = rights(one.resource for one in fleet_resources.fleet_resources(state)) | of_templates
    assert granted("fleet", "list") == granted("fleet", "watch") == expected


def test_the_shipped_scheduler_of_bindings_is_valid_and_reaches_its_server(tmp_path):
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    done = subprocess.run(
        [kubectl, "kustomize", ROOT / "deploy" / "fleet-host"], capture_output=True, text=True, check=True
    )
    (tmp_path / "all.yaml").write_text(done.stdout)
    checked = CliRunner().invoke(main.cli, ["validate", "-f", str(tmp_path / "all.yaml")])
    assert checked.exit_code == 0, checked.output
    assert "warning" not in checked.output.lower()
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    pod = found["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    options = main.cli.commands["run"].make_context("run", container["args"][1:]).params
    (volume,) = (one for one in pod["spec"]["volumes"] if "secret" in one)
    (mount,) = (one for one in container["volumeMounts"] if one["name"] == volume["name"])
    assert str(options["kubeconfig"]) == f"{mount['mountPath']}/kubeconfig"
    page = (ROOT / "docs" / "how-to" / "run-on-karmada.md").read_text(encoding="utf-8")
    assert f"create secret generic {volume['secret']['secretName']} --from-file=kubeconfig=" in page
    assert pod["spec"]["automountServiceAccountToken"] is False
    labels = pod["metadata"]["labels"]
    for selector in (
        found["Service"]["spec"]["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector == labels


def test_auditing_may_list_exactly_what_an_audit_lists_beyond_the_base():
    listed = rights([NODES, *audit_fetching.audited_resources()])
    assert granted("auditing", "list") == listed - granted("base", "list")


def test_the_admission_policies_review_every_kind_with_a_pod():
    rows = kinds.KINDS.values()
    expected = [rights(row for row in rows if row.pod_path is not None)] * 2 + [rights(kinds.held_in("policies"))]
    found = [
        {
            (group, name)
            for rule in policy["spec"]["matchConstraints"]["resourceRules"]
            for group in rule["apiGroups"]
            for name in rule["resources"]
        }
        for policy in documents("guard/admission-policy.yaml", "ValidatingAdmissionPolicy")
    ]
    assert found == expected
