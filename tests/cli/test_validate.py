import json
import pathlib
import urllib.parse
import xml.etree.ElementTree as ET

import jsonschema
import pytest

from bayplan.validating import warning_ids, warnings
from bayplan.writing import findings

TESTS = pathlib.Path(__file__).parents[1]
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
    assert result.exit_code == 1


WITHOUT_KEYS = """\
apiVersion: v1
kind: Pod
metadata: {name: x, namespace: shop}
spec:
  containers: [{name: c, image: i}]
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "", labelSelector: {}}]
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, podAffinityTerm: {labelSelector: {}}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: "", whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
"""
SPREAD_KEY = "spec.topologySpreadConstraints[0].topologyKey"


@pytest.mark.parametrize("options, n_term_keys", [
    ([], 2),
    (["--semantics", "design"], 0),
    (["--switch", "emptyTopologyKeyMeansAny=true"], 0),
    (["--semantics", "design", "--switch", "emptyTopologyKeyMeansAny=false"], 2),
])  # fmt: skip
def test_the_switch_admits_terms_without_a_topology_key_but_no_such_constraints(run, scene, options, n_term_keys):
    write(scene, WITHOUT_KEYS)
    result = run("validate", "-f", "wrong.yaml", "-o", "json", *options)
    fields = {finding["field"] for finding in json.loads(result.stdout)["findings"]}
    assert SPREAD_KEY in fields
    assert len(fields - {SPREAD_KEY}) == n_term_keys
    assert result.exit_code == 1


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


def test_sarif_is_valid_by_its_schema_and_names_files_by_uri(run, tmp_path):
    tree(tmp_path, **{"a b#%3F?ü_yaml": WRONG, "broken_yaml": "kind: {"})
    report = json.loads(run("validate", "-f", tmp_path, "-R", "-o", "sarif").stdout)
    schema = json.loads((TESTS / "auditing" / "schemas" / "sarif-schema-2.1.0.json").read_text())
    jsonschema.validators.validator_for(schema)(schema).validate(report)
    places = [one["locations"][0]["physicalLocation"] for one in report["runs"][0]["results"]]
    uris = {one["artifactLocation"]["uri"] for one in places}
    assert {urllib.parse.unquote(urllib.parse.urlsplit(uri).path) for uri in uris} == {
        str(tmp_path / "a b#%3F?ü.yaml"),
        str(tmp_path / "broken.yaml"),
    }


def test_a_scheduler_configuration_is_checked_too(run, scene):
    write(scene, "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1\n")
    result = run("validate", "-f", "wrong.yaml")
    assert "wrong.yaml:3  KubeSchedulerConfiguration  parallelism  Invalid value: -1" in result.stdout
    assert result.exit_code == 1


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
    assert result.exit_code == 1


def test_json_messages_name_the_location(run, scene):
    write(scene)
    line = json.loads(run("validate", "-f", "wrong.yaml", "--log-format", "json").stderr.splitlines()[0])
    assert (line["level"], line["file"], line["line"], line["object"]) == ("warning", "wrong.yaml", 12, "Pod shop/x")


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
"""


@pytest.mark.parametrize(
    "api_version, kind, version, advice",
    [
        ("apps/v1beta1", "Deployment", "1.36", "; it is in apps/v1"),
        ("extensions/v1beta1", "Ingress", "1.36", "; it is in networking.k8s.io/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", "1.36", ""),
        ("v2", "Pod", "1.36", "; it is in v1"),
        ("apps/v1", "Deploymnet", "1.36", "; did you mean Deployment?"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.37", "; it is in autoscaling/v1 and autoscaling/v2"),
        ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", "1.37",
         "; it is served only if the API server enables it with --runtime-config"),
    ],
)  # fmt: skip
def test_versions_that_no_server_of_the_version_serves(api_version, kind, version, advice, run, tmp_path):
    write(tmp_path, DEPLOYMENT.replace("apps/v1", api_version).replace("kind: Deployment", f"kind: {kind}"))
    result = run("validate", "-f", tmp_path, "-o", "json", "--kubernetes-version", version)
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["message"] == f'no matches for kind "{kind}" in version "{api_version}"{advice}'
    assert (finding["id"], finding["line"], result.exit_code) == ("UnknownKind", 1, 1)


@pytest.mark.parametrize("api_version", ["gateway.networking.k8s.io/v1", "snapshot.storage.k8s.io/v1", "x.example/v1"])
def test_any_other_group_may_be_a_custom_one(api_version, run, tmp_path):
    write(tmp_path, f"apiVersion: {api_version}\nkind: Thing\nmetadata: {{name: x}}\n")
    result = run("validate", "-f", tmp_path)
    assert (result.exit_code, result.stdout.splitlines()[-1]) == (
        0,
        "1 object of another kind was not checked: Thing 1",
    )


def test_kinds_and_fields_are_those_of_the_version(run, tmp_path):
    later = DEPLOYMENT.replace("containers:", "evictionResponders: [], containers:")
    write(tmp_path, f"{later}---\napiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {{name: x}}\n")
    old = json.loads(run("validate", "-f", tmp_path, "-o", "json").stdout)
    assert [(one["id"], one["field"]) for one in old["findings"]] == [
        ("UnknownField", "spec.template.spec.evictionResponders"),
        ("UnknownKind", "apiVersion"),
    ]
    assert old["findings"][0]["message"] == "unknown field: it is new in Kubernetes 1.37"
    assert run("validate", "-f", tmp_path, "--kubernetes-version", "v1.37.1").exit_code == 0
    assert run("validate", "-f", tmp_path, "--kubernetes-version", "1.20").exit_code == 2


def test_warnings_can_decide_the_exit_code_and_be_ignored_by_id(run, scene):
    write(scene, WRONG.replace("500", "5").replace("maxSkew: 0", "maxSkew: 1"))
    assert run("validate", "-f", "wrong.yaml", "--fail-on", "warning").exit_code == 1
    for words, n_failures in (((), 0), (("--fail-on", "warning"), 1)):
        text = run("validate", "-f", "wrong.yaml", *words, "-o", "junit").stdout
        assert text.count('failures="1"') == 2 * n_failures
        assert text.count('<failure message="1 warning">') == n_failures
    ignoring = run("validate", "-f", "wrong.yaml", "--fail-on", "warning", "--ignore", "NullLabelSelector")
    assert (ignoring.exit_code, ignoring.stderr) == (0, "")
    assert ignoring.stdout == "1 object in 1 file: all valid\n1 finding ignored\n"


def test_a_path_or_id_that_ignores_nothing_is_a_usage_error(run, scene):
    result = run("validate", "-f", ".", "--ignore", "NullLabelSelektor")
    assert result.exit_code == 2
    assert "did you mean NullLabelSelector?" in result.stderr


def tree(folder, **contents):
    for name, text in contents.items():
        path = folder / name.replace("__", "/").replace("_yaml", ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_what_is_no_manifest_in_a_tree_is_skipped_and_counted(run, tmp_path):
    tree(
        tmp_path,
        base__web_yaml=DEPLOYMENT,
        base__kustomization_yaml="resources: [web.yaml]\n",
        prod__kustomization_yaml="resources: [../base]\npatches: [{path: replicas.yaml}, {path: ops.yaml}]\n",
        prod__replicas_yaml="apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n",
        prod__ops_yaml="- {op: add, path: /spec/replicas, value: 2}\n",
        chart__Chart_yaml="apiVersion: v2\nname: web\nversion: 1.0.0\n",
        chart__values_yaml="image: web\nkind: x\n",
        chart__templates__web_yaml="apiVersion: apps/v1\nkind: Deployment\nmetadata: {{ .x }}\n",
        ci_yaml="on: push\n",
    )
    result = run("validate", "-f", tmp_path, "-R")
    assert result.stdout.splitlines() == [
        "1 object in 1 file: all valid",
        (
            "8 files were skipped: Helm chart file 2, Helm template 1, file without apiVersion and kind 1, "
            "kustomization 2, patch 2"
        ),
    ]
    assert result.exit_code == 0
    # What a person names is a manifest.
    assert run("validate", "-f", tmp_path / "ci.yaml", "-R").exit_code == 1
    assert run("validate", "-f", tmp_path / "prod" / "replicas.yaml").exit_code == 1
    # A directory in which there is nothing to check is no success.
    assert run("validate", "-f", tmp_path / "chart", "-R").exit_code == 2


def test_the_files_that_a_kustomization_names_are_skipped(run, tmp_path):
    app = "apiVersion: v1\nkind: Pod\nmetadata: {name: template-of-the-app}\n"
    plugin = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: x}\n"
    tree(
        tmp_path,
        web_yaml=DEPLOYMENT,
        kustomization_yaml=(
            "resources: [web.yaml]\nconfigMapGenerator: [{name: a, files: [pod.yaml, key=job.yaml], envs: [e.yaml]}]\n"
            "secretGenerator: [{name: b, files: [s.yaml]}]\ntransformers: [t.yaml, dir]\ngenerators: [g.yaml]\n"
            "helmCharts: [{name: c, valuesFile: prod.yaml, additionalValuesFiles: [more.yaml]}]\n"
        ),
        pod_yaml=app,
        job_yaml=app,
        s_yaml=app,
        e_yaml="A=b\n",
        t_yaml=plugin,
        g_yaml=plugin,
        prod_yaml="kind: x\n",
        more_yaml="apiVersion: x\n",
    )
    result = run("validate", "-f", tmp_path, "-R")
    assert result.stdout.splitlines() == [
        "1 object in 1 file: all valid",
        "9 files were skipped: Helm chart file 2, content of a ConfigMap or Secret 4, kustomization 3",
    ]


@pytest.mark.parametrize("value, is_template", [
    ("{{ .Values.name }}", True),
    ("{{ .Values.name | quote }}-x", True),
    ("{a: ${replicas}}", True),
    ("{a: b", False),
])  # fmt: skip
def test_a_template_that_is_not_rendered_is_recognised(value, is_template, run, tmp_path):
    tree(tmp_path, web_yaml=f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {value}\n")
    result = run("validate", "-f", tmp_path, "-R")
    assert result.exit_code == 2
    assert ("a template has to be rendered first" in result.stdout) == is_template


@pytest.mark.parametrize("text", ["kind: Pod\nmetadata: {name: x}\n", "apiVersion: v1\n", "a: {{ .Values.x }}\n"])
def test_a_damaged_manifest_in_a_tree_is_not_skipped(text, run, tmp_path):
    tree(tmp_path, web_yaml=DEPLOYMENT, app__other_yaml=text)
    assert run("validate", "-f", tmp_path, "-R").exit_code != 0


def test_paths_are_ignored_by_name_folder_and_pattern(run, tmp_path):
    tree(tmp_path, web_yaml=DEPLOYMENT, vendor__x_yaml="kind: {", gen__y_yaml="kind: [")
    assert run("validate", "-f", tmp_path, "-R").exit_code == 2
    result = run("validate", "-f", tmp_path, "-R", "--ignore", tmp_path / "vendor", "--ignore", f"{tmp_path}/g*/y.yaml")
    assert result.stdout.splitlines() == ["1 object in 1 file: all valid", "2 files were skipped: ignored file 2"]


def test_junit_and_markdown(run, tmp_path):
    write(tmp_path, WRONG.replace("name: x", "name: a&b|c"))
    root = ET.fromstring(run("validate", "-f", tmp_path, "-o", "junit").stdout)
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    failure = root.find(".//failure")
    assert failure.get("message") == "3 errors"
    assert "Invalid value: 500: must be in the range 1-100 [FieldValueInvalid]" in failure.text
    text = run("validate", "-f", tmp_path, "-o", "markdown").stdout
    assert text.startswith("- 1 object in 1 file: 3 errors\n\n| Severity |")
    assert r"Pod shop/a&amp;b\|c" in text


def test_kustomizations_are_rendered_by_kubectl(run, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\n[ -f $3/kustomization.yaml ] || {{ echo no kustomization >&2; exit 1; }}\ncat <<'E'\n{DEPLOYMENT}E\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    tree(tmp_path, prod__kustomization_yaml="resources: [web.yaml]\n", dev__x_yaml="")
    assert run("validate", "-k", tmp_path / "prod").stdout == "1 object in 1 file: all valid\n"
    failed = run("validate", "-k", tmp_path / "dev")
    assert (failed.exit_code, "kubectl kustomize failed: no kustomization" in failed.stdout) == (2, True)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "has to render it" in run("validate", "-k", tmp_path / "prod").stdout


def test_every_warning_has_an_id():
    texts = [value for name, value in vars(warnings).items() if name.isupper() and isinstance(value, str)]
    messages = [text for text in (*texts, *warnings.DEPRECATED_LABELS.values()) if " " in text]
    assert len(messages) > 15
    assert not [text for text in messages if warning_ids.id_of(text) == warning_ids.OTHER]


def test_the_page_has_every_id():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / "validation.md").read_text()
    assert [line for line in findings.MEANINGS if f"| `{line}` | {findings.MEANINGS[line]} |" not in page] == []


@pytest.mark.parametrize("text", ["", "\n", "# a placeholder\n", "---\n---\n"])
def test_an_empty_file_of_a_tree_is_skipped_and_one_that_is_named_is_not(run, scene, text):
    (scene / "more").mkdir()
    (scene / "more" / "placeholder.yaml").write_text(text)
    (scene / "more" / "web.yaml").write_text((scene / "web.yaml").read_text())
    done = run("validate", "-f", "more", "-R")
    assert done.exit_code == 0, done.output
    assert "1 file was skipped: file without apiVersion and kind 1" in done.stdout
    assert run("validate", "-f", "more/placeholder.yaml", "-R").exit_code == 2
