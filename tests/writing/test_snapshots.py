"""What admission reads is in a snapshot, and means the same once names are hashed."""

import re

import yaml

from bayplan.reading import cluster, files
from bayplan.reading.files import ReadOptions
from bayplan.writing import snapshots
from bayplan.writing.name_hashing import Renaming

ADMISSION = """
- {kind: LimitRange, apiVersion: v1, metadata: {name: limits, namespace: shop}, spec: {limits: [{type: Container, default: {cpu: 3}, max: {cpu: 5}}]}}
- kind: ResourceQuota
  apiVersion: v1
  metadata: {name: team, namespace: shop}
  spec:
    hard: {requests.cpu: 10, pods: 9, count/pods: 9, gold.storageclass.storage.k8s.io/requests.storage: 1Gi}
    scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [urgent]}]}
- {kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {name: urgent}, value: 7}
- {kind: RuntimeClass, apiVersion: node.k8s.io/v1, metadata: {name: kata}, handler: kata, overhead: {podFixed: {cpu: 1}}}
- {kind: Namespace, apiVersion: v1, metadata: {name: mesh, labels: {istio-injection: enabled}}}
- kind: MutatingWebhookConfiguration
  apiVersion: admissionregistration.k8s.io/v1
  metadata: {name: injector}
  webhooks:
  - name: inject.vendor.org
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
    objectSelector: {matchLabels: {inject: please}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: %s}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, inject: %s}}
    spec: {priorityClassName: urgent, runtimeClassName: kata, containers: [{name: c, image: i}]}
"""


def test_what_admission_does_is_the_same_in_a_hashed_snapshot(tmp_path):
    objects = yaml.safe_load(ADMISSION)
    objects += [
        yaml.safe_load(WEB % words)
        for words in (("a", "shop", "never"), ("b", "mesh", "never"), ("c", "other", "please"))
    ]
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(objects))

    def outcome(path):
        found = cluster.load(ReadOptions([str(path)]))
        amounts = sorted((one.priority, one.needs.requests.amounts) for one in found.pending)
        return amounts, len(found.refused), len(found.not_judged)

    text = snapshots.snapshot_of(files.load(ReadOptions([str(tmp_path / "a.yaml")])), []).text(Renaming(b"key"))
    (tmp_path / "hashed.json").write_text(text)
    assert not re.search(r"\b(shop|mesh|gold|urgent|kata|vendor|please|injector)\b", text)
    assert outcome(tmp_path / "hashed.json") == outcome(tmp_path / "a.yaml")
    assert outcome(tmp_path / "a.yaml")[1:] == (2, 8)


def test_new_objects_that_make_pods_are_named(tmp_path):
    rollout = yaml.safe_load(WEB % ("a", "shop", "never")) | {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(rollout))
    (note,) = snapshots.left_out(files.load(ReadOptions([str(tmp_path / "a.yaml")])))
    assert note == "in a snapshot everything runs already: no pods are made for these: Rollout"
