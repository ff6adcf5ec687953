"""The threat model says what the token of each ServiceAccount is worth, for exactly the rights that it has."""

import pytest

import threat_model

KUBERNETES = "admissionregistration.k8s.io"


def test_the_page_lists_every_right_of_the_manifests_once_and_no_other():
    listed = threat_model.listed()
    assert sorted(listed) == sorted(set(listed))
    assert sorted(listed) == sorted(threat_model.granted())


@pytest.mark.parametrize("right", threat_model.granted(), ids=str)
def test_no_right_covers_more_than_it_names(right):
    assert "*" not in (right.verb, right.resource)
    if right.resource in ("secrets", "configmaps") or right.resource.endswith(KUBERNETES):
        assert right.name, "only named objects"


def test_only_one_account_may_change_webhook_configurations_and_read_a_secret():
    accounts = {one.account for one in threat_model.granted() if one.resource.endswith(KUBERNETES)}
    assert accounts == {"bayplan-webhook-certificates"}
    readers = {one.account for one in threat_model.granted() if one.resource == "secrets"}
    assert readers == {"bayplan-webhook-certificates"}


def test_without_the_component_for_certificates_no_such_right_exists():
    others = [one for one in threat_model.granted() if one.part != "deploy/webhook-certificates"]
    assert not [one for one in others if one.resource == "secrets" or one.resource.endswith(KUBERNETES)]
