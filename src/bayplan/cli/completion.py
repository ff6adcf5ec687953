"""`bayplan completion`, and the completion of `kubectl bayplan`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from bayplan.cli import commands, options
from bayplan.cli.command_table import SUMMARIES
from bayplan.cli.console import Console

SHELLS = ("bash", "zsh", "fish", "powershell")
VARIABLE = f"_{commands.PREFIX}_COMPLETE"
# Directives of cobra's completions.go, which kubectl uses: what the shell adds to the candidates.
_DIRECTIVE_DEFAULT, _DIRECTIVE_NO_FILES = ":0", ":4"


@commands.command(
    "completion",
    summary=SUMMARIES["completion"],
    examples=(
        "source <(bayplan completion bash)",
        "bayplan completion zsh > ~/.zfunc/_bayplan",
        "bayplan completion fish > ~/.config/fish/completions/bayplan.fish",
        "bayplan completion powershell | Out-String | Invoke-Expression",
    ),
    groups=(options.CONSOLE,),
    params=(commands.Argument("shell", type=click.Choice(SHELLS), explained="The shell to complete commands in."),),
)
def completion(shell: str, console: Console) -> int:
    """Write the script."""
    from click import shell_completion

    completion_class = shell_completion.get_completion_class(shell)
    assert completion_class is not None, f"click completes {shell}"
    root = click.get_current_context().find_root().command
    console.answer(completion_class(root, {}, "bayplan", VARIABLE).source() + "\n")
    return commands.EXIT_YES


def candidates(arguments: Sequence[str], program: str = "bayplan") -> str:
    """Candidates for the last argument in kubectl's format: `value<TAB>description` lines, then a directive."""
    from click import shell_completion

    from bayplan.cli import main

    *before, last = arguments or [""]
    found = shell_completion.ShellComplete(main.cli, {}, program, VARIABLE).get_completions(before, last)
    lines = [f"{item.value}\t{item.help}" if item.help else item.value for item in found if item.type == "plain"]
    directive = _DIRECTIVE_DEFAULT if any(item.type != "plain" for item in found) else _DIRECTIVE_NO_FILES
    return "".join(f"{line}\n" for line in [*lines, directive])


def kubectl_complete() -> None:
    """Run as `kubectl_complete-bayplan`, which kubectl calls with the words typed so far."""
    sys.stdout.write(candidates(sys.argv[1:], "kubectl bayplan"))
