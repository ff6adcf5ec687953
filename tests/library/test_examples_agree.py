"""Every example, asked by the command and by the library: one document."""

import json
import pathlib

import pytest
from click.testing import CliRunner

import bayplan
from bayplan.cli import main

ROOT = pathlib.Path(__file__).parents[2]
# Each file or folder of an example that is a cluster or a fleet by itself.
INPUTS = [
    str(path.relative_to(ROOT))
    for path in sorted([*ROOT.glob("examples/*"), *ROOT.glob("examples/*/*.yaml"), *ROOT.glob("examples/*/*.json"), *ROOT.glob("examples/*/*/")])
]  # fmt: skip


@pytest.fixture(autouse=True)
def in_root(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")


def asked(ask):
    """The document of an answer, or what it raises: by line, as the command reports it."""
    try:
        answer = ask()
    except bayplan.InputError as error:
        return [str(fault) for fault in error.faults]
    except bayplan.BayplanError as error:
        return [str(error)]
    return answer.to_dict()


def command(name, *words):
    result = CliRunner().invoke(main.cli, [name, *words, "-o", "json", "--quiet"], prog_name="bayplan")
    if result.stdout:
        return json.loads(result.stdout)
    return [line.removeprefix("error: ") for line in result.stderr.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize("path", INPUTS)
def test_the_library_and_the_commands_agree_on_every_example(path):
    for option, load in (("-f", lambda: bayplan.load(change=path)), ("--state", lambda: bayplan.load(path))):
        for name in ("place", "violations", "rebalance"):
            found = asked(lambda ask=name, load=load: getattr(load(), ask)())
            assert found == command(name, option, path), (name, option)
    assert asked(lambda: bayplan.validate(path)) == command("validate", "-f", path)
    assert asked(lambda: bayplan.Cluster.from_manifests(path).audit()) == command("audit", "-f", path)
