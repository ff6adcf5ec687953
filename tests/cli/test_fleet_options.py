"""The options of `run` for fleets: what is wrong with them is told before a server is asked."""

import importlib.util

import pytest
from click.testing import CliRunner

from bayplan.cli import main

ASKING = "--enable-scheduler-estimator"


def told(*arguments):
    done = CliRunner().invoke(main.cli, ["run", "--kubeconfig", "/nonexistent", *arguments])
    assert done.exit_code == 2, done.output
    return done.stderr


@pytest.fixture
def file(tmp_path):
    (tmp_path / "ca.crt").write_text("")
    return str(tmp_path / "ca.crt")


def test_all_that_is_wrong_with_the_estimators_is_told_at_once(file):
    found = told(ASKING, "--scheduler-estimator-address", "nowhere:1", "--scheduler-estimator-cert-file", file)
    assert "expected {cluster} in --scheduler-estimator-address" in found
    assert "needs --scheduler-estimator-ca-file" in found
    assert "--scheduler-estimator-cert-file and --scheduler-estimator-key-file go together" in found


def test_a_time_limit_is_above_zero(file):
    assert "above 0" in told(ASKING, "--scheduler-estimator-ca-file", file, "--scheduler-estimator-timeout", "0s")


def test_a_missing_file_is_named():
    assert "/no/ca.crt" in told(ASKING, "--scheduler-estimator-ca-file", "/no/ca.crt")


def test_the_extra_is_named_if_it_is_missing(file, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "grpc" else real(name))
    assert "pip install bayplan[estimator]" in told(ASKING, "--scheduler-estimator-ca-file", file)


def test_the_budget_of_returns_is_above_zero():
    assert "--fail-back-per-minute" in told("--fail-back-per-minute", "0")
