"""The ways to a cluster: a kubeconfig, the pod that we run in, or whichever of the two there is."""

from __future__ import annotations

import pathlib
import time

import msgspec

from bayplan.kube_api import access, credentials, in_cluster, kubeconfig, kubeconfig_files, proxies
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
    return Connection(_with_options(in_cluster.find(), options), options)


def auto(
    path: str | pathlib.Path | None = None, context: str | None = None, options: ConnectOptions = PLAIN
) -> Connection:
    """Through a kubeconfig if there is one, else as the pod that we run in, else to the server that a flag names."""
    if path or kubeconfig.default_files():
        return from_kubeconfig(path, context, options)
    if context:
        raise UnknownContextError(f"there is no context {context}: there is no kubeconfig at all")
    if in_cluster.is_possible():
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
        proxy=proxies.from_environment(server),
        namespace=options.namespace or found.namespace,
    )
