"""Karmada's `kube` library for customizations."""

import pytest

from bayplan.controllers.interpretation import NotInterpretedError
from bayplan.reading import lua_library

POD = {
    "spec": {
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [
            {
                "name": "c",
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "password", "key": "b"}}},
                ],
                "envFrom": [{"configMapRef": {"name": "more"}}, {"secretRef": {"name": "keys"}}],
            }
        ],
        "volumes": [
            {"name": "v", "configMap": {"name": "files"}},
            {"name": "w", "secret": {"secretName": "certificate"}},
            {"name": "x", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "y", "projected": {"sources": [{"secret": {"name": "token"}}, {"configMap": {"name": "ca"}}]}},
            {"name": "z", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "mount"}}},
        ],
    }
}


@pytest.mark.parametrize("amounts, total", [
    (("1", "500m"), "1500m"),
    (("1Gi", "512Mi"), "1536Mi"),
    (("1G", "1Gi"), "2073741824"),  # the form of the first
    (("0", "1Gi"), "1Gi"),  # of the first that is not 0
    ((None, "100m", None), "100m"),
    (("1e3", "1"), "1001"),
    (("1e3", "2k"), "3e3"),
    ((), "0"),
])  # fmt: skip
def test_resources_are_added(amounts, total):
    assert lua_library.resource_add(*amounts) == total


@pytest.mark.parametrize("amount, number", [("2048m", 2.048), ("1Gi", 2.0**30), ("500m", 0.5), (None, 0.0)])
def test_a_quantity_is_a_number(amount, number):
    assert lua_library.get_resource_quantity(amount) == number


@pytest.mark.parametrize("amount", ["-1", "much", 5, {}])
def test_what_is_no_amount_is_an_error(amount):
    with pytest.raises(NotInterpretedError):
        lua_library.get_resource_quantity(amount)


def test_requirements_are_those_of_resources_and_of_nodes():
    spec = {
        "nodeSelector": {"disk": "ssd"},
        "affinity": {},
        "containers": [
            {"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m"}}}
        ],
    }
    assert lua_library.accurate_pod_requirements({"spec": spec}) == {
        "resourceRequest": {"cpu": "250m", "memory": "1Gi"},
        "nodeClaim": {"nodeSelector": {"disk": "ssd"}},
    }
    assert lua_library.accurate_pod_requirements({"spec": {"containers": [{"name": "c"}]}}) is None


def test_dependencies_are_all_objects_that_the_pod_refers_to():
    found = lua_library.get_pod_dependencies(POD, "web")
    assert {(one["apiVersion"], one["namespace"]) for one in found} == {("v1", "web")}
    names = {}
    for one in found:
        names.setdefault(one["kind"], []).append(one["name"])
    assert names == {
        "ConfigMap": ["ca", "files", "more", "settings"],
        "Secret": ["certificate", "keys", "mount", "password", "pull", "token"],
        "ServiceAccount": ["robot"],
        "PersistentVolumeClaim": ["data"],
    }


def test_the_default_account_is_no_dependency():
    assert lua_library.get_pod_dependencies({"spec": {"serviceAccountName": "default"}}) == []
