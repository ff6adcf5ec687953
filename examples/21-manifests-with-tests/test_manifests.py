"""Run by pytest in a repository that keeps a dump of its cluster beside its manifests."""

import pathlib

import pytest

from bayplan.testing import assert_fits, assert_survives, assert_valid

HERE = pathlib.Path(__file__).parent
CLUSTER, WEB, DB = HERE / "cluster.yaml", HERE / "web.yaml", HERE / "db.yaml"
ZONE = "topology.kubernetes.io/zone"


def test_manifests_are_valid():
    assert_valid(WEB, DB)


def test_everything_fits():
    assert_fits(CLUSTER, WEB, DB)


def test_web_survives_the_loss_of_any_zone():
    assert_survives(CLUSTER, WEB, loss_of=ZONE, workload="deploy/web")


@pytest.mark.xfail(strict=True, reason="three replicas that share no zone need three zones")
def test_db_survives_the_loss_of_any_zone():
    assert_survives(CLUSTER, DB, loss_of=ZONE, workload="deploy/db")
