"""A few hundred new questions: Bayplan answers as the real schedulers, of every version whose program is built here."""

import pathlib
import re

import pytest

from agreeing import __main__ as agreeing
from agreeing import fields
from live import kube_binaries, oracles
from live.conftest import skip_or_fail

QUESTIONS = 300
RUNS = [(kind, version) for kind in ("pods", "preemption", "admission") for version in kube_binaries.RELEASES]
PLUGINS = pathlib.PurePath("pkg", "scheduler", "framework", "plugins")


def built(kind, version):
    """Skip, and name what is left out, where the program would have to be built first; 1.36 is always built."""
    if kube_binaries.RELEASES[version] != kube_binaries.KUBE_VERSION and not oracles.is_built(kind, version):
        pytest.skip(
            f"left out: what answers {kind} for {kube_binaries.RELEASES[version]} is not built (make agree VERSION={version})"
        )
    try:
        oracles.program(kind, version)
    except kube_binaries.UnavailableError as reason:
        skip_or_fail(str(reason))


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind, version", [*RUNS, ("fleet", "1.36")])
def test_new_questions_are_answered_as_by_the_real_scheduler(kind, version):
    built(kind, version)
    result = agreeing.ask(kind, version, "live", QUESTIONS)
    assert result.counts["questions"] == QUESTIONS
    assert result.counts["placed"] > 20
    assert {text: [one.question["name"] for one in found] for text, found in result.differences.items()} == {}


@pytest.mark.live
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", kube_binaries.RELEASES)
def test_plugins_read_no_field_that_is_not_listed(version):
    """Every `Spec.X` and `Status.X` in the plugins' source is in the list of fields, or left out with a reason."""
    built("pods", version)
    source = kube_binaries.source_of("k8s.io/kubernetes", version) / PLUGINS
    listed = {
        name.lower() for paths in fields.READ.values() for path in paths for name in re.split(r"[^A-Za-z]+", path)
    }
    listed |= {path.rpartition(".")[2].lower() for path in fields.LEFT_OUT}
    for file in sorted(source.rglob("*.go")):
        if file.name.endswith("_test.go") or file.parent.name in fields.OTHER_PLUGINS:
            continue
        for name in re.findall(r"\.(?:Spec|Status)\.([A-Z]\w+)", file.read_text(encoding="utf-8")):
            assert name.lower() in listed, f"{file.name} reads {name}"
