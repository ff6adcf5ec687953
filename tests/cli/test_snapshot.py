import json
import re

import pytest

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: hush}}
spec:
  replicas: 2
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec:
      containers:
      - {name: c, image: cart, args: [--hush], command: [hush], env: [{name: PASSWORD, value: hush}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: db}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, labels: {app: db}}
spec: {nodeName: a1, containers: [{name: c, image: db}]}
---
apiVersion: v1
kind: Secret
metadata: {name: hush, namespace: shop}
data: {hush: aHVzaA==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hush, namespace: shop}
data: {hush: hush}
"""
FLEET = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: eu-1}
status:
  apiEnablements:
  - {groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}
  - {groupVersion: acme.example/v1, resources: [{kind: AcmeJob, name: acmejobs}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: acme.example/v1, kind: AcmeJob}, {apiVersion: v1, kind: Secret}]
  placement: {clusterAffinity: {clusterNames: [eu-1]}}
---
apiVersion: acme.example/v1
kind: AcmeJob
metadata: {name: nightly, namespace: shop}
spec: {hush: hush}
---
apiVersion: v1
kind: Secret
metadata: {name: hush, namespace: shop}
data: {hush: aHVzaA==}
"""
FILES = ("-f", "nodes.yaml", "-f", "web.yaml", "-f", "db.yaml", "-f", "more.yaml")


@pytest.fixture
def files(scene):
    (scene / "more.yaml").write_text(DEPLOYMENT)
    (scene / "fleet.yaml").write_text(FLEET)
    (scene / "key").write_text("a key\n")
    return scene


def plan(run, *files):
    return json.loads(run("place", *files, "-o", "json").stdout)


def explanation(run, *files):
    """Without the patches, which are made for the manifest that was given: a snapshot has less of it."""
    found = json.loads(run("explain", "pod/web-2", "-n", "shop", *files, "-o", "json").stdout)
    for fix in found["fixes"]:
        assert fix.pop("patches")
    return found


def verdicts(plan):
    """Which pods are placed, and the messages of the others, without names."""
    return sorted(item.get("message") or "" for item in plan["items"])


def test_one_object_is_counted_in_the_singular(run, files):
    (files / "one.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    assert run("snapshot", "-f", "one.yaml").stderr.startswith("note: 1 object; names are not hashed")


def test_a_snapshot_gives_the_same_plan(run, files):
    result = run("snapshot", *FILES, "--output-file", "snapshot.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "note: 8 objects; names are not hashed; use --hash-names to hash them\n"
    expected = plan(run, *FILES)
    assert len(expected["items"]) == 5  # two pods, two of the Deployment, one more of the StatefulSet
    assert plan(run, "-f", "snapshot.json") == expected
    assert explanation(run, "-f", "snapshot.json") == explanation(run, *FILES)


def test_a_snapshot_of_a_snapshot_is_the_same(run, files):
    first = run("snapshot", *FILES).stdout
    assert json.loads(run("snapshot", "-f", "-", given=first).stdout) == json.loads(first)


def test_only_fields_that_decisions_use_are_written(run, files):
    text = run("snapshot", *FILES).stdout
    assert "hush" not in text
    assert {item["kind"] for item in json.loads(text)["items"]} == {"Node", "Pod", "Deployment", "StatefulSet"}


def test_hashed_names_give_the_same_decisions(run, files):
    text = run("snapshot", *FILES, "--hash-names").stdout
    assert not re.search(r"\b(shop|store|cart|web|db|a1|b1|dedicated)", text)  # a hash begins with x
    assert "kubernetes.io/hostname" in text
    (files / "hashed.json").write_text(text)
    assert verdicts(plan(run, "-f", "hashed.json")) == verdicts(plan(run, *FILES))


def test_snapshots_with_the_same_key_are_comparable(run, files):
    assert run("snapshot", *FILES, "--hash-names").stdout != run("snapshot", *FILES, "--hash-names").stdout
    keyed = run("snapshot", *FILES, "--hash-key-file", "key").stdout
    assert keyed == run("snapshot", *FILES, "--hash-names", "--hash-key-file", "key").stdout
    assert "shop" not in keyed


def test_a_fleet_without_its_secrets(run, files):
    result = run("snapshot", "-f", "fleet.yaml", "--output-file", "snapshot.json")
    assert "note: 1 Secrets and ConfigMaps were left out, with their placements\n" in result.stderr
    assert "hush" not in (files / "snapshot.json").read_text()
    expected = [item for item in plan(run, "-f", "fleet.yaml")["items"] if "hush" not in json.dumps(item)]
    assert len(expected) == 1
    assert plan(run, "-f", "snapshot.json")["items"] == expected


def test_a_fleet_with_hashed_names(run, files):
    text = run("snapshot", "-f", "fleet.yaml", "--hash-names").stdout
    assert not re.search(r"acme|eu-1|shop|nightly|hush", text, re.IGNORECASE)
    (files / "hashed.json").write_text(text)
    (item,) = plan(run, "-f", "hashed.json")["items"]
    assert len(item["clusters"]) == 1


@pytest.mark.parametrize(
    "words, message",
    [
        ((), "nothing to read"),
        (("-f", "nowhere.yaml"), "nowhere.yaml"),
        (("-f", "nodes.yaml", "--hash-key-file", "nowhere"), "nowhere: cannot be read"),
        (("-f", "nodes.yaml", "--hash-key-file", "empty"), "empty: the key is empty"),
        (("-f", "nodes.yaml", "--output-file", "no/such/folder"), "cannot be written"),
    ],
)
def test_bad_input_has_exit_code_2(run, files, words, message):
    (files / "empty").write_text("\n")
    result = run("snapshot", *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_unreachable_cluster_has_exit_code_3(run, files):
    result = run("snapshot", "--server", "http://127.0.0.1:1", "--kubeconfig", "/dev/null")
    assert (result.exit_code, result.stdout) == (3, "")


def test_quota_limits_are_left_out_with_a_note(run, scene):
    (scene / "limits.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bayplan-quota, namespace: bayplan-system}\ndata: {shop: '{cpu: 1}'}\n"
    )
    result = run("snapshot", "-f", ".")
    assert (
        "ConfigMap bayplan-system/bayplan-quota was left out: `quota` finds no limits in this snapshot" in result.stderr
    )
    assert "bayplan-quota" not in result.stdout
