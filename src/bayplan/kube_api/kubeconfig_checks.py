"""What in a chosen cluster or user of a kubeconfig contradicts itself or is missing: all of it, each with its place."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.errors import Fault
from bayplan.kube_api import exec_plugin
from bayplan.kube_api.access import ConnectOptions
from bayplan.kube_api.kubeconfig_files import Entry, Exec, KubeconfigCluster, KubeconfigUser


def of_cluster(cluster: Entry[KubeconfigCluster], options: ConnectOptions) -> Iterator[Fault]:
    content = cluster.content
    if not (options.server or content.server):
        yield cluster.fault("server", "expected an address such as https://host:6443, got nothing")
    if content.certificate_authority and content.certificate_authority_data:
        yield cluster.fault("certificate-authority", "certificate-authority-data is given too; only one can be")
    if content.insecure_skip_tls_verify and (content.certificate_authority or content.certificate_authority_data):
        yield cluster.fault("insecure-skip-tls-verify", "cannot be set together with a certificate authority")


def of_user(user: Entry[KubeconfigUser], options: ConnectOptions) -> Iterator[Fault]:
    content = user.content
    if options.token:
        return  # nothing else of the user is used
    for field, file, data in (
        ("client-certificate", content.client_certificate, content.client_certificate_data),
        ("client-key", content.client_key, content.client_key_data),
    ):
        if file and data:
            yield user.fault(field, f"{field}-data is given too; only one can be")
    has_certificate = content.client_certificate or content.client_certificate_data
    if has_certificate and not (content.client_key or content.client_key_data):
        yield user.fault("client-key", "expected the key of the client certificate, got nothing")
    if (content.token or content.token_file) and (content.username or content.password):
        yield user.fault("username", "a token is given too; only one can be")
    if (content.as_uid or content.as_groups or content.as_user_extra) and not content.as_:
        yield user.fault(
            "as", "expected a user to act as, since as-uid, as-groups or as-user-extra is set; got nothing"
        )
    if content.auth_provider is not None:
        name = content.auth_provider.name or "without a name"
        yield user.fault(
            "auth-provider",
            f"the auth provider {name} is no longer part of Kubernetes; use an exec plugin "
            "(kubelogin for oidc and azure, gke-gcloud-auth-plugin for gcp)",
        )
    if content.exec is not None:
        yield from _of_plugin(user, content.exec)


def _of_plugin(user: Entry[KubeconfigUser], plugin: Exec) -> Iterator[Fault]:
    if not plugin.command:
        yield user.fault("exec.command", "expected the program to run, got nothing")
    if plugin.api_version not in exec_plugin.VERSIONS:
        wanted = " or ".join(exec_plugin.VERSIONS)
        yield user.fault("exec.apiVersion", f"expected {wanted}, got {plugin.api_version or 'nothing'}")
    optional = plugin.api_version == exec_plugin.VERSIONS[1] and not plugin.interactive_mode
    if plugin.interactive_mode not in exec_plugin.INTERACTIVE_MODES and not optional:
        wanted = ", ".join(exec_plugin.INTERACTIVE_MODES)
        yield user.fault(
            "exec.interactiveMode", f"expected one of {wanted}, got {plugin.interactive_mode or 'nothing'}"
        )
    for place, variable in enumerate(plugin.env or ()):
        if not variable.name:
            yield user.fault(f"exec.env[{place}].name", "expected a name, got nothing")
