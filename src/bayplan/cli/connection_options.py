"""Options for the connection to a cluster, under kubectl's names."""

from __future__ import annotations

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


class ConnectionOptions(msgspec.Struct, frozen=True):
    """Which cluster to connect to, and as which user."""

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
    def names_cluster(self) -> bool:
        """Whether the options name a live cluster."""
        return bool(self.context or self.kubeconfig or self.server)

    @property
    def is_live(self) -> bool:
        """Whether a live cluster is read."""
        return self.names_cluster

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

    def of_another(self, context: str | None, kubeconfig: str | None) -> ConnectionOptions | None:
        """The options for another cluster, as the user of its context; None if neither names one."""
        if context is None and kubeconfig is None:
            return None
        own = {"server": None, "token": None, "as_user": None, "as_group": (), "as_uid": None}
        return msgspec.structs.replace(self, context=context, kubeconfig=kubeconfig or self.kubeconfig, **own)

    def advice(self) -> str:
        """The end of a message that asks for `--context`: the current context, the default of a kubectl plugin only."""
        found = _kubeconfig(None)
        current = found.current_context if found else ""
        if not current:
            return ""
        import shlex

        return f"; the current context of the kubeconfig is {shlex.quote(current)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(context={self.context!r}, …)"  # without the token


def _kubeconfig(path: str | None) -> Kubeconfig | None:
    """The kubeconfig; None if there is none or it cannot be read."""
    import pathlib

    from bayplan.kube_api import kubeconfig, kubeconfig_files

    try:
        return kubeconfig_files.load([pathlib.Path(path)] if path else kubeconfig.default_files())
    except BayplanError:
        return None


def _contexts(ctx: click.Context, _: click.Parameter, typed: str) -> list[str]:
    found = _kubeconfig(ctx.params.get("kubeconfig"))
    return sorted(name for name in found.contexts if name.startswith(typed)) if found else []


CONNECTION = OptionGroup(
    "cluster",
    ConnectionOptions,
    (
        Option(
            "--context",
            metavar="NAME",
            shell_complete=_contexts,
            heading=_HEADING,
            help="Context of the kubeconfig to use.",
        ),
        Option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(),
            heading=_HEADING,
            help="Path of the kubeconfig. By default the files of KUBECONFIG, then ~/.kube/config, then the service "
            "account of the pod.",
        ),
        Option("--server", metavar="URL", heading=_HEADING, help="Address of the API server. Overrides the context."),
        Option(
            "--token",
            metavar="TOKEN",
            secret=True,
            heading=_HEADING,
            help="Bearer token. Overrides the credentials of the context.",
        ),
        Option(
            "--as", "as_user", metavar="USER", type=value_types.Name(), heading=_HEADING, help="User to impersonate."
        ),
        Option(
            "--as-group",
            metavar="GROUP",
            type=value_types.Name(),
            multiple=True,
            heading=_HEADING,
            help="Group to impersonate. May be repeated.",
        ),
        Option("--as-uid", metavar="UID", type=value_types.Name(), heading=_HEADING, help="UID to impersonate."),
        Option(
            "--insecure-skip-tls-verify",
            is_flag=True,
            heading=_HEADING,
            help="Do not verify the certificate of the server. This makes the connection insecure.",
        ),
        Option(
            "--request-timeout",
            metavar="TIME",
            type=value_types.Duration(),
            default="30s",
            show_default=True,
            heading=_HEADING,
            help="Time to wait for a single request before it fails; 0 for no limit.",
        ),
    ),
)
