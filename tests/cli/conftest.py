import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from bayplan.cli import main

NODES = """\
apiVersion: v1
kind: Node
metadata: {name: a1, labels: {zone: a, kubernetes.io/hostname: a1}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: b1, labels: {zone: b, kubernetes.io/hostname: b1}}
spec: {taints: [{key: dedicated, value: db, effect: NoSchedule}]}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: web}}
spec: {nodeName: a1, containers: [{name: c, image: web, resources: {requests: {cpu: "1"}}}]}
"""
WEB = """\
apiVersion: v1
kind: Pod
metadata: {name: web-2, namespace: shop, labels: {app: web}}
spec:
  containers: [{name: c, image: web}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector: {matchLabels: {app: web}}
"""
DB = """\
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: store, labels: {app: db}}
spec:
  containers: [{name: c, image: db, resources: {requests: {cpu: "1"}}}]
  tolerations: [{key: dedicated, operator: Exists}]
  nodeSelector: {zone: b}
"""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    """Variables and configuration files of the person who runs the tests have no effect."""
    for name in list(os.environ):
        if name.startswith("BAYPLAN_") or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """A folder to run in: two nodes with a pod on one, an unschedulable pod, and a pod that fits."""
    folder = tmp_path / "scene"
    folder.mkdir()
    for name, text in (("nodes.yaml", NODES), ("web.yaml", WEB), ("db.yaml", DB)):
        (folder / name).write_text(text)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run():
    """Runs a command line, given as words."""

    def invoke(*words, given=None, **variables):
        return CliRunner().invoke(
            main.cli, [str(word) for word in words], input=given, env=variables, prog_name="bayplan"
        )

    return invoke


@pytest.fixture
def source_folder():
    return Path(main.__file__).parents[2]
