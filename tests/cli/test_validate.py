import json

import pytest

WRONG = """\
apiVersion: v1
kind: Pod
metadata: {name: x, namespace: shop}
spec:
  containers: [{name: c, image: i}]
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 500
        podAffinityTerm: {topologyKey: zone, labelSelector: {}}
  topologySpreadConstraints:
  - maxSkew: 0
    topologyKey: zone
    whenUnsatisfiable: DoNotSchedule
"""
WEIGHT = "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"


def write(folder, text=WRONG, name="wrong.yaml"):
    (folder / name).write_text(text)


def test_valid_objects(run, scene):
    result = run("validate", "-f", ".")
    assert result.stdout == "5 objects in 3 files: all valid\n"
    assert (result.stderr, result.exit_code) == ("", 0)


def test_every_cause_has_its_location(run, scene):
    write(scene)
    result = run("validate", "-f", "wrong.yaml")
    header, weight, skew, summary = result.stdout.splitlines()
    assert header.split() == ["FILE", "OBJECT", "FIELD", "PROBLEM"]
    assert weight.split() == [
        "wrong.yaml:9",
        "Pod",
        "shop/x",
        WEIGHT,
        *["Invalid", "value:", "500:", "must", "be", "in", "the", "range", "1-100"],
    ]
    assert skew.startswith("wrong.yaml:12  Pod shop/x  spec.topologySpreadConstraints[0].maxSkew ")
    assert summary == "1 object in 1 file: 2 errors"
    assert result.exit_code == 2


def test_warnings_go_to_standard_error(run, scene):
    write(scene, WRONG.replace("500", "5").replace("maxSkew: 0", "maxSkew: 1"))
    result = run("validate", "-f", "wrong.yaml")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "warning: wrong.yaml:12, Pod shop/x: spec.topologySpreadConstraints[0].labelSelector: a null labelSelector"
    )
    assert run("validate", "-f", "wrong.yaml", "-q").stderr == ""


def test_faults_in_structure_and_content_are_reported_together(run, scene):
    write(scene)
    write(scene, WRONG.replace("topologyKey: zone, ", "topologykey: zone, ").replace("name: x", "name: z"), "typo.yaml")
    report = json.loads(run("validate", "-f", "wrong.yaml", "-f", "typo.yaml", "-o", "json").stdout)
    assert (report["kind"], report["valid"], report["summary"]["objects"]) == ("ValidationReport", False, 2)
    found = [
        (f["file"], f["line"], f["field"].rpartition(".")[2]) for f in report["findings"] if f["severity"] == "error"
    ]
    assert found == [
        ("wrong.yaml", 9, "weight"),
        ("wrong.yaml", 12, "maxSkew"),
        ("typo.yaml", 10, "topologykey"),  # and not that topologyKey is missing
        ("typo.yaml", 9, "weight"),
        ("typo.yaml", 12, "maxSkew"),
    ]
    assert report["findings"][0]["reason"] == "FieldValueInvalid"


def test_sarif_has_a_result_per_finding(run, scene):
    write(scene)
    report = json.loads(run("validate", "-f", "wrong.yaml", "-o", "sarif").stdout)
    result = report["runs"][0]["results"][0]
    assert (report["version"], result["level"]) == ("2.1.0", "error")
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("wrong.yaml", 9)


def test_a_scheduler_configuration_is_checked_too(run, scene):
    write(scene, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1\n")
    result = run("validate", "-f", "wrong.yaml")
    assert "wrong.yaml:3  KubeSchedulerConfiguration  parallelism  Invalid value: -1" in result.stdout
    assert result.exit_code == 2


def test_exit_zero(run, scene):
    write(scene)
    assert run("validate", "-f", "wrong.yaml", "--exit-zero").exit_code == 0


@pytest.mark.parametrize("text", [None, "a: [", ""])
def test_exit_zero_does_not_cover_unreadable_files(text, run, scene):
    if text is not None:
        write(scene, text, "other.yaml")
    assert run("validate", "-f", "web.yaml", "-f", "other.yaml", "--exit-zero").exit_code == 2


def test_unknown_kinds_are_counted_separately(run, scene):
    unknown = "---\n".join(
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}}}\ndta: {{}}\n"
        for version, kind, name in (("v1", "ConfigMap", "a"), ("v1", "ConfigMap", "b"), ("x.example/v1", "Foo", "c"))
    )
    write(scene, unknown, "other.yaml")
    result = run("validate", "-f", ".")
    assert result.stdout.splitlines() == [
        "5 objects in 4 files: all valid",
        "3 objects of other kinds were not checked: ConfigMap 2, Foo 1",
    ]
    report = json.loads(run("validate", "-f", ".", "-o", "json").stdout)
    assert report["summary"]["unchecked"] == {"ConfigMap": 2, "Foo": 1}


def test_reasons_distinguish_unknown_fields_wrong_types_and_unreadable_files(run, scene):
    write(scene, WRONG.replace("containers:", "continers:"), "misspelt.yaml")
    write(
        scene, WRONG.replace("name: x", "name: y").replace("containers:", "priority: high\n  containers:"), "type.yaml"
    )
    write(scene, "a: [", "broken.yaml")
    report = json.loads(run("validate", "-f", ".", "-o", "sarif").stdout)
    rules = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: result["ruleId"]
        for result in reversed(report["runs"][0]["results"])
    }
    assert rules["./misspelt.yaml"] == "UnknownField"
    assert rules["./type.yaml"] == "Malformed"
    assert rules["./broken.yaml"] == "Unreadable"


RUNNING = """\
apiVersion: v1
kind: Pod
metadata: {name: x, namespace: shop}
spec:
  containers:
  - name: c
    image: i
    livenessProbe:
      httpGet: {port: 0}
    volumeMounts:
    - {name: data, mountPath: /data}
"""


def test_the_whole_pod_spec_is_checked(run, scene):
    write(scene, RUNNING)
    found = json.loads(run("validate", "-f", "wrong.yaml", "-o", "json").stdout)["findings"]
    assert [(one["line"], one["reason"], one["field"]) for one in found] == [
        (11, "FieldValueNotFound", "spec.containers[0].volumeMounts[0].name"),
        (9, "FieldValueInvalid", "spec.containers[0].livenessProbe.httpGet.port"),
    ]


def test_place_does_not_check_the_whole_pod_spec(run, scene):
    write(scene, RUNNING)
    assert "shop       x " in run("place", "-f", ".").stdout


def test_a_misspelt_required_field_is_reported_once(run, scene):
    write(scene, RUNNING.replace("httpGet", "httpget").replace("data, mount", "data, maunt"))
    result = run("validate", "-f", "wrong.yaml")
    assert [line.split()[3] for line in result.stdout.splitlines()[1:-1]] == [
        "spec.containers[0].livenessProbe.httpget",
        "spec.containers[0].volumeMounts[0].mauntPath",
        "spec.containers[0].volumeMounts[0].name",
    ]


def test_a_list_of_other_values_is_an_error(run, scene):
    write(scene, "apiVersion: v1\nkind: List\nitems: {}\n")
    result = run("validate", "-f", "wrong.yaml")
    assert "wrong.yaml:3  List    items  expected a list" in result.stdout
    assert result.exit_code == 2


def test_json_messages_name_the_location(run, scene):
    write(scene)
    line = json.loads(run("validate", "-f", "wrong.yaml", "--log-format", "json").stderr.splitlines()[0])
    assert (line["level"], line["file"], line["line"], line["object"]) == ("warning", "wrong.yaml", 12, "Pod shop/x")
