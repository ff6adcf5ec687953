"""`bayplan ui`: the page that shows where everything is, why, and what happens if. It never writes to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bayplan.cli import commands, loading, options, value_types
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from bayplan.controllers.autoscalers import AssumedLoad
    from bayplan.web.running import PageSettings

_SERVING = "Serving"
_STANDARD_INPUT = "-"


@commands.command(
    "ui",
    summary=SUMMARIES["ui"],
    examples=(
        "bayplan ui -f cluster.yaml",
        "bayplan ui --state cluster.json -f app.yaml",
        "bayplan ui --context prod",
        "bayplan ui -f fleet/ --bind-address 127.0.0.1:0",
    ),
    details=(
        "The page shows nodes in their zones, racks and regions with the pods on them, or the clusters of a fleet with "
        "the replicas on them. It explains a workload, and shows what happens if a node, a zone or a cluster is lost, "
        "drained or added, or a manifest is applied. Files and a live cluster are followed. Nothing is written to a "
        "cluster. The page is served on loopback unless --bind-address says otherwise; then it requires a token, which "
        "is part of the printed address. Interrupt to stop."
    ),
    groups=(options.INPUT, options.DECISIONS, options.CONSOLE),
    params=(
        commands.Option(
            "--bind-address",
            metavar="HOST:PORT",
            type=value_types.ListenAddress(),
            default="127.0.0.1:8700",
            show_default=True,
            heading=_SERVING,
            help="Where the page is served; port 0 is any free port.",
        ),
        commands.Option(
            "--allowed-host",
            multiple=True,
            metavar="NAME",
            type=value_types.Name(),
            heading=_SERVING,
            help="A name by which browsers call the server, such as that of a proxy. May be repeated.",
        ),
        commands.Option(
            "--require-token",
            is_flag=True,
            heading=_SERVING,
            help="Require a token on loopback too, where other users of this machine can reach the page.",
        ),
        commands.Option(
            "--tls-cert-file",
            metavar="FILE",
            type=click.Path(),
            heading=_SERVING,
            help="Certificate in PEM to serve HTTPS with.",
        ),
        commands.Option(
            "--tls-private-key-file",
            metavar="FILE",
            type=click.Path(),
            heading=_SERVING,
            help="Private key in PEM of the certificate.",
        ),
        commands.Option(
            "--no-follow",
            is_flag=True,
            heading=_SERVING,
            help="Read the input once, and show no later changes of it.",
        ),
        options.HPA,
    ),
)
def ui(
    *,
    bind_address: str,
    allowed_host: tuple[str, ...],
    require_token: bool,
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
    no_follow: bool,
    hpa: AssumedLoad,
    sources: options.InputOptions,
    decisions: options.DecisionOptions,
    console: Console,
) -> int:
    """Serve the page until interrupted."""
    import asyncio
    import secrets

    from bayplan.web import access
    from bayplan.web.access import AccessRules
    from bayplan.web.running import PageSettings

    host, port = value_types.host_and_port(bind_address)
    if not host:  # for others it means every address, which is too much to be meant by a port alone
        expected = f"expected an address such as 127.0.0.1:8700 or 0.0.0.0:8700, got {bind_address!r}"
        raise click.BadParameter(expected, param_hint="--bind-address")
    tls = _tls(tls_cert_file, tls_private_key_file)
    is_loopback = access.is_loopback(host)
    token = secrets.token_urlsafe(32) if require_token or not is_loopback else ""
    names = frozenset(name.lower() for name in (*allowed_host, *([] if access.is_address(host) else [host])))
    spec = loading.followed_spec(sources, decisions, console, assumed_load=hpa)
    settings = PageSettings(
        spec=spec,
        host=host,
        port=port,
        rules=AccessRules(is_loopback=is_loopback, names=names, token=token),
        tls=tls,
        follows=not no_follow and _STANDARD_INPUT not in (*sources.filename, *sources.state),
    )
    if token and tls is None:
        console.warning("without --tls-cert-file the token and the answers cross the network unencrypted")
    try:
        return asyncio.run(_serve(settings, console))
    except KeyboardInterrupt:
        return commands.EXIT_INTERRUPTED


async def _serve(settings: PageSettings, console: Console) -> int:
    from bayplan.web import running

    async with running.served(settings) as (page, port, ended):
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        scheme = "http" if settings.tls is None else "https"
        fragment = f"#token={settings.rules.token}" if settings.rules.token else ""
        console.answer(f"{scheme}://{host}:{port}/{fragment}\n")
        console.note(f"serving {page.title}; interrupt to stop")
        await ended
    return commands.EXIT_YES


def _tls(certificate: str | None, key: str | None) -> Callable[[], ssl.SSLContext | None] | None:
    """The TLS context for every connection; raises a usage error or InputError for files that cannot be used."""
    if bool(certificate) != bool(key):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")
    if not certificate or not key:
        return None
    import ssl

    from bayplan.errors import Fault, InputError

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:  # ssl.SSLError is one
        raise InputError(Fault(f"cannot be used with its key: {error.strerror or error}", file=certificate)) from None
    return lambda: context
