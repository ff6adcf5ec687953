"""The program `bayplan`: its commands, each imported when it is needed, and the exit code of every run."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

import bayplan
from bayplan.cli import commands, console
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import ClosedPipeError, Console
from bayplan.errors import BayplanError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SUMMARY = "Bayplan is an affinity scheduler for Kubernetes and Karmada that explains its decisions."
EPILOG = (
    "Every option can also be set by an environment variable (BAYPLAN_OUTPUT for all commands, BAYPLAN_PLACE_OUTPUT "
    "for one) and in the configuration file. Exit codes: 0 the answer is yes, 1 the answer is no, 2 bad input or "
    "usage, 3 no access or the server failed."
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


class LazyCommands(Mapping[str, click.Command]):
    """
    The commands by name, each imported when it is looked up.

    The command `explain-rule` is `explain_rule` of the module `explain_rule`.
    """

    def __getitem__(self, name: str) -> click.Command:
        if name not in SUMMARIES:
            raise KeyError(name)
        own_name = name.replace("-", "_")
        module = importlib.import_module(f"bayplan.cli.{own_name}")
        command: click.Command = getattr(module, own_name)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


class Bayplan(click.Group):
    """The group of all commands. In standalone mode it ends the process with an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command that the arguments name. An exception that is not ours is a bug and passes through."""
        var = complete_var or f"_{commands.PREFIX}_COMPLETE"
        given = list(sys.argv[1:] if args is None else args)
        if given and given[0].startswith("-"):
            given = _with_options_after_the_command(given)
        if not standalone_mode:
            return super().main(given, prog_name, var, standalone_mode=False, **extra)
        try:
            code = super().main(given, prog_name, var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except click.Abort:
            code = commands.EXIT_INTERRUPTED
        except click.ClickException as error:
            error.show()
            code = commands.EXIT_BAD_INPUT
        except BayplanError as error:
            Console().error(error)
            code = commands.exit_code_of_error(error)
        except ClosedPipeError:
            code = commands.EXIT_BROKEN_PIPE
        return sys.exit(code)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of a run, or of the completion of what is typed so far."""
        if extra.get("resilient_parsing") and args and args[0].startswith("-"):
            args = _with_options_after_the_command([*_command_of_open_option(args), *args])
        return super().make_context(info_name, args, parent, **extra)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Summary, then examples."""
        super().format_help_text(ctx, formatter)
        commands.format_examples(EXAMPLES, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The summaries of the table, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUMMARIES[name]) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands with the summaries of the table, then options."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=SUMMARIES[name]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


cli: Bayplan = click.version_option(bayplan.__version__, message="bayplan %(version)s")(
    Bayplan("bayplan", help=SUMMARY, epilog=EPILOG, context_settings=SETTINGS)
)
cli.commands = LazyCommands()  # type: ignore[assignment]  # click reads it only


def _with_options_after_the_command(args: list[str]) -> list[str]:
    """
    The arguments with what is before the command moved behind it, if the command has these options.

    So `kubectl bayplan --context test place` is `kubectl bayplan place --context test`.
    """
    for position, word in enumerate(args):
        command = cli.commands.get(word)
        if command is not None and not isinstance(command, click.Group) and _are_options(args[:position], command):
            return [word, *args[:position], *args[position + 1 :]]
    return args


def _command_of_open_option(args: Sequence[str]) -> list[str]:
    """A command by which the value of the last option is completed, if that is what is typed before any command."""
    for name in ("place", "explain", *SUMMARIES):
        command = cli.commands[name]
        if not isinstance(command, click.Group) and _are_options([*args, ""], command):
            return [] if _are_options(args, command) else [name]
    return []


def _are_options(words: Sequence[str], command: click.Command) -> bool:
    """Whether the words are options of the command with their values, and nothing else."""
    given = [param for param in command.params if isinstance(param, click.Option)]
    takes_value = {name: not (one.is_flag or one.count) for one in given for name in (*one.opts, *one.secondary_opts)}
    words = list(words)
    while words:
        word = words.pop(0)
        name, equals, _ = word.partition("=")
        if not word.startswith("--") and len(word) > 2:  # -fpath, -R and others in one word
            name, equals = word[:2], word[2:]
        if name not in takes_value:
            return False
        if takes_value[name] and not equals:
            if not words:
                return False
            words.pop(0)
    return True


def main() -> None:
    """Run the program."""
    # No command uses BLAS. Without this, NumPy starts a thread for each core when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    console.install_streams()
    try:
        cli.main(prog_name=program_name(sys.argv[0]))
    except Exception:  # noqa: BLE001
        commands.report_bug()
        sys.exit(commands.EXIT_BUG)


def program_name(path: str) -> str:
    """The name for help and examples: a kubectl plugin is called as `kubectl bayplan`, without the dash."""
    name = os.path.basename(path)  # noqa: PTH119 - pathlib is slow to import
    return "kubectl bayplan" if name.startswith("kubectl") else "bayplan"
