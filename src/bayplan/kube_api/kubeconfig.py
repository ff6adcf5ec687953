"""Resolves kubeconfig files, a context and flags into one way to access one server as one user."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import difflib
import functools
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping

from bayplan.errors import Fault, InputError
from bayplan.kube_api import access, credentials, exec_plugin, transport
from bayplan.kube_api.access import Access, ConnectOptions, Impersonation
from bayplan.kube_api.credentials import Credential, Credentials, RereadCredentials
from bayplan.kube_api.errors import CredentialError, UnknownContextError
from bayplan.kube_api.exec_plugin import ClusterInfo, Plugin, PluginCredentials
from bayplan.kube_api.kubeconfig_files import (
    Entry,
    Exec,
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigContext,
    KubeconfigUser,
)
from bayplan.kube_api.tls import ClientCertificate, Trust

_MAX_CONTEXTS_SHOWN = 8
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_COMMAND_LINE = pathlib.Path("command line")


def default_files(environment: Mapping[str, str] = os.environ, home: pathlib.Path | None = None) -> list[pathlib.Path]:
    """The existing files of `KUBECONFIG`, else `~/.kube/config` if it exists."""
    listed = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if not listed:
        own = (home or pathlib.Path.home()) / ".kube" / "config"
        return [own] if own.exists() else []
    found = [path for path in map(pathlib.Path, dict.fromkeys(listed)) if path.exists()]
    if not found:
        raise InputError(f"KUBECONFIG: no such file: {', '.join(listed)}")
    return found


def access_of(
    config: Kubeconfig,
    context_name: str | None,
    options: ConnectOptions,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
) -> Access:
    """Access by a context of the files; the current context if none is given."""
    context = _context(config, context_name)
    cluster, user = _parts(config, context, options)
    faults = [*_cluster_faults(cluster, options), *_user_faults(user, options)]
    if faults:
        raise InputError(faults)
    server = access.checked_server(options.server or cluster.content.server or "", cluster.place("server"))
    trust = _trust(cluster, options)
    return Access(
        server=server,
        trust=trust,
        credentials=_credentials(user, options, _cluster_info(cluster, server, trust), clock, now),
        impersonation=_impersonation(user.content, options),
        proxy=_proxy(cluster, server),
        compression=not cluster.content.disable_compression,
        namespace=options.namespace or context.content.namespace or access.DEFAULT_NAMESPACE,
        context_name=context.name,
    )


def _context(config: Kubeconfig, name: str | None) -> Entry[KubeconfigContext]:
    chosen = name or config.current_context
    files = ", ".join(map(str, config.files))
    if not chosen:
        raise UnknownContextError(f"{files}: no context is named, and there is no current-context; {_known(config)}")
    if chosen not in config.contexts:
        near = difflib.get_close_matches(chosen, config.contexts, 1)
        advice = f"did you mean {near[0]}?" if near else _known(config)
        raise UnknownContextError(f"{files}: there is no context {chosen}; {advice}")
    return config.contexts[chosen]


def _known(config: Kubeconfig) -> str:
    names = sorted(config.contexts)
    more = f" and {len(names) - _MAX_CONTEXTS_SHOWN} more" if len(names) > _MAX_CONTEXTS_SHOWN else ""
    return f"contexts: {', '.join(names[:_MAX_CONTEXTS_SHOWN])}{more}" if names else "there are no contexts"


def _parts(
    config: Kubeconfig, context: Entry[KubeconfigContext], options: ConnectOptions
) -> tuple[Entry[KubeconfigCluster], Entry[KubeconfigUser]]:
    """The context's cluster and user. With --server and --token the context may lack them."""
    cluster_name, user_name = context.content.cluster or "", context.content.user or ""
    faults = []
    if cluster_name not in config.clusters and not (options.server and not cluster_name):
        faults.append(context.fault("cluster", _missing("cluster", cluster_name)))
    if user_name not in config.users and not (options.token and not user_name):
        faults.append(context.fault("user", _missing("user", user_name)))
    if faults:
        raise InputError(faults)
    return (
        config.clusters.get(cluster_name, Entry("", KubeconfigCluster(), _COMMAND_LINE, "cluster")),
        config.users.get(user_name, Entry("", KubeconfigUser(), _COMMAND_LINE, "user")),
    )


def _missing(what: str, name: str) -> str:
    return f"there is no {what} {name}" if name else f"expected the name of a {what}, got nothing"


def _trust(cluster: Entry[KubeconfigCluster], options: ConnectOptions) -> Trust:
    content = cluster.content
    # tls-server-name is about the server in the kubeconfig, not the one that --server names.
    server_name = "" if options.server else content.tls_server_name or ""
    if options.insecure:
        return Trust(server_name=server_name, insecure=True)
    field = "certificate-authority-data" if content.certificate_authority_data else "certificate-authority"
    data = content.certificate_authority_data
    return Trust(
        authorities=_decoded(cluster, field, data) if data else b"",
        authorities_file=cluster.beside(content.certificate_authority) if content.certificate_authority else "",
        origin=cluster.place(field),
        server_name=server_name,
        insecure=bool(content.insecure_skip_tls_verify),
    )


def _proxy(cluster: Entry[KubeconfigCluster], server: str) -> str:
    if cluster.content.proxy_url:
        return transport.checked_proxy(cluster.content.proxy_url, cluster.place("proxy-url"))
    return transport.proxy_from_environment(server)


def _impersonation(user: KubeconfigUser, options: ConnectOptions) -> Impersonation:
    if options.as_user:
        return Impersonation(options.as_user, options.as_uid, options.as_groups)
    if options.as_uid or options.as_groups:
        raise InputError("--as-uid and --as-group need --as")
    extra = tuple((key, tuple(values)) for key, values in (user.as_user_extra or {}).items())
    return Impersonation(user.as_ or "", user.as_uid or "", tuple(user.as_groups or ()), extra)


def _cluster_info(cluster: Entry[KubeconfigCluster], server: str, trust: Trust) -> ClusterInfo:
    extensions = {extension.name: extension.extension for extension in cluster.content.extensions or ()}
    return ClusterInfo(
        server=server,
        trust=trust,
        proxy=cluster.content.proxy_url or "",
        disable_compression=bool(cluster.content.disable_compression),
        config=extensions.get(_EXEC_EXTENSION),
    )


def _credentials(
    user: Entry[KubeconfigUser],
    options: ConnectOptions,
    info: ClusterInfo,
    clock: Callable[[], float],
    now: Callable[[], dt.datetime],
) -> Credentials:
    """--token overrides everything of the user; other credentials of the user override an exec plugin."""
    content = user.content
    if options.token:
        return RereadCredentials(lambda: Credential(credentials.bearer(options.token, "--token")), clock)
    names = (content.token, content.token_file, content.username, content.password)
    if content.exec is None or any((*names, content.client_certificate, content.client_certificate_data)):
        return RereadCredentials(functools.partial(_read_credential, user), clock)
    return PluginCredentials(_plugin(user, content.exec, info), now)


def _read_credential(user: Entry[KubeconfigUser]) -> Credential:
    content, header = user.content, ""
    if content.token_file:
        try:
            header = credentials.read_token(user.beside(content.token_file), user.place("tokenFile"))
        except CredentialError:
            if not content.token:
                raise
    if content.token and not header:
        header = credentials.bearer(content.token, user.place("token"))
    elif content.username or content.password:
        header = credentials.basic(content.username or "", content.password or "")
    if not (content.client_certificate or content.client_certificate_data):
        return Credential(header)
    certificate = ClientCertificate(
        _pem(user, "client-certificate", content.client_certificate, content.client_certificate_data),
        _pem(user, "client-key", content.client_key, content.client_key_data),
        user.place("client-certificate"),
    )
    return Credential(header, certificate)


def _pem(user: Entry[KubeconfigUser], field: str, file: str | None, data: str | None) -> bytes:
    if data:
        return _decoded(user, f"{field}-data", data)
    return credentials.read_file(user.beside(file or ""), user.place(field))


def _decoded(entry: Entry[KubeconfigCluster] | Entry[KubeconfigUser], field: str, data: str) -> bytes:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InputError(entry.fault(field, "expected valid base64")) from None


def _plugin(user: Entry[KubeconfigUser], plugin: Exec, info: ClusterInfo) -> Plugin:
    command = plugin.command or ""
    return Plugin(
        # A bare name is looked up in PATH; a path is relative to the kubeconfig.
        command=user.beside(command) if os.sep in command else command,
        args=tuple(plugin.args or ()),
        env=tuple((variable.name or "", variable.value or "") for variable in plugin.env or ()),
        api_version=plugin.api_version or "",
        interactive_mode=plugin.interactive_mode or "IfAvailable",
        install_hint=plugin.install_hint or "",
        cluster=info if plugin.provide_cluster_info else None,
        origin=user.place("exec"),
    )


def _cluster_faults(cluster: Entry[KubeconfigCluster], options: ConnectOptions) -> Iterator[Fault]:
    content = cluster.content
    if not (options.server or content.server):
        yield cluster.fault("server", "expected an address such as https://host:6443, got nothing")
    if content.certificate_authority and content.certificate_authority_data:
        yield cluster.fault("certificate-authority", "certificate-authority-data is also set; only one is allowed")
    if content.insecure_skip_tls_verify and (content.certificate_authority or content.certificate_authority_data):
        yield cluster.fault("insecure-skip-tls-verify", "cannot be set together with a certificate authority")


def _user_faults(user: Entry[KubeconfigUser], options: ConnectOptions) -> Iterator[Fault]:
    content = user.content
    if options.token:
        return  # nothing else of the user is used
    for field, file, data in (
        ("client-certificate", content.client_certificate, content.client_certificate_data),
        ("client-key", content.client_key, content.client_key_data),
    ):
        if file and data:
            yield user.fault(field, f"{field}-data is also set; only one is allowed")
    has_certificate = content.client_certificate or content.client_certificate_data
    if has_certificate and not (content.client_key or content.client_key_data):
        yield user.fault("client-key", "expected the key of the client certificate, got nothing")
    if (content.token or content.token_file) and (content.username or content.password):
        yield user.fault("username", "a token is also set; only one is allowed")
    if (content.as_uid or content.as_groups or content.as_user_extra) and not content.as_:
        yield user.fault(
            "as", "expected a user to impersonate, because as-uid, as-groups or as-user-extra is set; got nothing"
        )
    if content.auth_provider is not None:
        name = content.auth_provider.name or "without a name"
        yield user.fault(
            "auth-provider",
            f"the auth provider {name} is no longer part of Kubernetes; use an exec plugin "
            "(kubelogin for oidc and azure, gke-gcloud-auth-plugin for gcp)",
        )
    if content.exec is not None:
        yield from _plugin_faults(user, content.exec)


def _plugin_faults(user: Entry[KubeconfigUser], plugin: Exec) -> Iterator[Fault]:
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
