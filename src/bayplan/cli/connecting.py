"""The options that say which cluster and as whom, each under the name that kubectl gave it."""

from __future__ import annotations

import pathlib
import shlex
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli import value_types
from bayplan.cli.commands import Option, OptionGroup
from bayplan.errors import BayplanError

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection
    from bayplan.kube_api.kubeconfig_files import Kubeconfig

_HEADING = "Cluster"


class Connecting(msgspec.Struct, frozen=True):
    """Which cluster, and as whom."""

    context: str | None
    kubeconfig: str | None
    server: str | None
    token: str | None
    as_user: str | None
    as_group: tuple[str, ...]
    as_uid: str | None
    insecure_skip_tls_verify: bool
    request_timeout: str

    @property
    def is_given(self) -> bool:
        """Whether a live cluster was asked for."""
        return bool(self.context or self.kubeconfig or self.server)

    def open(self, *, qps: float = 0.0, burst: int = 0) -> Connection:
        """The connection, to be entered with `async with`."""
        from bayplan.kube_api import connect
        from bayplan.kube_api.access import ConnectOptions

        options = ConnectOptions(
            server=self.server or "",
            token=self.token or "",
            as_user=self.as_user or "",
            as_uid=self.as_uid or "",
            as_groups=self.as_group,
            insecure=self.insecure_skip_tls_verify,
            request_timeout=value_types.seconds(self.request_timeout),
            qps=qps,
            burst=burst,
        )
        return connect.auto(self.kubeconfig, self.context, options)

    def advice(self) -> str:
        """Which context the user likely means, to be said after `--context`: none is ever read unasked."""
        found = _kubeconfig(None)
        current = found.current_context if found else ""
        if not current:
            return ""
        return f"; the current context of the kubeconfig is read with --context {shlex.quote(current)}"

    def __repr__(self) -> str:
        return f"Connecting(context={self.context!r}, …)"  # the token is nobody's business


def _kubeconfig(path: str | None) -> Kubeconfig | None:
    """The kubeconfig, for those who can do without: None if there is none or it cannot be used."""
    from bayplan.kube_api import kubeconfig, kubeconfig_files

    try:
        return kubeconfig_files.load([pathlib.Path(path)] if path else kubeconfig.default_files())
    except BayplanError:
        return None


def _contexts(ctx: click.Context, _: click.Parameter, typed: str) -> list[str]:
    found = _kubeconfig(ctx.params.get("kubeconfig"))
    return sorted(name for name in found.contexts if name.startswith(typed)) if found else []


CONNECTING = OptionGroup(
    "connecting",
    Connecting,
    (
        Option(
            "--context",
            metavar="NAME",
            shell_complete=_contexts,
            heading=_HEADING,
            help="Context of the kubeconfig.",
        ),
        Option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(),
            heading=_HEADING,
            help="The kubeconfig; else the files of KUBECONFIG, else ~/.kube/config, else the pod's service account.",
        ),
        Option(
            "--server", metavar="URL", heading=_HEADING, help="Address of the API server, instead of the context's."
        ),
        Option(
            "--token",
            metavar="TOKEN",
            secret=True,
            heading=_HEADING,
            help="Bearer token, instead of the context's credentials.",
        ),
        Option("--as", "as_user", metavar="USER", type=value_types.Name(), heading=_HEADING, help="Act as this user."),
        Option(
            "--as-group",
            metavar="GROUP",
            type=value_types.Name(),
            multiple=True,
            heading=_HEADING,
            help="Act as member. May be repeated.",
        ),
        Option("--as-uid", metavar="UID", type=value_types.Name(), heading=_HEADING, help="Act with this uid."),
        Option(
            "--insecure-skip-tls-verify",
            is_flag=True,
            heading=_HEADING,
            help="Do not check the server's certificate. Anybody on the way can then read and change everything.",
        ),
        Option(
            "--request-timeout",
            metavar="TIME",
            type=value_types.Duration(),
            default="30s",
            show_default=True,
            heading=_HEADING,
            help="Give up on a single request after this time; 0 for never.",
        ),
    ),
)
