"""The Helm chart by the real Helm: the same objects as deploy/, accepted by a real API server, and removed without a trace."""

import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

from bayplan.cli import main
from live import bayplan_running, kube_binaries, programs
from live.admin import ApiError, pod, wait_for
from live.kubectl import kubectl
from live.open_webhook import CONFIGURATIONS
from live.shipped import DEPLOY

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "charts" / "bayplan"
NAMESPACE = "bayplan-system"
# What a component of deploy/ is in the values, in the order in which the Deployment has the flags.
COMPONENTS = {
    "enforcing": {"enforcement": '{"mode": "on"}'},
    "auditing": {"audit": '{"enabled": true}'},
    "webhook": {"webhook": '{"enabled": true, "certificates": false}'},
    "webhook-certificates": {"webhook": '{"enabled": true, "certificates": true}'},
    "fleet-host": {"fleet": '{"enabled": true}'},
    "guard": {"guard": '{"enabled": true}'},
    "monitoring": {"monitoring": '{"serviceMonitor": true, "rules": true, "dashboard": true}'},
}
NO_GUARD = {"guard": '{"enabled": false}'}
CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding", "Namespace", "PriorityClass")


def combinations():
    for size in range(len(COMPONENTS) + 1):
        for chosen in itertools.combinations(COMPONENTS, size):
            if "webhook-certificates" not in chosen or "webhook" in chosen:
                yield chosen


def kustomized(folder, *components):
    """What `kubectl apply -k` sends for the base with these components, and for deploy/fleet-host if it is among them."""
    of_base = [name for name in components if name != "fleet-host"]
    at = {name: os.path.relpath(DEPLOY / name, folder) for name in ("base", *of_base)}
    content = {"resources": [at["base"]], "components": [at[name] for name in of_base]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return [
        one
        for at in (folder, *([DEPLOY / "fleet-host"] if "fleet-host" in components else ()))
        for one in yaml.load_all(kubectl_kustomize(at), yaml.CSafeLoader)
    ]


def kubectl_kustomize(folder):
    command = [pathlib.Path(sys.executable).with_name("kubectl"), "kustomize", folder]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def in_namespace(objects, namespace=NAMESPACE):
    """The objects with the namespace that they get, without the namespace itself, which Helm creates."""
    found = []
    for one in objects:
        metadata = dict(one["metadata"])
        if one["kind"] in CLUSTER_SCOPED or one["apiVersion"].startswith("admissionregistration.k8s.io/"):
            metadata.pop("namespace", None)  # Kustomize does not know that policies have none
        else:
            assert metadata.setdefault("namespace", namespace) in {namespace, "kube-system"}
        if one["kind"] != "Namespace":
            found.append({**one, "metadata": metadata})
    return found


def by_name(objects):
    """The objects by kind and name."""
    found = {(one["kind"], one["metadata"]["name"]): one for one in in_namespace(objects)}
    assert len(found) == len(in_namespace(objects))
    return found


def values_of(components):
    values = {} if "guard" in components else dict(NO_GUARD)
    for name in components:
        values |= COMPONENTS[name]
    return values


@pytest.fixture(scope="module")
def renderings(helm):
    """The objects of the chart for every combination of components."""
    return {chosen: helm.rendered(CHART, **values_of(chosen)) for chosen in combinations()}


def test_the_chart_has_what_deploy_has_in_every_combination(renderings, tmp_path):
    assert len(renderings) == 96
    for chosen, objects in renderings.items():
        assert by_name(objects) == by_name(kustomized(tmp_path, *chosen)), chosen


def test_the_guard_is_on_by_default(helm):
    policies = {one["metadata"]["name"] for one in helm.rendered(CHART) if one["kind"] == "ValidatingAdmissionPolicy"}
    assert "bayplan-guard" in policies


def test_helm_finds_nothing_to_criticise(helm, tmp_path):
    values = {name: json.loads(value) for name, value in values_of(COMPONENTS).items()}
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(values))
    for more in ((), ("--values", tmp_path / "all.yaml")):
        said = helm("lint", "--strict", CHART, *more).stdout
        assert "0 chart(s) failed" in said
        assert "[WARNING]" not in said


@pytest.mark.parametrize("values, complaint", [
    ({"replicas": '"two"'}, "replicas"),
    ({"enforcement": '{"mode": true}'}, "mode"),
    ({"pod": "{}"}, "pod"),
    ({"guard": '{"exemptUsers": ["a\'b"]}'}, "exemptUsers"),
    ({"pods": '{"enabled": false}', "webhook": '{"enabled": true}'}, "pods.enabled is needed"),
    ({"fleetRights": '{"enabled": true}'}, "release of its own"),
    ({"pods": '{"enabled": false}', "audit": '{"enabled": true}'}, "pods.enabled is needed"),
])  # fmt: skip
def test_wrong_values_are_refused(helm, values, complaint):
    words = [word for name, value in values.items() for word in ("--set-json", f"{name}={value}")]
    done = helm("template", "bayplan", CHART, *words, check=False)
    assert done.returncode
    assert complaint in done.stderr


OTHER_VALUES = {
    "another namespace": {},
    "bindings only": {"pods": '{"enabled": false}', "fleet": '{"enabled": true, "kubeconfigSecret": "karmada", "extraArgs": ["-v"]}'},
    "rights on Karmada": {"pods": '{"enabled": false}', "fleetRights": '{"enabled": true}', **NO_GUARD},
    "everything else": {
        "image": json.dumps({"repository": "registry.example/bayplan", "digest": f"sha256:{'0' * 64}", "pullPolicy": "Always",
                             "pullSecrets": [{"name": "registry"}]}),
        "pods": '{"schedulerNames": ["one", "two"]}', "enforcement": '{"mode": "dry-run"}',
        "audit": '{"enabled": true, "profile": "ha", "interval": "1h"}',
        "webhook": '{"enabled": true, "failurePolicy": "Fail"}',
        "guard": json.dumps({"restrict": "all", "exemptUsers": ["system:admin", "o=a,cn=b"], "exemptGroups": ["g"],
                             "exemptNamespaces": ["a", "b"], "nodeTopologyKeys": ["kubernetes.io/hostname", "example.com/blade"]}),
        "networkPolicy": '{"enabled": false}', "replicas": "1", "priorityClassName": '""',
        "monitoring": '{"rules": true, "pendingAbove": 3, "documentation": "https://docs.example/"}',
        "nodeSelector": '{"role": "infra"}', "tolerations": '[{"key": "infra", "operator": "Exists"}]',
        "podLabels": '{"team": "a"}', "podAnnotations": '{"b": "c"}', "extraArgs": '["--reserve-after=10m", "-v"]',
        "resources": '{"limits": {"memory": "1Gi"}}',
    },
}  # fmt: skip


def arguments(objects):
    names = ("bayplan", "bayplan-fleet")
    (deployment,) = (one for one in objects if one["kind"] == "Deployment" and one["metadata"]["name"] in names)
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]


@pytest.mark.parametrize("name", [name for name in OTHER_VALUES if name != "rights on Karmada"])
def test_the_arguments_are_those_of_the_command(helm, name):
    given = arguments(helm.rendered(CHART, **OTHER_VALUES[name]))
    options = main.cli.commands["run"].make_context("run", given).params
    if name == "everything else":
        assert options["scheduler_name"] == ("one", "two")
        assert options["enforce"] == "dry-run"
        assert (options["audit_profile"], options["verbose"]) == ("ha", True)
    assert bool(options["fleet"]) is (name == "bindings only")


@pytest.fixture
async def monitored(kube_server, admin):
    """The API server with the Prometheus operator's kinds and the namespace, whose pods must meet the standard `restricted`."""
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    await admin.create_namespace(NAMESPACE, labels)
    files = kube_binaries.monitoring_crds("servicemonitors", "prometheusrules")
    named = [word for file in files for word in ("-f", file)]
    done = kubectl("apply", "--server-side", *named, kubeconfig=kube_server.kubeconfig())
    assert done.returncode == 0, done.stderr
    kinds = "servicemonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com"
    waited = kubectl("wait", "--for=condition=Established", "crd", *kinds, kubeconfig=kube_server.kubeconfig())
    assert waited.returncode == 0, waited.stderr
    yield
    kubectl("delete", *named, kubeconfig=kube_server.kubeconfig())


async def test_an_api_server_accepts_every_object_of_every_combination(
    kube_server, admin, renderings, helm, monitored, tmp_path
):
    await admin.create_namespace("elsewhere")
    found = [one for objects in renderings.values() for one in in_namespace(objects)]
    for name, values in OTHER_VALUES.items():
        namespace = "elsewhere" if name == "another namespace" else NAMESPACE
        found += in_namespace(helm.rendered(CHART, namespace, **values), namespace)
    distinct = sorted({json.dumps(one, sort_keys=True) for one in found})
    assert len(distinct) > 60
    (tmp_path / "all.yaml").write_text("\n---\n".join(distinct))
    flags = ("--server-side", "--dry-run=server", "--force-conflicts", "-f", tmp_path / "all.yaml")
    done = kubectl("apply", *flags, kubeconfig=kube_server.kubeconfig())
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower()
    assert done.stdout.count("(server dry run)") == len(distinct)


async def test_its_pods_meet_the_restricted_standard(helm, admin, monitored):
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": NAMESPACE}}
    for name in ("bayplan", "bayplan-fleet", "bayplan-webhook-certificates"):
        await admin.create({**account, "metadata": {"name": name, "namespace": NAMESPACE}})
    objects = [*helm.rendered(CHART, **values_of(COMPONENTS)), *helm.rendered(CHART, **OTHER_VALUES["bindings only"])]
    templates = [one["spec"]["template"] for one in objects if one["kind"] == "Deployment"]
    assert len(templates) == 4
    for template in templates:
        (container,) = template["spec"]["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        metadata = {"name": "one", "namespace": NAMESPACE, **template["metadata"]}
        await admin.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}, dryRun="All"
        )
        container["securityContext"]["allowPrivilegeEscalation"] = True
        with pytest.raises(ApiError, match="restricted"):
            await admin.create(
                {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}, dryRun="All"
            )


# A release from its installation to its end


def previous_chart(folder):
    """The chart of the commit before the last one that changed it, or of this tree if there is only one."""
    git = ["git", "-C", str(ROOT)]
    log = subprocess.run(
        [*git, "log", "-2", "--format=%H", "--", "charts/bayplan"], capture_output=True, text=True, check=False
    )
    commits = log.stdout.split()
    if len(commits) < 2:
        return CHART
    archive = subprocess.run([*git, "archive", commits[-1], "charts/bayplan"], capture_output=True, check=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder / "charts" / "bayplan"


def stored(server):
    """What is in the store, but for events, leases of the API server itself and what every namespace has."""
    passing = (
        "/registry/events/",
        "/registry/leases/kube-",
        "/registry/pods/",
        "/registry/minions/",
        "/registry/masterleases/",
    )
    return {key for key in server.store.keys() if not key.startswith(passing)}  # noqa: SIM118 (no dictionary)


async def test_a_release_is_installed_upgraded_and_removed(helm, kube_server, admin, namespace, tmp_path):
    kubeconfig = kube_server.kubeconfig()
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await admin.create_namespace(NAMESPACE, labels)
    await admin.create_nodes(2)
    await admin.create(pod("warm-up", namespace))
    before = stored(kube_server)
    release = ("bayplan", "--namespace", NAMESPACE)

    helm(
        "install",
        *release[:1],
        previous_chart(tmp_path),
        *release[1:],
        "--set",
        "webhook.enabled=true",
        kubeconfig=kubeconfig,
    )

    # The process with the arguments of the Deployment, and with no other rights than those of its ServiceAccount.
    deployment = await admin.get("apps/v1/deployments", "bayplan", NAMESPACE)
    given = [
        one
        for one in deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]
        if not one.startswith("--webhook")
    ]
    token = await admin.service_account_token(NAMESPACE, "bayplan")
    own = kube_server.kubeconfig(entry={"token": token})
    running = bayplan_running.process(kube_server, *given, kubeconfig=own)
    await admin.create(pod("first", namespace, scheduler="bayplan"))
    await wait_for(lambda: admin.node_of("first", namespace))

    # The webhook's certificates, by their own ServiceAccount.
    secret = await admin.service_account_token(NAMESPACE, "bayplan-webhook-certificates")
    entry = kube_server.kubeconfig(entry={"token": secret})
    code, _, said = await programs.ended("webhook-certificates", kube_server, "--kubeconfig", entry, "--once")
    assert code == 0, said
    injected = [await admin.get(resource, "bayplan") for resource in CONFIGURATIONS]
    filled = await admin.get("secrets", "bayplan-webhook-certificates", NAMESPACE)
    assert filled["data"]["tls.crt"]
    assert all(one["clientConfig"]["caBundle"] for found in injected for one in found["webhooks"])

    # An upgrade keeps what others have written, and the scheduler goes on.
    helm(
        "upgrade",
        *release[:1],
        CHART,
        *release[1:],
        "--set",
        "webhook.enabled=true",
        "--set",
        "replicas=3",
        kubeconfig=kubeconfig,
    )
    assert (await admin.get("apps/v1/deployments", "bayplan", NAMESPACE))["spec"]["replicas"] == 3
    assert (await admin.get("secrets", "bayplan-webhook-certificates", NAMESPACE))["data"] == filled["data"]
    for resource, found in zip(CONFIGURATIONS, injected, strict=True):
        assert (await admin.get(resource, "bayplan"))["webhooks"] == found["webhooks"]
    lease = await admin.get("coordination.k8s.io/v1/leases", "bayplan", NAMESPACE)
    assert lease["spec"]["holderIdentity"]
    await admin.create(pod("second", namespace, scheduler="bayplan"))
    await wait_for(lambda: admin.node_of("second", namespace))
    assert "forbidden" not in running.log.read_text()
    running.stop()
    assert running.child.returncode == 0

    helm("uninstall", *release, "--wait", kubeconfig=kubeconfig)
    assert stored(kube_server) - before == set()
