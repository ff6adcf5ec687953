"""Accepted findings: they stay findings, and decide no exit code until they expire."""

import json
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner
from scenery import judge, nodes, stacked

from bayplan.auditing.acceptance import Acceptance, accept
from bayplan.cli import main

MACHINES = "scs-0214-cp-machines"
NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{node-role.kubernetes.io/control-plane: "", topology.kubernetes.io/zone: z, topology.kubernetes.io/region: r,
    topology.scs.community/host-id: h1}}
"""


def failing():
    given = nodes("cp x/a", "cp x/a", "worker x/b")
    return judge(given, stacked(given))


@pytest.mark.parametrize("one, passed, note", [
    (Acceptance(MACHINES, "one machine until March", "2027-03-31"), True, ""),
    (Acceptance(MACHINES, "one machine", "2027-01-01"), True, ""),  # through that day
    (Acceptance(MACHINES, "one machine", "2026-12-31"), False, "expired on 2026-12-31"),
    (Acceptance(MACHINES, "one machine", "2027-03-31", ("cp-0", "cp-1")), True, ""),
    (Acceptance(MACHINES, "one machine", "2027-03-31", ("cp-0",)), False, "other nodes are concerned too"),
    (Acceptance("cp-hidden", "never needed", "2027-03-31"), False, "nothing to accept"),
])  # fmt: skip
def test_what_an_acceptance_covers(one, passed, note):
    found, notes = accept(failing(), [one], "2027-01-01")
    assert found.passed() == passed
    assert [note in text for text in notes] == ([True] if note else [])
    result = next(result for result in found.results if result.id == MACHINES)
    assert result.verdict == "FAIL"
    assert result.gates  # the standard is not met, whoever accepts that


def test_of_two_acceptances_of_one_finding_the_first_counts():
    several = [Acceptance(MACHINES, "first", "2027-03-31"), Acceptance(MACHINES, "second", "2027-04-30")]
    found, notes = accept(failing(), several, "2027-01-01")
    assert next(result.accepted for result in found.results if result.id == MACHINES) == "first"
    assert notes == [f"the acceptance of {MACHINES} through 2027-04-30 has no effect: another one comes before it"]


def test_warnings_decide_only_on_request():
    given = nodes("cp x/a", "cp x/b", "cp x/c", "worker x/a")
    found = judge(given, stacked(given))
    assert found.passed()
    assert not found.passed(fail_on_warning=True)
    every = [Acceptance(one.id, "small site", "2027-03-31") for one in found.results if one.verdict == "WARN"]
    assert accept(found, every, "2027-01-01")[0].passed(fail_on_warning=True)


@pytest.fixture
def audit(tmp_path):
    (tmp_path / "nodes.yaml").write_text("---\n".join(NODE.format(name=f"n{i}") for i in range(2)))

    def run(accepted, *words, epoch="1792000000"):
        (tmp_path / "accepted.yaml").write_text(accepted)
        given = ["audit", "-f", str(tmp_path / "nodes.yaml"), "--accept", str(tmp_path / "accepted.yaml"), *words]
        return CliRunner().invoke(main.cli, given, env={"SOURCE_DATE_EPOCH": epoch}, prog_name="bayplan")

    return run


ACCEPTED = f"- {{check: {MACHINES}, reason: 'one machine, ticket 7', expires: 2027-03-31}}\n"


def test_every_format_tells_what_was_accepted(audit):
    done = audit(ACCEPTED)
    assert done.exit_code == 0
    assert "FAIL (accepted)" in done.stdout
    assert f"{MACHINES}, through 2027-03-31: one machine, ticket 7" in done.stdout
    report = json.loads(audit(ACCEPTED, "-o", "json").stdout)
    accepted = {check["id"]: check["accepted"] for check in report["checks"] if check["accepted"]}
    assert accepted == {MACHINES: {"reason": "one machine, ticket 7", "expires": "2027-03-31"}}
    assert "### Accepted" in audit(ACCEPTED, "-o", "markdown").stdout
    suite = ET.fromstring(audit(ACCEPTED, "-o", "junit").stdout).find("testsuite")
    assert suite.get("failures") == "0"
    skipped = suite.find(f"testcase[@name='{MACHINES}']/skipped").get("message")
    assert skipped.startswith("accepted through 2027-03-31: one machine, ticket 7; ")
    run = json.loads(audit(ACCEPTED, "-o", "sarif").stdout)["runs"][0]
    result = next(one for one in run["results"] if one["ruleId"] == MACHINES)
    assert result["suppressions"] == [{"kind": "external", "justification": "one machine, ticket 7"}]


def test_a_certificate_knows_no_acceptance(audit):
    done = audit(ACCEPTED, "-o", "scs")
    assert f"{MACHINES}: FAIL" in done.stdout
    assert "node-distribution-check: FAIL" in done.stdout


def test_an_expired_acceptance_is_a_warning_and_the_audit_fails(audit):
    done = audit(ACCEPTED.replace("2027-03-31", "2026-03-31"))
    assert done.exit_code == 1
    assert f"warning: the acceptance of {MACHINES} expired on 2026-03-31" in done.stderr


def test_all_faults_of_a_file_are_reported_at_once(audit):
    done = audit("- {check: scs-0214-cp-machine, reason: '', expires: soon, owner: me, nodes: a}\n- 3\n")
    assert done.exit_code == 2
    for text in (
        "[0].check: there is no check scs-0214-cp-machine; did you mean scs-0214-cp-machines?",
        "[0].reason: expected a value",
        "[0].expires: expected a date such as 2027-01-31, got 'soon'",
        "[0].owner: unknown field",
        "[0].nodes: expected a list of names of nodes",
        "[1]: expected check, reason and expires",
    ):
        assert text in done.stderr
    assert audit("a: 1\n").exit_code == 2


def test_a_check_that_is_misspelt_has_a_nearest_one(audit):
    done = audit(ACCEPTED, "--require", "fd-room-zones")
    assert done.exit_code == 2
    assert "did you mean fd-room-zone?" in done.stderr


@pytest.mark.parametrize("form", ["table", "json", "yaml", "junit", "sarif", "markdown", "scs", "prometheus"])
def test_every_format_names_inputs_date_version_and_standard(audit, tmp_path, form):
    import hashlib

    import bayplan

    text = audit(ACCEPTED, "-o", form).stdout
    for name in ("nodes.yaml", "accepted.yaml"):
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() in text
    assert "2026-10-14T17:46:40Z" in text
    assert bayplan.__version__ in text
    assert "SCS-0214-v2, Kubernetes Node Distribution and Availability" in text


@pytest.mark.parametrize("epoch", ["²", "garbage", "99999999999999999999"])
def test_a_date_that_is_none_is_an_error(audit, epoch):
    done = audit(ACCEPTED, epoch=epoch)
    assert done.exit_code == 2
    assert "SOURCE_DATE_EPOCH: expected a time in seconds since 1970" in done.stderr
