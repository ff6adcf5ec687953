"""`bayplan` itself: the table of commands, and how every run ends."""

from __future__ import annotations

import pathlib
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

import bayplan
from bayplan.cli import (
    audit,
    bench,
    commands,
    completion,
    config,
    decide,
    explain,
    explain_rule,
    outcomes,
    place,
    quota,
    rebalance,
    replay,
    run,
    snapshot,
    streams,
    validate,
    version,
    violations,
)
from bayplan.cli.console import Console
from bayplan.cli.streams import NobodyReadsError
from bayplan.errors import BayplanError

SUMMARY = "Say where pods go on Kubernetes when neighbours matter, and why."
EPILOG = (
    "Every option is also a variable (BAYPLAN_OUTPUT for all commands, BAYPLAN_PLACE_OUTPUT for one) and a field of "
    "the configuration file. Exit codes: 0 yes, 1 the answer is no, 2 bad input or usage, 3 no access."
)
SETTINGS = {
    "auto_envvar_prefix": commands.PREFIX,
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
}
EXAMPLES = (
    "bayplan place -f cluster.yaml -f app.yaml",
    "bayplan explain pod/web-4 -f cluster.yaml -f app.yaml",
    "bayplan validate -f manifests/ -R",
)


class Bayplan(click.Group):
    """All commands. As a program it ends with an exit code; our own bugs end it with a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that the arguments name."""
        var = complete_var or f"_{commands.PREFIX}_COMPLETE"
        if not standalone_mode:
            return super().main(args, prog_name, var, standalone_mode=False, **extra)
        try:
            code = super().main(args, prog_name, var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.Abort:
            code = outcomes.INTERRUPTED
        except click.ClickException as error:
            code = outcomes.of_click(error)
        except BayplanError as error:
            Console().error(error)
            code = outcomes.of_error(error)
        except NobodyReadsError:
            code = outcomes.BROKEN_PIPE
        return sys.exit(code)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Summary, then examples."""
        super().format_help_text(ctx, formatter)
        commands.format_examples(EXAMPLES, ctx, formatter)


@click.group(cls=Bayplan, help=SUMMARY, epilog=EPILOG, context_settings=SETTINGS)
@click.version_option(bayplan.__version__, message="bayplan %(version)s")
def cli() -> None:
    """Nothing of its own: everything is in the commands."""


for _command in (
    place.place,
    explain.explain,
    validate.validate,
    violations.violations,
    rebalance.rebalance,
    quota.quota,
    audit.audit,
    run.run,
    replay.replay,
    snapshot.snapshot,
    explain_rule.explain_rule,
    decide.decide,
    bench.bench,
    config.config,
    completion.completion,
    version.version,
):
    cli.add_command(_command)


def main() -> None:
    """Run the program."""
    streams.take()
    try:
        cli.main(prog_name=program_name(sys.argv[0]))
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        sys.stderr.write("This is a bug in bayplan. Please report it with the lines above.\n")
        sys.exit(outcomes.BUG)


def program_name(path: str) -> str:
    """How people call us: a kubectl plugin's users never type the dash."""
    return "kubectl bayplan" if pathlib.PurePath(path).name.startswith("kubectl") else "bayplan"
