"""Whatever a tenant writes into an annotation: the pod is read, and what is wrong is said of it."""

import msgspec
import pytest

from bayplan.mapping import pods
from bayplan.validating import admission
from bayplan.wire.pods import Pod

EXECUTION = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
VALUES = (
    "0x" + "f" * 4000,
    "-0x" + "f" * 4000,
    "0b" + "1" * 7000,
    "0" + "7" * 5000,
    "1:" * 3500 + "1",
    "9" * 5000,
    "18446744073709551616",
    "1e999",
    ".nan",
    "-.inf",
    "null",
    "!!null x",
    "''",
    "!!binary aGVsbG8=",
    "!!set {a, b}",
    "!!omap [a: 1]",
    "!!python/object:os.system x",
    "2001-01-01",
    "{1: 2}",
    "{[a]: 1}",
    "[[]]",
    '"\\ud800"',
    '"\\0"',
    "<<",
    "{<<: {a: 1}}",
)
SHAPES = (
    "V",
    "V: 1",
    "SIDE: V",
    "SIDE: {V: 1}",
    f"SIDE: {{{EXECUTION}: V}}",
    f"SIDE: {{{EXECUTION}: [V]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: V, labelSelector: {{}}}}]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: z, labelSelector: V}}]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: z, labelSelector: {{matchLabels: {{a: V}}}}}}]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: z, labelSelector: {{matchExpressions: [V]}}}}]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: z, labelSelector: {{matchExpressions: [{{key: a, operator: In, values: [V]}}]}}}}]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: z, limit: V, labelSelector: {{}}}}]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: z, tolerateNamespaces: [V], labelSelector: {{}}}}]}}",
    f"SIDE: {{{EXECUTION}: [{{topologyKey: z, namespaces: [V], labelSelector: {{}}}}]}}",
    f"SIDE: {{{PREFERRED}: [{{weight: V, podAffinityTerm: {{topologyKey: z, labelSelector: {{}}}}}}]}}",
    f"SIDE: {{{PREFERRED}: [{{weight: 1, podAffinityTerm: V}}]}}",
    f"SIDE: {{{PREFERRED}: [V]}}",
)


def pod(annotations):
    metadata = {"name": "p", "namespace": "default", "annotations": annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def written(shape, value, side):
    text = shape.replace("SIDE", side).replace("V", value)
    return text.replace(EXECUTION, "requiredDuringSchedulingIgnoredDuringExecution") if "group" in side else text


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity", "groupAffinity", "groupAntiAffinity"])
def test_every_text_is_read_and_what_is_wrong_is_a_fault_of_the_pod(shape, side):
    for value in VALUES:
        text = written(shape, value, side)
        if "group" in side:
            annotations = {"bayplan.io/group": "g", "bayplan.io/group-min": "1", "bayplan.io/group-affinity": text}
        else:
            annotations = {"bayplan.io/affinity": text}
        workload = pods.workload_of(msgspec.convert(pod(annotations), Pod))
        causes = admission.validate_all(pod(annotations))
        assert bool(workload.unplaceable) is bool(causes), (text[:100], workload.fault, causes)


TEXTS = ("", "0", "9" * 5000, "٣", "1_0", "-1", "1.0", "a\nb", "\x00", "\ud800", "x" * 70_000, ",".join(["aaa"] * 9999))
NAMES = ("bayplan.io/group", "bayplan.io/group-min", "bayplan.io/group-topology", "bayplan.io/group-topology-preferred")


@pytest.mark.parametrize("name", NAMES)
def test_what_a_group_is_called_is_read_or_is_a_fault_of_the_pod(name):
    for text in TEXTS:
        annotations = {"bayplan.io/group": "g", "bayplan.io/group-min": "2", name: text}
        workload = pods.workload_of(msgspec.convert(pod(annotations), Pod))
        assert bool(workload.unplaceable) is bool(admission.validate_all(pod(annotations))), text[:20]
