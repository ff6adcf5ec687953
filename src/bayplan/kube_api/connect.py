"""Opens a connection from a kubeconfig, from the service account of the pod it runs in, or from either of them."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable, Mapping

import msgspec

from bayplan.kube_api import access, credentials, kubeconfig, kubeconfig_files, transport
from bayplan.kube_api.access import Access, ConnectOptions, Impersonation
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.credentials import Credential, RereadCredentials
from bayplan.kube_api.errors import NoClusterError, UnknownContextError
from bayplan.kube_api.tls import Trust

NO_OPTIONS = ConnectOptions()


def from_kubeconfig(
    path: str | pathlib.Path | None = None, context: str | None = None, options: ConnectOptions = NO_OPTIONS
) -> Connection:
    """Use the file at `path`, else the files named by `KUBECONFIG`, else `~/.kube/config`."""
    files = [pathlib.Path(path)] if path else kubeconfig.default_files()
    if not files:
        raise NoClusterError("there is no kubeconfig: KUBECONFIG is not set and ~/.kube/config does not exist")
    return Connection(kubeconfig.access_of(kubeconfig_files.load(files), context, options), options)


def from_cluster(options: ConnectOptions = NO_OPTIONS) -> Connection:
    """Use the service account of the pod that this process runs in."""
    return Connection(_with_options(in_cluster_access(), options), options)


def auto(
    path: str | pathlib.Path | None = None, context: str | None = None, options: ConnectOptions = NO_OPTIONS
) -> Connection:
    """Use a kubeconfig if one exists, else the pod's service account, else the server given by a flag."""
    if path or kubeconfig.default_files():
        return from_kubeconfig(path, context, options)
    if context:
        raise UnknownContextError(f"there is no context {context}: no kubeconfig was found")
    if runs_in_pod():
        return from_cluster(options)
    if options.server:
        anonymous = Access(server="", credentials=RereadCredentials(Credential, time.monotonic), trust=Trust())
        return Connection(_with_options(anonymous, options), options)
    raise NoClusterError(
        "no cluster: no kubeconfig was found (KUBECONFIG is not set, ~/.kube/config does not exist), and this process "
        "does not run in a pod"
    )


def _with_options(found: Access, options: ConnectOptions) -> Access:
    """Apply flags to an access that does not come from a kubeconfig."""
    server = access.checked_server(options.server, "--server") if options.server else found.server
    token = options.token
    return msgspec.structs.replace(
        found,
        server=server,
        credentials=RereadCredentials(lambda: Credential(credentials.bearer(token, "--token")), time.monotonic)
        if token
        else found.credentials,
        trust=Trust(insecure=True) if options.insecure else found.trust,
        impersonation=Impersonation(options.as_user, options.as_uid, options.as_groups),
        proxy=transport.proxy_from_environment(server),
        namespace=options.namespace or found.namespace,
    )


VOLUME = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def runs_in_pod(environment: Mapping[str, str] = os.environ, volume: pathlib.Path = VOLUME) -> bool:
    """Whether this process runs in a pod with a service account."""
    return bool(environment.get(_HOST) and environment.get(_PORT)) and (volume / "token").is_file()


def in_cluster_access(
    environment: Mapping[str, str] = os.environ,
    volume: pathlib.Path = VOLUME,
    clock: Callable[[], float] = time.monotonic,
) -> Access:
    """Access as the pod's service account: address from the environment, the rest from the mounted volume."""
    if not runs_in_pod(environment, volume):
        raise NoClusterError(
            f"not in a pod with a service account: {_HOST}, {_PORT} and {volume / 'token'} must all be present"
        )
    host, port = environment[_HOST], environment[_PORT]
    token, authorities, namespace = volume / "token", volume / "ca.crt", volume / "namespace"
    own = environment.get("POD_NAMESPACE") or (namespace.read_text().strip() if namespace.is_file() else "")
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        credentials=RereadCredentials(lambda: Credential(credentials.read_token(str(token), "service account")), clock),
        trust=Trust(authorities_file=str(authorities) if authorities.is_file() else "", origin="service account"),
        namespace=own or access.DEFAULT_NAMESPACE,
    )
