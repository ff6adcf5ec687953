"""The ways to a cluster: a kubeconfig, the pod that we run in, or whichever of the two there is."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable, Mapping

import msgspec

from bayplan.kube_api import access, credentials, kubeconfig, kubeconfig_files, transport
from bayplan.kube_api.access import Access, ConnectOptions, Impersonation
from bayplan.kube_api.connection import Connection
from bayplan.kube_api.credentials import Credential, ReadAgain
from bayplan.kube_api.errors import NoClusterError, UnknownContextError
from bayplan.kube_api.tls import Trust

PLAIN = ConnectOptions()


def from_kubeconfig(
    path: str | pathlib.Path | None = None, context: str | None = None, options: ConnectOptions = PLAIN
) -> Connection:
    """Through the file at `path`, else the files that `KUBECONFIG` names, else `~/.kube/config`."""
    files = [pathlib.Path(path)] if path else kubeconfig.default_files()
    if not files:
        raise NoClusterError("there is no kubeconfig: KUBECONFIG is not set and ~/.kube/config does not exist")
    return Connection(kubeconfig.find(kubeconfig_files.load(files), context, options), options)


def from_cluster(options: ConnectOptions = PLAIN) -> Connection:
    """As the service account of the pod that we run in."""
    return Connection(_with_options(find(), options), options)


def auto(
    path: str | pathlib.Path | None = None, context: str | None = None, options: ConnectOptions = PLAIN
) -> Connection:
    """Through a kubeconfig if there is one, else as the pod that we run in, else to the server that a flag names."""
    if path or kubeconfig.default_files():
        return from_kubeconfig(path, context, options)
    if context:
        raise UnknownContextError(f"there is no context {context}: there is no kubeconfig at all")
    if is_possible():
        return from_cluster(options)
    if options.server:
        nowhere = Access(server="", credentials=ReadAgain(Credential, time.monotonic), trust=Trust())
        return Connection(_with_options(nowhere, options), options)
    raise NoClusterError(
        "no cluster: there is no kubeconfig (KUBECONFIG is not set, ~/.kube/config does not exist) and this is no pod"
    )


def _with_options(found: Access, options: ConnectOptions) -> Access:
    """What flags change about an access that no kubeconfig describes."""
    server = access.checked_server(options.server, "--server") if options.server else found.server
    token = options.token
    return msgspec.structs.replace(
        found,
        server=server,
        credentials=ReadAgain(lambda: Credential(credentials.bearer(token, "--token")), time.monotonic)
        if token
        else found.credentials,
        trust=Trust(insecure=True) if options.insecure else found.trust,
        impersonation=Impersonation(options.as_user, options.as_uid, options.as_groups),
        proxy=transport.from_environment(server),
        namespace=options.namespace or found.namespace,
    )


# RF merged from kube_api.in_cluster: The API server as a pod sees it: address from the environment, token,
# authorities and namespace from its volume.

VOLUME = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HOST, _PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"


def is_possible(environment: Mapping[str, str] = os.environ, volume: pathlib.Path = VOLUME) -> bool:
    """Whether we run in a pod with a service account."""
    return bool(environment.get(_HOST) and environment.get(_PORT)) and (volume / "token").is_file()


def find(
    environment: Mapping[str, str] = os.environ,
    volume: pathlib.Path = VOLUME,
    clock: Callable[[], float] = time.monotonic,
) -> Access:
    """Access as the pod's service account."""
    if not is_possible(environment, volume):
        raise NoClusterError(
            f"this is not a pod with a service account: {_HOST}, {_PORT} and {volume / 'token'} are not all there"
        )
    host, port = environment[_HOST], environment[_PORT]
    token, authorities, namespace = volume / "token", volume / "ca.crt", volume / "namespace"
    own = environment.get("POD_NAMESPACE") or (namespace.read_text().strip() if namespace.is_file() else "")
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        credentials=ReadAgain(lambda: Credential(credentials.read_token(str(token), "service account")), clock),
        trust=Trust(authorities_file=str(authorities) if authorities.is_file() else "", origin="service account"),
        namespace=own or access.DEFAULT_NAMESPACE,
    )
