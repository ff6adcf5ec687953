"""`bayplan validate` and a real API server reject the same objects for the same reasons and admit the same."""

import asyncio
import itertools

import pytest

from bayplan.model.kubernetes_versions import KubernetesVersion
from bayplan.validating import admission
from live import kube_binaries
from live.admin import Admin
from live.admission_oracle import causes_of
from validating import controller_rejections, mutations, rejections, released, runtime_rejections

REJECTED = [obj for obj, _ in (*rejections.REJECTED, *controller_rejections.REJECTED, *runtime_rejections.REJECTED)]
REJECTED += controller_rejections.REJECTED_AT_LENGTH
ADMITTED = [*rejections.ADMITTED, *controller_rejections.ADMITTED, *runtime_rejections.ADMITTED]


def our_causes_of(obj):
    return {(cause.reason, cause.field, cause.message) for cause in admission.validate_all(obj)}


@pytest.mark.parametrize("obj", [*REJECTED, *ADMITTED])
async def test_the_api_server_gives_the_same_causes(obj, admin):
    assert await causes_of(admin, obj) == our_causes_of(obj)


async def test_the_api_server_gives_the_same_causes_for_random_objects(admin):
    asked = list(mutations.mutated(seed=36, count=400))
    answers = await asyncio.gather(*(causes_of(admin, obj) for obj in asked))
    for obj, answer in zip(asked, answers, strict=True):
        assert answer == our_causes_of(obj), obj


@pytest.mark.parametrize("release", kube_binaries.RELEASES)
async def test_each_release_gives_the_same_causes(release, released_kube_server, request):
    """The objects above, those whose causes differ, and random ones, on the API server of every release."""
    is_shared = kube_binaries.RELEASES[release] == kube_binaries.KUBE_VERSION
    server = request.getfixturevalue("shared_kube_server") if is_shared else released_kube_server(release)
    asked = [*REJECTED, *ADMITTED, *(obj for obj, *_ in released.DIFFERENT), *released.SAME]
    asked += mutations.mutated(seed=37, count=400)
    async with Admin.of(server) as admin:
        answers = await asyncio.gather(*(causes_of(admin, obj) for obj in asked))
    for obj, answer in zip(asked, answers, strict=True):
        found = admission.validate_all(obj, KubernetesVersion(release))
        assert answer == {(cause.reason, cause.field, cause.message) for cause in found}, obj


NUMBERS = (
    "1",
    "+3",
    "007",
    "8",
    "10",
    "16",
    "1000",
    "1024",
    "1500",
    "2.5",
    "2.500",
    "0.5",
    ".25",
    "5.",
    "0.0001",
    "123456789",
    "1000000",
    "-1500",
)
SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "P", "Ki", "Mi", "Gi", "Pi", "e3", "E2", "e-3")


async def test_quantities_are_printed_alike(admin):
    asked = [
        rejections.container(f"requests: {{memory: '{n}{s}'}}, limits: {{memory: '-1E'}}")
        for n, s in itertools.product(NUMBERS, SUFFIXES)
    ]
    answers = await asyncio.gather(*(causes_of(admin, obj) for obj in asked))
    for obj, answer in zip(asked, answers, strict=True):
        assert answer == our_causes_of(obj), obj
