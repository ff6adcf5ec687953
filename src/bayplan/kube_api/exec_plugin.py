"""
Credentials from exec plugins (`client.authentication.k8s.io`).

The plugin runs when there are no credentials yet, when they have expired, and when the server rejects them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime as dt
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from bayplan.kube_api.credentials import Credential, bearer
from bayplan.kube_api.errors import CredentialError
from bayplan.kube_api.tls import ClientCertificate, Trust

GROUP = "client.authentication.k8s.io"
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
_PLUGIN_TIMEOUT_SECONDS = 60.0  # for a plugin that is not interactive


class ClusterInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the plugin receives if `provideClusterInfo` is set; `config` is the cluster's extension."""

    server: str
    trust: Trust
    proxy: str = ""
    disable_compression: bool = False
    config: Any = None

    def to_json(self) -> dict[str, Any]:
        fields = {
            "tls-server-name": self.trust.server_name,
            "insecure-skip-tls-verify": self.trust.insecure,
            "certificate-authority-data": base64.b64encode(self.trust.pem()).decode(),
            "proxy-url": self.proxy,
            "disable-compression": self.disable_compression,
            "config": self.config,
        }
        return {"server": self.server} | {name: value for name, value in fields.items() if value}


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """The program and how to call it; `origin` is its position in the kubeconfig."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str
    interactive_mode: str
    install_hint: str = ""
    cluster: ClusterInfo | None = None
    origin: str = ""


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: dt.datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _ExecStatus | None = None


_EXEC_CREDENTIAL = msgspec.json.Decoder(_ExecCredential)


class PluginCredentials:
    """The last credential from the plugin, until it expires or is rejected. Concurrent callers share one run."""

    def __init__(self, plugin: Plugin, now: Callable[[], dt.datetime]) -> None:
        self._plugin, self._now = plugin, now
        self._credential: Credential | None = None
        self._expiry: dt.datetime | None = None
        self._running = asyncio.Lock()

    async def current(self) -> Credential:
        async with self._running:
            if self._credential is None or (self._expiry is not None and self._now() >= self._expiry):
                await self._run_plugin()
            assert self._credential is not None
            return self._credential

    async def renew(self, rejected: Credential) -> bool:
        async with self._running:
            if self._credential == rejected:
                await self._run_plugin()
            return self._credential != rejected

    def separate(self) -> PluginCredentials:
        return PluginCredentials(self._plugin, self._now)

    async def _run_plugin(self) -> None:
        plugin = self._plugin
        what = f"{plugin.origin}: {plugin.command}"
        status = _read(await _run(plugin, what), plugin.api_version, what)
        authorization = bearer(status.token, what) if status.token else ""
        certificate = None
        if status.client_certificate_data:
            certificate = ClientCertificate(
                status.client_certificate_data.encode(), status.client_key_data.encode(), what
            )
        self._credential, self._expiry = Credential(authorization, certificate), status.expiration_timestamp


async def _run(plugin: Plugin, what: str) -> bytes:
    """The output of the program. It shares our standard error, where it may also prompt its user."""
    interactive = _is_interactive(plugin, what)
    environment = os.environ | dict(plugin.env) | {"KUBERNETES_EXEC_INFO": _exec_info(plugin, interactive)}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            env=environment,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f" ({plugin.install_hint})" if plugin.install_hint else ""
        raise CredentialError(f"{what}: cannot run the plugin: {error.strerror}{hint}") from None
    try:
        async with asyncio.timeout(None if interactive else _PLUGIN_TIMEOUT_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise CredentialError(f"{what}: returned no credentials within {_PLUGIN_TIMEOUT_SECONDS:.0f} s") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if process.returncode:
        raise CredentialError(f"{what}: failed with exit code {process.returncode}")
    return output


def _is_interactive(plugin: Plugin, what: str) -> bool:
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise CredentialError(f"{what}: interactiveMode is Always and standard input is not a terminal")
    return plugin.interactive_mode != "Never" and terminal


def _exec_info(plugin: Plugin, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster.to_json()
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def _read(output: bytes, api_version: str, what: str) -> _ExecStatus:
    try:
        credential = _EXEC_CREDENTIAL.decode(output)
    except (ValueError, RecursionError):
        # The decoder's message could quote the output, and the output is a secret.
        raise CredentialError(f"{what}: did not write an ExecCredential") from None
    if credential.kind != "ExecCredential" or credential.api_version != api_version:
        raise CredentialError(
            f"{what}: expected an ExecCredential of {api_version}, got {credential.kind or 'no kind'} of "
            f"{credential.api_version or 'no apiVersion'}"
        )
    status = credential.status
    if status is None or not (status.token or status.client_certificate_data or status.client_key_data):
        raise CredentialError(f"{what}: returned neither a token nor a client certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise CredentialError(f"{what}: returned only one of certificate and key")
    return status
