"""The guard in `validate`, in the configuration file and in `decide admission`."""

import json

import pytest

HEAD = "apiVersion: bayplan.io/v1alpha1\nkind: BayplanConfiguration\n"
GREEDY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: greedy, namespace: shop}
spec:
  replicas: 8
  selector: {matchLabels: {app: greedy}}
  template:
    metadata: {labels: {app: greedy}}
    spec:
      containers: [{name: c, image: i}]
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - labelSelector: {}
            topologyKey: zone
            namespaceSelector: {}
"""
FIELD = "spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
MESSAGE = (
    f'greedy.yaml:15  Deployment shop/greedy  {FIELD}.topologyKey  Forbidden: "zone" reaches beyond a node, '
    "and hard anti-affinity across all namespaces may only use kubernetes.io/hostname\n"
)


@pytest.fixture
def greedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "greedy.yaml").write_text(GREEDY)
    return tmp_path


def test_the_guard_is_on_by_default(run, greedy):
    result = run("validate", "-f", "greedy.yaml", "-q")
    assert MESSAGE in result.stdout
    assert result.exit_code == 1
    assert run("validate", "-f", "greedy.yaml", "-q", "--as", "admin", "--as-group", "system:masters").exit_code == 1


@pytest.mark.parametrize("flags", [
    ("--restrict", "none"),
    ("--exempt-namespace", "shop"),
    ("--exempt-user", "alice", "--as", "alice"),
    ("--exempt-group", "dev", "--exempt-group", "ops", "--as", "bob", "--as-group", "ops"),
])  # fmt: skip
def test_exempt_users_pass_the_guard(flags, run, greedy):
    assert run("validate", "-f", "greedy.yaml", *flags).exit_code == 0


def test_the_presets_differ_in_what_all_namespaces_are(run, greedy):
    (greedy / "greedy.yaml").write_text(GREEDY.replace("namespaceSelector: {}", "namespaces: []"))
    assert run("validate", "-f", "greedy.yaml").exit_code == 0
    assert MESSAGE in run("validate", "-f", "greedy.yaml", "--semantics", "design").stdout


def test_settings_come_from_the_file_and_flags_come_first(run, greedy):
    (greedy / "config.yaml").write_text(HEAD + "guard: {exempt: {users: [alice], namespaces: [shop]}}\n")
    with_file = ("validate", "-f", "greedy.yaml", "-q", "--config", "config.yaml")
    assert run(*with_file).exit_code == 0
    assert run(*with_file, "--exempt-namespace", "other").exit_code == 1
    assert run(*with_file, "--exempt-namespace", "other", "--as", "alice").exit_code == 0  # the users are still exempt
    (greedy / "config.yaml").write_text(HEAD + "guard: {restrict: none}\n")
    assert run(*with_file).exit_code == 0
    assert run(*with_file, "--restrict", "wider-than-node").exit_code == 1
    assert "guard:\n  restrict: none\n" in run("config", "view", "--config", "config.yaml").stdout


@pytest.mark.parametrize("text, message", [
    ("guard: 1", "config.yaml:3, BayplanConfiguration: guard: expected a mapping, got the number 1"),
    ("guard: {restrict: some}", 'guard.restrict: expected all or all-namespaces or none or wider-than-node, got the string "some"'),
    ("guard: {restrcit: all}", "guard.restrcit: unknown field, did you mean restrict?"),
    ("guard: {exempt: {user: [a]}}", "guard.exempt.user: unknown field, did you mean users?"),
    ("guard: {exempt: {users: alice}}", 'guard.exempt.users: expected a list, got the string "alice"'),
    ("guard: {exempt: {users: null}}", "guard.exempt.users: expected a list, got null"),
])  # fmt: skip
def test_bad_guard_settings_are_errors_with_their_location(text, message, run, greedy):
    (greedy / "config.yaml").write_text(f"{HEAD}{text}\n")
    result = run("validate", "-f", "greedy.yaml", "--config", "config.yaml")
    assert result.exit_code == 2
    assert message in result.stderr


def test_probable_mistakes_are_warnings(run, greedy):
    (greedy / "greedy.yaml").write_text(GREEDY.replace("topologyKey: zone", "topologyKey: kubernetes.io/hostname"))
    result = run("validate", "-f", "greedy.yaml")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: greedy.yaml:14, Deployment shop/greedy: {FIELD}: this means daemons too")


def decided(run, **options):
    term = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "zone"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = {
        "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "affinity": affinity,
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}, "spec": spec}
    result = run("decide", "admission", given=json.dumps({"name": "q", "object": pod, "options": options}) + "\n")
    return json.loads(result.stdout), result.exit_code


def test_decide_admission_applies_the_guard_on_request_only(run):
    assert decided(run) == ({"name": "q", "causes": []}, 0)
    answer, code = decided(run, rules=["guard"])
    (cause,) = answer["causes"]
    assert (cause["reason"], code) == ("FieldValueForbidden", 0)
    assert cause["field"] == f"{FIELD.removeprefix('spec.template.')}.topologyKey"
    assert decided(run, rules=[{"guard": {"exempt": {"namespaces": ["shop"]}}}])[0]["causes"] == []
    assert decided(run, rules=[{"guard": {"restrict": "all"}}])[0]["causes"][0]["message"].startswith("Forbidden: only")


@pytest.mark.parametrize("rules, message", [
    (["gaurd"], 'options.rules: expected "guard", or {"guard": SETTINGS}, got "gaurd"'),
    ([{"guard": {"restrict": 1}}], "options.rules[0].guard.restrict: expected all or all-namespaces or none or wider-than-node, got the number 1"),
    ("guard", 'options.rules: expected a list, got the string "guard"'),
])  # fmt: skip
def test_unknown_rules_are_an_error(rules, message, run):
    answer, code = decided(run, rules=rules)
    assert message in answer["error"]
    assert code == 2
