"""What is admitted with a warning."""

import pytest

from bayplan.validating import warnings
from validating import writing

ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_ZONE = 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
NULL = "a null labelSelector results in matching no pod"
AFFINITY = "spec.affinity.podAffinity"
VALUE = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"


@pytest.mark.parametrize("spec, warned", [
    ({"nodeSelector": {"disk": "ssd"}}, []),
    ({"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}}, ['spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead']),
    (writing.with_term("{topologyKey: zone}"), [f"{AFFINITY}.{writing.REQUIRED}[0].labelSelector: {NULL}"]),
    (writing.with_term("{topologyKey: zone}", when=writing.PREFERRED), [f"{AFFINITY}.{writing.PREFERRED}[0].podAffinityTerm.labelSelector: {NULL}"]),
    (writing.with_term(f"{{topologyKey: {ZONE}, labelSelector: {{}}}}"), [f"{AFFINITY}.{writing.REQUIRED}[0].topologyKey: {ZONE} is {OLD_ZONE}"]),
    ({"topologySpreadConstraints": [{"topologyKey": ZONE}]}, [f"spec.topologySpreadConstraints[0].topologyKey: {ZONE} is {OLD_ZONE}", f"spec.topologySpreadConstraints[0].labelSelector: {NULL}"]),
    ({"affinity": {"nodeAffinity": {writing.REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "Exists", "values": ["-x"]}]}]}}}}, [f"spec.affinity.nodeAffinity.{writing.REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].key: {ZONE} is {OLD_ZONE}"]),
    ({"affinity": {"nodeAffinity": {writing.PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-x"]}]}}]}}}, [f"spec.affinity.nodeAffinity.{writing.PREFERRED}[0].preference.matchExpressions[0].values[0]: -x is invalid, {VALUE}"]),
])  # fmt: skip
def test_warning(spec, warned):
    assert [text.split(" (e.g.")[0] for text in warnings.pod_warnings(writing.pod(spec))] == warned


def test_a_template_is_warned_about_at_its_own_path():
    obj = writing.workload("Job", "batch/v1", {"topologySpreadConstraints": [{"topologyKey": "zone"}]})
    assert warnings.pod_warnings(obj) == [f"spec.template.spec.topologySpreadConstraints[0].labelSelector: {NULL}"]


def test_other_kinds_are_not_warned_about():
    assert warnings.pod_warnings({"kind": "Service", "apiVersion": "v1"}) == []


def test_fields_that_only_we_know_are_dropped_by_api_servers():
    term = {"labelSelector": {}, "topologyKey": "rack", "limit": 2}
    spec = {"affinity": {"podAntiAffinity": {writing.RUNNING: [term]}}}
    path = f"spec.affinity.podAntiAffinity.{writing.RUNNING}"
    warned = [f"{path}[0].limit: {warnings.DROPPED}", f"{path}: {warnings.DROPPED}"]
    assert warnings.pod_warnings(writing.pod(spec)) == warned
