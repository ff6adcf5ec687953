"""What a command imports, counted: a run that needs little starts fast. Never measured in seconds."""

import os
import pathlib
import subprocess
import sys

import pytest

from bayplan.cli import main
from bayplan.cli.command_table import SUMMARIES

ROOT = pathlib.Path(__file__).parents[2]
GENERATOR = ROOT / "benchmarks" / "gen_dump.py"
FOR_SERVERS = {"aiohttp", "asyncio", "cryptography", "prometheus_client", "rich", "socket", "ssl", "bayplan.kube_api"}
FOR_DECISIONS = {"numpy", "yaml", "bayplan.engine", "bayplan.reading", "bayplan.wire"}
FOR_OTHER_ANSWERS = {
    "bayplan.assigning",
    "bayplan.controllers.binding_detector",
    "bayplan.controllers.rollouts",
    "bayplan.explaining.explanation",
    "bayplan.schedule_binding",
    "bayplan.validating.pod_runtime",
    "bayplan.writing.html_report",
    "html",
    "importlib.resources",
    "tempfile",
}
# The modules of Bayplan: more than these is a reason to look at what imports them. Twelve are the library.
MAX_OWN_MODULES_FOR_HELP, MAX_OWN_MODULES_FOR_OPTIONS, MAX_OWN_MODULES_FOR_PLACE = 10, 16, 225

RUN = """
import os, sys
from bayplan.cli import main
try:
    main.cli.main(sys.argv[1:], prog_name="bayplan")
finally:
    os.write(2, "\\n".join(["imported:", *sys.modules]).encode())
"""


@pytest.fixture
def imported(source_folder, tmp_path):
    """Runs a command line in a process of its own: the modules that it imports."""

    def run(*words, **variables):
        environment = {**os.environ, **variables, "PYTHONPATH": str(source_folder), "XDG_CONFIG_HOME": str(tmp_path)}
        command = [sys.executable, "-c", RUN, *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.stdout, done.stderr
        return set(done.stderr.partition("imported:\n")[2].split("\n"))

    return run


def own(modules):
    return sorted(name for name in modules if name.partition(".")[0] == "bayplan")


def commands_in(modules):
    names = {f"bayplan.cli.{name.replace('-', '_')}": name for name in SUMMARIES}
    return {names[module] for module in modules & names.keys()}


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_imports_no_command(words, imported):
    found = (
        imported(*words)
        if words
        else imported(_BAYPLAN_COMPLETE="bash_complete", COMP_WORDS="bayplan ", COMP_CWORD="1")
    )
    assert commands_in(found) == set()
    assert found & (FOR_SERVERS | FOR_DECISIONS | FOR_OTHER_ANSWERS) == set()
    assert len(own(found)) <= MAX_OWN_MODULES_FOR_HELP, own(found)


@pytest.mark.parametrize(
    "words", [["place", "--help"], ["explain-rule", "--help"], ["rebalance", "--help"], ["version"]]
)
def test_the_help_of_a_command_imports_only_that_command(words, imported):
    found = imported(*words)
    assert commands_in(found) == {words[0]}
    assert found & (FOR_SERVERS | FOR_DECISIONS | FOR_OTHER_ANSWERS) == set()
    assert len(own(found)) <= MAX_OWN_MODULES_FOR_OPTIONS, own(found)


@pytest.mark.parametrize("form", ["manifests", "json", "yaml"])
def test_placing_pods_imports_nothing_for_servers_fleets_or_explanations(form, imported, tmp_path):
    path = ROOT / "examples" / "01-first-pod"
    if form != "manifests":
        path = tmp_path / f"dump.{form}"
        words = ["3", "5", "2", *(["yaml"] if form == "yaml" else [])]
        path.write_bytes(subprocess.run([sys.executable, GENERATOR, *words], capture_output=True, check=True).stdout)
    found = imported("place", "-f", path)
    assert commands_in(found) == {"place"}
    assert found & (FOR_SERVERS | FOR_OTHER_ANSWERS) == set()
    assert ("yaml" in found) == (form == "manifests")  # a dump of kubectl is read without PyYAML
    assert len(own(found)) <= MAX_OWN_MODULES_FOR_PLACE, own(found)


def test_an_audit_of_files_imports_nothing_for_servers(imported):
    found = imported("audit", "-f", "examples/12-audit/nodes.yaml")
    assert found & {"aiohttp", "asyncio", "prometheus_client", "bayplan.kube_api"} == set()


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_numpy_starts_no_threads(source_folder):
    code = (
        "import os; from bayplan.cli import main\n"
        "try: main.main()\n"
        "finally: os.write(2, str(len(os.listdir('/proc/self/task'))).encode())"
    )
    environment = {**os.environ, "PYTHONPATH": str(source_folder)}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    command = [sys.executable, "-c", code, "place", "-f", "examples/01-first-pod", "-q"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stderr == "1"


def test_the_table_lists_every_command_with_its_summary():
    files = {path.stem for path in (ROOT / "src" / "bayplan" / "cli").glob("*.py") if 'SUMMARIES["' in path.read_text()}
    assert files == {name.replace("-", "_") for name in SUMMARIES}
    assert {name: command.name for name, command in main.cli.commands.items()} == {name: name for name in SUMMARIES}
    assert {name: command.short_help for name, command in main.cli.commands.items()} == SUMMARIES


def test_an_unknown_command_is_compared_with_the_table(run):
    result = run("plcae")
    assert result.exit_code == 2
    assert "Did you mean 'place'?" in result.stderr
