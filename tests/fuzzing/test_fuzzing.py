"""A small part of `make fuzz-documents`, and that the fuzzer itself does what it says."""

import click
import pytest

from bayplan.cli import main
from fuzzing import campaign, cases, doors, running, shrinking

SEED, N_CASES = "tests", 800


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_no_command_fails_on_damaged_documents(place):
    for number in range(N_CASES):
        case = cases.case(SEED, number)
        outcome = running.run(case.arguments, case.files, case.input)
        assert outcome.failure == "", f"case {number} of {SEED}: {' '.join(case.arguments)}\n{outcome.detail}"


def test_every_door_is_opened_and_most_seeds_are_valid(place):
    """A fuzzer whose documents are all refused at the first check finds nothing."""
    codes = {}
    for number in range(N_CASES):
        case = cases.case(SEED, number)
        codes.setdefault(case.door, []).append(running.run(case.arguments, case.files, case.input).code)
    assert codes.keys() == doors.BY_NAME.keys()
    every = [code for found in codes.values() for code in found]
    assert sum(code != 2 for code in every) > 0.3 * len(every)


# What reads no document, and options that say where messages go, how servers are reached, or start a program.
NO_DOOR = {
    "completion",
    "explain-rule",
    "run",
    "version",
    "webhook-certificates",
    "config",
    "ui",
}  # the door `page` asks what `ui` is asked
NOT_ASKED = {
    "--context", "--kubeconfig", "--server", "--token", "--as", "--as-group", "--as-uid", "--insecure-skip-tls-verify", "--request-timeout", "--output-file",
    "--quiet", "--no-color", "--help", "--recursive", "--kustomize", "--all-namespaces", "--exit-zero", "--apply", "--yes", "--at-once", "--per-minute", "--timeout",
    "--subject", "--watch",
}  # fmt: skip
# Headings of options that several commands share, and one reader.
SHARED = {"Scheduling", "Scope", "Input", "Output and messages"}


def words(door):
    """Every word that the arguments of a door can have, and the values behind a `=`."""
    for word in door.arguments:
        for one in word if isinstance(word, tuple) else (word,):
            yield from (one,) if isinstance(one, str) else one


@pytest.mark.parametrize("name", sorted(set(main.cli.commands) - NO_DOOR))
def test_every_option_of_a_command_has_a_door(name):
    """Also those that are added later."""
    given = {word.partition("=")[0] for door in doors.DOORS if door.arguments[0] == name for word in words(door)}
    everywhere = {word.partition("=")[0] for door in doors.DOORS for word in words(door)}
    for option in main.cli.commands[name].params:
        spelled = {*option.opts, *option.secondary_opts}
        if spelled & NOT_ASKED or not isinstance(option, click.Option):
            continue
        assert spelled & (everywhere if option.heading in SHARED else given), spelled
        if "--output" in spelled:
            assert {one.rstrip("=") for one in option.type.choices} <= given


def test_a_case_is_the_same_each_time():
    assert all(cases.case(SEED, number).files == cases.case(SEED, number).files for number in range(100, 130))
    assert cases.case(SEED, 1).files != cases.case("other", 1).files


def test_answers_do_not_depend_on_the_hash_seed():
    assert campaign.compare_hash_seeds(SEED, 60) == []


def test_a_failure_is_shrunk_to_what_it_needs(place, monkeypatch):
    def broken(_arguments, files, _stdin=b""):
        return running.Outcome(0, failure="it is there" if b"needle" in files["doc"] else "")

    monkeypatch.setattr(running, "run", broken)
    documents = [{"kind": "Pod", "metadata": {"labels": {"a": "b", "app": "needle"}, "name": "x"}}, {"kind": "Node"}]
    case = cases.Case("place", ["place"], {"doc": b""}, {"doc": (documents, cases.spelling.as_json_lines)}, "")
    assert shrinking.shrunk(case, "it is there") == {"doc": b'{"metadata":{"labels":{"app":"needle"}}}\n'}
    case = cases.Case("place", ["place"], {"doc": b"one\ntwo needle two\nthree\n"}, {}, "")
    assert shrinking.shrunk(case, "it is there") == {"doc": b"needle"}
