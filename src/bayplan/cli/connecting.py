"""The options that say which cluster and as whom, each under the name that kubectl gave it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import msgspec

from bayplan.cli.commands import Option, OptionGroup

if TYPE_CHECKING:
    from bayplan.kube_api.connection import Connection

_HEADING = "Cluster"
_UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0}


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
            request_timeout=seconds(self.request_timeout),
            qps=qps,
            burst=burst,
        )
        return connect.auto(self.kubeconfig, self.context, options)

    def __repr__(self) -> str:
        return f"Connecting(context={self.context!r}, …)"  # the token is nobody's business


def seconds(text: str) -> float:
    """A duration as kubectl writes it: 30, 30s, 2m, 500ms."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text.strip())
    if found is None:
        raise click.UsageError(f"expected a duration such as 30s, 500ms or 2m, got {text!r}")
    return float(found[1]) * _UNITS[found[2]]


CONNECTING = OptionGroup(
    "connecting",
    Connecting,
    (
        Option("--context", metavar="NAME", heading=_HEADING, help="Context of the kubeconfig."),
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
            "--token", metavar="TOKEN", heading=_HEADING, help="Bearer token, instead of the context's credentials."
        ),
        Option("--as", "as_user", metavar="USER", heading=_HEADING, help="Act as this user."),
        Option("--as-group", metavar="GROUP", multiple=True, heading=_HEADING, help="Act as member. May be repeated."),
        Option("--as-uid", metavar="UID", heading=_HEADING, help="Act with this uid."),
        Option(
            "--insecure-skip-tls-verify",
            is_flag=True,
            heading=_HEADING,
            help="Do not check the server's certificate. Anybody on the way can then read and change everything.",
        ),
        Option(
            "--request-timeout",
            metavar="TIME",
            default="30s",
            show_default=True,
            heading=_HEADING,
            help="Give up on a single request after this time; 0 for never.",
        ),
    ),
)
