"""`bayplan completion`, and the completion of `kubectl bayplan`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from bayplan.cli import commands, options, outcomes
from bayplan.cli.console import Console

SHELLS = ("bash", "zsh", "fish", "powershell")
VARIABLE = f"_{commands.PREFIX}_COMPLETE"
# kubectl's directives, from cobra's completions.go: what the shell may add to the candidates.
_FILES_TOO, _NOTHING_ELSE = ":0", ":4"


@commands.command(
    "completion",
    summary="Print the script that completes our commands in a shell.",
    examples=(
        "source <(bayplan completion bash)",
        "bayplan completion zsh > ~/.zfunc/_bayplan",
        "bayplan completion fish > ~/.config/fish/completions/bayplan.fish",
        "bayplan completion powershell | Out-String | Invoke-Expression",
    ),
    groups=(options.CONSOLE,),
    params=(commands.Argument("shell", type=click.Choice(SHELLS), explained="The shell that you type in."),),
)
def completion(shell: str, console: Console) -> int:
    """Write the script."""
    from click import shell_completion

    made = shell_completion.get_completion_class(shell)
    assert made is not None, f"click completes {shell}"
    root = click.get_current_context().find_root().command
    console.answer(made(root, {}, "bayplan", VARIABLE).source() + "\n")
    return outcomes.YES


def candidates(arguments: Sequence[str]) -> str:
    """Candidates for the last argument, as kubectl wants them: `value<TAB>description` lines, then a directive."""
    from click import shell_completion

    from bayplan.cli import main

    *before, last = arguments or [""]
    found = shell_completion.ShellComplete(main.cli, {}, "bayplan", VARIABLE).get_completions(before, last)
    lines = [f"{item.value}\t{item.help}" if item.help else item.value for item in found if item.type == "plain"]
    directive = _FILES_TOO if any(item.type != "plain" for item in found) else _NOTHING_ELSE
    return "".join(f"{line}\n" for line in [*lines, directive])


def kubectl_complete() -> None:
    """Run as `kubectl_complete-bayplan`, which kubectl calls with the words typed so far."""
    sys.stdout.write(candidates(sys.argv[1:]))
