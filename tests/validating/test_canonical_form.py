"""Two ways to write one pod template compare equal; templates that differ do not."""

import pytest
import yaml

from bayplan.reading import checking
from bayplan.validating import canonical_form

SAME, DIFFERENT = True, False


def form(text):
    spec = {"containers": [{"name": "c", "image": "i:1"}], **(yaml.safe_load(f"{{{text}}}") or {})}
    return canonical_form.canonical({"spec": spec}, "PodTemplateSpec", checking.field_table())


@pytest.mark.parametrize("one, other, outcome", [
    ("overhead: {cpu: 1000m}",       "overhead: {cpu: 1}",                        SAME),
    ("overhead: {cpu: 1000m}",       "overhead: {cpu: 1001m}",                    DIFFERENT),
    ("",                             "tolerations: [], nodeSelector: {}",         SAME),
    ("",                             "affinity: {}",                              DIFFERENT),  # a pointer in Go
    ("",                             "restartPolicy: Always, dnsPolicy: ClusterFirst, securityContext: {}", SAME),
    ("",                             "terminationGracePeriodSeconds: 30, schedulerName: default-scheduler", SAME),
    ("",                             "terminationGracePeriodSeconds: 0",          DIFFERENT),
    ("hostNetwork: false",           "",                                          SAME),
    ("automountServiceAccountToken: false", "",                                   DIFFERENT),
    ("serviceAccount: a, serviceAccountName: a", "serviceAccountName: a",         SAME),
    ("serviceAccount: a, serviceAccountName: b", "serviceAccountName: b",         SAME),
    ("serviceAccount: a",            "serviceAccountName: b",                     DIFFERENT),
    ("volumes: [{name: v}]",         "volumes: [{name: v, emptyDir: {}}]",        SAME),
    ("volumes: [{name: v, secret: {secretName: s}}]", "volumes: [{name: v, secret: {secretName: s, defaultMode: 420}}]", SAME),
    ("containers: [{name: c, image: 'i:1'}]", "containers: [{name: c, image: 'i:1', imagePullPolicy: IfNotPresent, resources: {}}]", SAME),
    ("containers: [{name: c, image: i}]", "containers: [{name: c, image: i, imagePullPolicy: IfNotPresent}]", DIFFERENT),
    ("containers: [{name: c, image: 'h:5000/i@sha256:0'}]", "containers: [{name: c, image: 'h:5000/i@sha256:0', imagePullPolicy: IfNotPresent}]", SAME),
    ("containers: [{name: c, ports: [{containerPort: 80}]}]", "containers: [{name: c, ports: [{containerPort: 80, protocol: TCP}]}]", SAME),
    ("containers: [{name: c, livenessProbe: {httpGet: {port: 80}}}]",
     "containers: [{name: c, livenessProbe: {httpGet: {port: 80, path: /, scheme: HTTP}, periodSeconds: 10, timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3}}]", SAME),
    ("containers: [{name: c, env: [{name: e, value: ''}]}]", "containers: [{name: c, env: [{name: e}]}]", SAME),
    ("containers: [{name: c, env: [{name: e, valueFrom: {fieldRef: {fieldPath: p}}}]}]",
     "containers: [{name: c, env: [{name: e, valueFrom: {fieldRef: {fieldPath: p, apiVersion: v1}}}]}]", SAME),
    ("containers: [{name: a}, {name: b}]", "containers: [{name: b}, {name: a}]",  DIFFERENT),
])  # fmt: skip
def test_equal_meaning_is_equality(one, other, outcome):
    assert (form(one) == form(other)) is outcome


def test_values_of_any_type_have_a_form():
    for value in (None, 7, "text", [], {"spec": 7}, {"spec": {"containers": "c"}}, {"metadata": []}):
        canonical_form.canonical(value, "PodTemplateSpec", checking.field_table())
