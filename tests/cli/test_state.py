"""`--state` is what runs, `-f` is what is about to be applied on it."""

import json

import pytest

MISSPELT = """\
apiVersion: v1
kind: Pod
metadata: {name: foreign, namespace: other, annotations: {bayplan.io/affinity: "podAfinity: {}"}}
spec: {nodeName: a1, containers: [{name: c, image: web}]}
"""
ANNOTATION = "metadata.annotations[bayplan.io/affinity].podAfinity"


@pytest.fixture
def foreign(scene):
    (scene / "foreign.yaml").write_text(MISSPELT)
    return scene


@pytest.mark.parametrize("words", [
    ("place", "-f", "db.yaml"),
    ("explain", "pod/db-0", "-f", "db.yaml"),
    ("explain", "pod/web-1"),
    ("violations",),
    ("rebalance",),
    ("quota",),
    ("audit", "--exit-zero"),
    ("snapshot",),
])  # fmt: skip
def test_one_pod_with_a_misspelt_annotation_stops_no_command(run, foreign, words):
    result = run(*words, "--state", "nodes.yaml", "--state", "foreign.yaml")
    assert result.exit_code == 0, result.stderr
    if words[0] not in ("audit", "snapshot"):
        assert f"note: Pod other/foreign would not be placed again: {ANNOTATION}" in result.stderr


def test_the_same_pod_among_manifests_is_a_fault(run, foreign):
    result = run("place", "--state", "nodes.yaml", "-f", "foreign.yaml")
    assert (result.exit_code, ANNOTATION in result.stderr) == (2, True)


def test_the_misspelt_pod_itself_is_not_placed(run, foreign):
    (foreign / "foreign.yaml").write_text(MISSPELT.replace("nodeName: a1, ", ""))
    result = run("place", "--state", "nodes.yaml", "--state", "foreign.yaml", "-o", "json")
    (item,) = json.loads(result.stdout)["items"]
    assert (item["name"], item["target"], ANNOTATION in item["message"]) == ("foreign", "", True)


def test_what_is_replaced_is_counted(run, scene):
    result = run("place", "--state", "nodes.yaml", "--state", "db.yaml", "-f", "db.yaml")
    assert "note: 1 object of the state is replaced\n" in result.stderr
    assert result.exit_code == 0


def test_the_state_can_come_from_standard_input(run, scene):
    result = run("place", "--state", "-", "-f", "db.yaml", given=(scene / "nodes.yaml").read_text())
    assert (result.exit_code, "db-0" in result.stdout) == (0, True)


@pytest.mark.parametrize("words, message", [
    (("--state", "a.yaml", "--context", "prod"), "give what runs either with --state or with --context, not both"),
    (("--state", "-", "-f", "-"), "standard input can be read only once: give - to one of -f and --state"),
])  # fmt: skip
def test_options_that_exclude_each_other(run, words, message):
    result = run("place", *words)
    assert (result.exit_code, message in result.stderr) == (2, True)


def test_a_duplicate_under_f_alone_advises_a_state(run, scene):
    (scene / "again.yaml").write_text((scene / "db.yaml").read_text())
    result = run("place", "-f", "nodes.yaml", "-f", "db.yaml", "-f", "again.yaml")
    assert (result.exit_code, "give what runs with --state instead of -f" in result.stderr) == (2, True)


@pytest.mark.parametrize("words, exit_code, notes", [
    ((), 0, ["1 of 1 placed of the change", "0 of 1 placed of what was pending before"]),
    (("--gate=all",), 1, ["1 of 2 placed"]),
])  # fmt: skip
def test_the_change_decides_the_exit_code(run, scene, words, exit_code, notes):
    result = run("place", "--state", "nodes.yaml", "--state", "web.yaml", "-f", "db.yaml", *words)
    assert result.exit_code == exit_code
    assert [f"note: {note}" for note in notes] == result.stderr.splitlines()


def test_an_unschedulable_change_exits_with_1(run, scene):
    result = run("place", "--state", "nodes.yaml", "--state", "db.yaml", "-f", "web.yaml")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == "note: 0 of 1 placed of the change"


def test_without_a_change_everything_pending_decides(run, scene):
    assert run("place", "--state", ".").exit_code == 1


DEPLOYED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: big, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: big}}
  template:
    metadata: {labels: {app: big}}
    spec: {containers: [{name: c, image: big, resources: {requests: {cpu: "64"}}}]}
"""


def test_pods_made_for_an_object_of_the_change_are_of_the_change(run, scene):
    (scene / "big.yaml").write_text(DEPLOYED)
    result = run("place", "--state", "nodes.yaml", "-f", "big.yaml")
    assert result.exit_code == 1
    assert "note: 0 of 1 placed of the change\n" in result.stderr
    assert run("place", "--state", "nodes.yaml", "--state", "big.yaml", "-f", "db.yaml").exit_code == 0


@pytest.mark.parametrize("words, exit_code", [((), 0), (("--strict",), 1), (("--strict", "--gate=all"), 1)])
def test_a_state_that_is_read_in_part_fails_only_if_strict(run, scene, words, exit_code):
    (scene / "broken.yaml").write_text("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: [a1]}}")
    result = run("place", "--state", "nodes.yaml", "--state", "broken.yaml", "-f", "db.yaml", *words)
    assert result.exit_code == exit_code
    assert (
        "note: set aside: broken.yaml:1, Pod default/p: spec.nodeName: expected a string, got a list" in result.stderr
    )
