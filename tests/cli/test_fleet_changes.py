"""`place` of a fleet shows what moves, and its exit code is about the change."""

import json

import pytest
import yaml

from .test_fleet import CLUSTERS, DEPLOYMENT, POLICY

UNREADABLE = {"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
              "metadata": {"name": "broken", "namespace": "web"}, "spec": {"replicas": "many"}}  # fmt: skip


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """A folder to run in, with a state of two scheduled deployments; the large cluster is up."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clusters.yaml").write_text(CLUSTERS.replace(", taints: [{key: down, effect: NoSchedule}]", ""))
    (tmp_path / "policy.yaml").write_text(POLICY)
    for name, replicas in (("api", 2), ("web", 2)):
        (tmp_path / f"{name}.yaml").write_text(DEPLOYMENT % (name, name, replicas))
    return tmp_path


def files(*names):
    return [word for name in names for word in ("-f", name)]


@pytest.fixture
def state(run, fleet):
    """The state after the first placement: what `-o bindings` prints."""
    first = run("place", *files("clusters.yaml", "policy.yaml", "api.yaml", "web.yaml"), "-o", "bindings")
    assert first.exit_code == 0
    (fleet / "bindings.yaml").write_text(first.stdout)
    return ("--state", "clusters.yaml", "--state", "policy.yaml", "--state", "bindings.yaml")


def test_printed_bindings_are_a_state_in_which_nothing_moves(run, fleet, state):
    result = run("place", *state)
    assert (result.stdout, result.exit_code) == ("", 0)
    assert "there is nothing to place" in result.stderr
    printed = yaml.safe_load((fleet / "bindings.yaml").read_text())["items"]
    labels = {one["metadata"]["name"]: json.loads(one["metadata"]["annotations"]["bayplan.io/workload-labels"])
              for one in printed}  # fmt: skip
    assert labels == {"api-deployment": {"app": "api"}, "web-deployment": {"app": "web"}}


def test_a_scaled_deployment_overflows(run, fleet, state):
    (fleet / "more.yaml").write_text(DEPLOYMENT % ("web", "web", 9))
    result = run("place", *state, *files("more.yaml"))
    assert result.stdout.splitlines() == [
        "NAMESPACE  KIND/NAME       POLICY     AFFINITY  WAS    WILL BE                  MESSAGE",
        "web        deployment/web  idc-first  main      idc:2  idc:2, cloud:7 (tier 1)  -",
    ]
    assert result.stderr.splitlines() == ["note: 1 of 1 placed of the change"]
    assert result.exit_code == 0
    found = json.loads(run("place", *state, *files("more.yaml"), "-o", "json").stdout)
    (item,) = found["items"]
    assert item["previous"] == [{"name": "idc", "replicas": 2}]
    assert item["clusters"] == [{"name": "idc", "replicas": 2, "tier": 0}, {"name": "cloud", "replicas": 7, "tier": 1}]


def test_an_edited_policy_shows_what_it_moves(run, fleet, state):
    (fleet / "edit.yaml").write_text(POLICY.replace("clusterNames: [idc]", "clusterNames: [cloud]").replace(
        "peak, clusterNames: [cloud]", "peak, clusterNames: [idc]"))  # fmt: skip
    result = run("place", *state, *files("edit.yaml"))
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert [(row[1], row[4], row[5]) for row in rows] == [
        ("deployment/api", "idc:2", "cloud:2"),
        ("deployment/web", "idc:2", "cloud:2"),
    ]


def test_unchanged_bindings_are_counted_and_shown_on_request(run, fleet, state):
    duplicated = POLICY[: POLICY.index("    replicaScheduling")].replace(
        "\n      overflowAffinities: [{affinityName: peak, clusterNames: [cloud]}]", ""
    )
    (fleet / "policy.yaml").write_text(duplicated)
    again = run("place", *state, "-o", "bindings")
    (fleet / "bindings.yaml").write_text(again.stdout)
    result = run("place", *state)  # Karmada schedules duplicated workloads at every event
    assert result.stdout == ""
    assert result.stderr.splitlines() == ["note: 2 of 2 placed, 2 unchanged"]
    shown = run("place", *state, "--show-unchanged").stdout.splitlines()[1:]
    assert [line.split()[1] for line in shown] == ["deployment/api", "deployment/web"]
    assert run("place", *state, "-o", "name").stdout == ""


def test_only_the_change_decides_the_exit_code(run, fleet, state):
    """What was pending before and does not fit is no fault of the change."""
    (fleet / "huge.yaml").write_text(DEPLOYMENT % ("huge", "huge", 900))
    with_huge = run("place", *state, *files("huge.yaml"), "-o", "bindings")
    assert with_huge.exit_code == 1
    (fleet / "bindings.yaml").write_text(with_huge.stdout)
    (fleet / "new.yaml").write_text(DEPLOYMENT % ("new", "new", 1))
    result = run("place", *state, *files("new.yaml"))
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-2:] == [
        "note: 1 of 1 placed of the change",
        "note: 0 of 1 placed of the other bindings",
    ]
    assert run("place", *state, *files("new.yaml"), "--gate", "all").exit_code == 1
    # A cluster of the change concerns every binding.
    assert run("place", *state, *files("clusters.yaml")).exit_code == 1


def test_a_workload_that_no_policy_selects_is_a_no(run, fleet, state):
    (fleet / "stray.yaml").write_text((DEPLOYMENT % ("stray", "x", 1)).replace("namespace: web", "namespace: other"))
    result = run("place", *state, *files("stray.yaml"))
    assert "no policy selects Deployment other/stray" in result.stderr
    assert result.exit_code == 1
    assert run("place", *state, *files("stray.yaml"), "--allow-unselected").exit_code == 0
    (fleet / "stray.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: other}\n")
    assert run("place", *state, *files("stray.yaml")).exit_code == 0  # not a workload


def test_what_cannot_be_read_of_the_state_is_not_judged(run, fleet, state):
    with (fleet / "bindings.yaml").open("a") as file:
        file.write("---\n" + yaml.safe_dump(UNREADABLE))
    result = run("place", *state, *files("api.yaml"))
    assert "not judged: 1 object; with --strict that is a no" in result.stderr
    assert result.exit_code == 0
    assert run("place", *state, *files("api.yaml"), "--strict").exit_code == 1


@pytest.mark.parametrize("words, message", [
    (("-o", "bindings", "--explain"), "-o bindings has no place for explanations"),
])  # fmt: skip
def test_options_that_exclude_each_other(run, state, words, message):
    result = run("place", *state, *words)
    assert message in result.stderr
    assert result.exit_code == 2


def test_capacity_that_a_plan_uses_is_not_free_for_the_next_one(run, fleet, state):
    """The clusters of the state do not report yet what the bindings of a plan say: idc is full with these two."""
    (fleet / "more.yaml").write_text(DEPLOYMENT % ("more", "more", 3))

    def after(*words):
        items = json.loads(run("place", *state, *words, "-o", "json").stdout)["items"]
        return {one["name"]: {c["name"]: c["replicas"] for c in one["clusters"]} for one in items}

    assert after(*files("more.yaml")) == {"more": {"cloud": 3}}
    planned = run("place", *state, *files("more.yaml"), "-o", "bindings").stdout
    (fleet / "bindings.yaml").write_text(planned)
    written = {one["metadata"]["name"]: one["metadata"]["annotations"] for one in yaml.safe_load(planned)["items"]}
    assert {one["bayplan.io/reported-replicas"] for one in written.values()} == {"{}"}
    (fleet / "six.yaml").write_text(DEPLOYMENT % ("six", "six", 38))
    assert after(*files("six.yaml")) == {"six": {}}  # 37 are free
    # What the clusters report is not assumed again.
    (fleet / "bindings.yaml").write_text(
        planned.replace("reported-replicas: '{}'", 'reported-replicas: \'{"cloud":3,"idc":2}\'')
    )
    assert after(*files("six.yaml")) == {"six": {"idc": 4, "cloud": 34}}


def test_what_is_reported_stays_the_same_from_plan_to_plan(run, fleet, state):
    text = (fleet / "bindings.yaml").read_text().replace("reported-replicas: '{}'", "reported-replicas: '{\"idc\":2}'")
    (fleet / "bindings.yaml").write_text(text)
    (fleet / "nine.yaml").write_text(DEPLOYMENT % ("web", "web", 9))
    for _ in range(2):
        planned = run("place", *state, *files("nine.yaml"), "-o", "bindings").stdout
        items = {one["metadata"]["name"]: one for one in yaml.safe_load(planned)["items"]}
        web = items["web-deployment"]
        assert web["metadata"]["annotations"]["bayplan.io/reported-replicas"] == '{"idc":2}'
        assert {one["name"]: one["replicas"] for one in web["spec"]["clusters"]} == {"idc": 6, "cloud": 3}
        assert "bayplan.io/reported-replicas" not in items["api-deployment"]["metadata"]["annotations"]
        (fleet / "bindings.yaml").write_text(planned)


@pytest.mark.parametrize("text", ["{", "[]", '{"idc": "two"}', '{"idc": -1}'])
def test_a_malformed_report_is_said(text, run, fleet, state):
    bindings = (fleet / "bindings.yaml").read_text().replace("'{}'", f"'{text}'", 1)
    (fleet / "bindings.yaml").write_text(bindings)
    result = run("place", *state, "--strict")
    assert "web/api-deployment: metadata.annotations[bayplan.io/reported-replicas]: " in result.stderr
    assert result.exit_code == 1
