"""The API server as a pod sees it: address from the environment, token, authorities and namespace from its volume."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable, Mapping

from bayplan.kube_api import access, credentials
from bayplan.kube_api.access import Access
from bayplan.kube_api.credentials import Credential, ReadAgain
from bayplan.kube_api.errors import NoClusterError
from bayplan.kube_api.tls import Trust

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
