"""A CronJob that is about to be applied runs once, now."""

import re

import pytest

from admitting import Loader, messages, stored, written
from bayplan.controllers.desired_state import ObjectKey


@pytest.fixture
def load(tmp_path):
    return Loader(tmp_path)


def cron_job(more="", job="", name="backup"):
    text = f"""
spec:
  schedule: "0 3 * * *"
  {more}
  jobTemplate:
    metadata: {{labels: {{team: ops}}}}
    spec:
      {job}
      template:
        metadata: {{labels: {{app: backup}}}}
        spec: {{restartPolicy: Never, containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]}}
"""
    return written("CronJob", name, text, "batch/v1")


def test_one_run_is_created(load):
    found = load(cron_job())
    (pod,) = found.pending
    assert re.fullmatch(r"backup-\d{8}-[a-z0-9]{5}", pod.name)
    assert (pod.labels["app"], pod.controller.kind, dict(pod.needs.requests.amounts)) == (
        "backup",
        "Job",
        {"cpu": 1000},
    )
    assert found.made_for == {pod.key: ObjectKey("CronJob", "shop", "backup")}
    assert not any("ignored" in note for note in found.notes)


@pytest.mark.parametrize(
    "job, n_pods", [("parallelism: 3", 3), ("parallelism: 3\n      completions: 2", 2), ("suspend: true", 0)]
)
def test_its_pods_are_those_of_its_job(load, job, n_pods):
    assert len(load(cron_job(job=job)).pending) == n_pods


def test_a_suspended_one_does_not_run(load):
    found = load(cron_job("suspend: true"))
    assert found.pending == []
    assert "CronJob shop/backup is suspended: no pods are created for it" in found.notes


def test_the_runs_of_a_dump_are_in_the_dump(load):
    assert load(stored(cron_job())).pending == []


def test_one_of_the_state_that_is_changed_runs(load):
    inputs, sink = load.inputs(stored(cron_job()))
    inputs.change = {ObjectKey("CronJob", "shop", "backup")}
    assert len(load.cluster(inputs, sink).pending) == 1
    inputs.change = set()
    assert load.cluster(inputs, sink).pending == []


def test_its_pods_are_admitted(load):
    quota = written("ResourceQuota", "team", "spec: {hard: {pods: 0}}")
    assert len(messages(load(quota, cron_job()))) == 1
