"""The APIs that a cluster has enabled."""

import pytest

from bayplan.rules.api_enablement import ApiEnablementRule
from rules.shorthand import binding, cluster, run_fleet

NO_API = "UU cluster(s) did not have the API resource"


@pytest.mark.parametrize(
    "short, served, fits",
    [
        ({}, ["Deployment"], True),
        ({}, ["Job"], False),
        ({}, [], False),
        ({"kind": "Job"}, ["Deployment", "Job"], True),
        ({"apiVersion": "apps/v1beta1"}, ["Deployment"], False),  # of that version
        ({"apiVersion": "batch/v1", "kind": "Deployment"}, ["Deployment", "Job"], False),
        ({"kind": "ConfigMap"}, ["ConfigMap"], True),  # the core group
        ({"runs": "c1"}, [], True),  # a cluster that has the workload is exempt
    ],
)
def test_enabled_apis(short, served, fits):
    found = run_fleet(ApiEnablementRule(), binding("web", **short), [cluster("c1", apis=served)])
    assert found.rejected == ({} if fits else {"c1": NO_API})


def test_evidence_of_a_missing_api():
    (failure,) = run_fleet(ApiEnablementRule(), binding("web"), [cluster("c1", apis=[])]).failures["c1"]
    assert (failure.term, failure.detail) == ("Deployment", "apps/v1 Deployment is not served there")
