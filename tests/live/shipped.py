"""The manifests of `deploy/` on a real API server, as kubectl applies them."""

import contextlib
import os
import pathlib
import subprocess
import sys

import yaml

from live.admin import ApiError
from live.open_webhook import CONFIGURATIONS

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
RIGHTS = (
    "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Secret",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
)  # fmt: skip
POLICIES = tuple(f"admissionregistration.k8s.io/v1/validatingadmissionpolic{end}" for end in ("ybindings", "ies"))


def rendered(folder, *components):
    """Return the manifests of the base with these components, as kubectl would apply them."""
    at = {name: os.path.relpath(DEPLOY / name, folder) for name in ("base", *components)}
    content = {"resources": [at["base"]], "components": [at[name] for name in components]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    kubectl = pathlib.Path(sys.executable).with_name("kubectl")
    done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, check=True, text=True)
    return list(yaml.safe_load_all(done.stdout))


def flags(manifests):
    """Return the arguments of the Deployment of the scheduler."""
    (deployment,) = (one for one in manifests if (one["kind"], one["metadata"]["name"]) == ("Deployment", "bayplan"))
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"][1:]


def reached_at(url, configuration):
    """Return a webhook configuration with a local port instead of the Service."""
    for webhook in configuration["webhooks"] if url else ():
        webhook["clientConfig"] = {"url": url}
    return configuration


class Shipped:
    """Applies the base with components: the flags of its Deployment, and a kubeconfig of its service account."""

    def __init__(self, kube_server, admin, folder):
        self._kube_server, self._admin, self._folder = kube_server, admin, folder

    async def __call__(self, *components, url=""):
        manifests = rendered(self._folder, *components)
        for manifest in manifests:
            if manifest["kind"] in RIGHTS:
                await self._admin.create(manifest)
            elif manifest["kind"].endswith("WebhookConfiguration"):
                await self._admin.create(reached_at(url, manifest))
        token = await self._admin.service_account_token("bayplan-system", "bayplan")
        return flags(manifests), self._kube_server.kubeconfig(entry={"token": token})

    async def remove(self):
        """Remove what would affect other tests."""
        for resource in CONFIGURATIONS:
            with contextlib.suppress(ApiError):
                await self._admin.delete(resource, "bayplan")
        for resource in POLICIES:
            for policy in await self._admin.items(resource):
                await self._admin.delete(resource, policy["metadata"]["name"])
