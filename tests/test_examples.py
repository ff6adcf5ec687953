"""
The documentation shows real output: every command in it is run, and every name in it exists.

A block marked `console` holds commands after `$ ` and their output, run at the root of the repository; `$ make demo`
stands for the commands of that target. If the output has changed for a good reason, `python tests/test_examples.py`
writes it into the pages.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import click
import msgspec
import pytest

from bayplan.cli import main
from bayplan.library import reason_pages
from bayplan.model.semantics import Semantics
from bayplan.rules import fleet_profile, profiles

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [
    path.relative_to(ROOT)
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINKED = re.compile(r"\[[^\]]*\]\(([^)#:]+)(?:#[^)]*)?\)")
INLINE = re.compile(r"`bayplan ([a-z][-a-z]*)")
PROMPT = "$ "
EXAMPLES = sorted(path.parent.relative_to(ROOT) for path in ROOT.glob("examples/*/README.md"))


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, *languages):
    return [found[2] for found in FENCED.finditer(read(page)) if found[1] in languages]


def commands_of_target(target):
    """The recipe of a target of the Makefile, without the path of the virtual environment."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", read("Makefile"), re.MULTILINE)[1]
    lines = [line.strip().lstrip("@").replace("$(BIN)/", "").replace("$$", "$") for line in recipe.splitlines()]
    return "\n".join(lines)


def run(command, before, home):
    """The output of a command on both streams, and its exit code; `before` is the exit code of the previous command."""
    if command.startswith("make "):
        command = commands_of_target(command.removeprefix("make "))
    home = pathlib.Path(home)
    program = home / "bayplan"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bayplan "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BAYPLAN_", "XDG_"))}
    environment = {
        **kept,
        "HOME": str(home),
        "PATH": f"{home}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUTF8": "1",
        "COLUMNS": "80",
        "SOURCE_DATE_EPOCH": "1790000000",
    }
    script = f"(exit {before})\n{command}"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=60,
    )
    return done.stdout.decode(), done.returncode


def real(block, home):
    """The block with the real output of its commands."""
    shown, code = [], 0
    for line in block.splitlines():
        if line.startswith(PROMPT):
            output, code = run(line.removeprefix(PROMPT), code, home)
            shown.append(f"{line}\n{output}")
    return "".join(shown)


SHOWN = [(page, block) for page in PAGES for block in blocks(page, "console")]


@pytest.mark.parametrize("page, block", SHOWN, ids=[f"{page}: {block.splitlines()[0]}"[:100] for page, block in SHOWN])
def test_commands_print_what_the_page_shows(page, block, tmp_path):
    assert block.startswith(PROMPT)
    assert real(block, tmp_path) == block


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_prompts_are_only_in_console_blocks(page):
    assert not [block for block in blocks(page, "", "sh", "text", "yaml", "json") if block.startswith(PROMPT)]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_and_options_exist(page):
    """Includes commands that are not run because they need a cluster or take long."""
    for block in blocks(page, "sh", "yaml"):
        for words in re.findall(r"(?:^|[|;&]|run:)\s*bayplan ([^|;&>\n]*)", block, re.MULTILINE):
            check(shlex.split(words, comments=True))
    for name in INLINE.findall(read(page)):
        assert name in main.cli.commands


def check(words):
    """Check the names of a command and its options."""
    command = main.cli
    while isinstance(command, click.Group):
        assert words, "a command is missing"
        assert words[0] in command.commands
        command, words = command.commands[words[0]], words[1:]
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    for word in words:
        if word.startswith("-") and word != "-":
            assert word.partition("=")[0] in {*known, "--help"}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_have_a_target(page):
    gone = [link for link in LINKED.findall(read(page)) if not (ROOT / page).parent.joinpath(link).exists()]
    assert not gone


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_each_example_shows_its_command(example):
    assert any(str(example) in block for block in blocks(example / "README.md", "console"))


def test_all_examples_have_a_page():
    assert {path.name for path in ROOT.glob("examples/*") if path.is_dir()} == {path.name for path in EXAMPLES}


@pytest.mark.parametrize("rule", [*profiles.pod_rules(), *fleet_profile.fleet_rules()], ids=lambda rule: rule.id)
def test_each_rule_has_a_page(rule):
    page = read(f"docs/reference/rules/{rule.id}.md")
    assert f"`{rule.name}`" in page
    for reason in reason_pages.all_pages():
        if reason.rule == rule.id:
            assert f"`{reason.id}`" in page
            assert f"`{reason.text}`" in page


@pytest.mark.parametrize("switch", [field.encode_name for field in msgspec.structs.fields(Semantics)])
def test_each_switch_is_a_difference(switch):
    assert f"`{switch}`" in read("docs/differences.md")


def rewrite():
    """Write the real output into every page."""
    with tempfile.TemporaryDirectory() as home:
        for page in PAGES:
            before = read(page)
            after = FENCED.sub(
                lambda found: f"```console\n{real(found[2], home)}```" if found[1] == "console" else found[0], before
            )
            if after != before:
                (ROOT / page).write_text(after, encoding="utf-8")
                sys.stdout.write(f"{page}\n")


if __name__ == "__main__":
    rewrite()
