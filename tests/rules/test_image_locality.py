"""ImageLocality: what it is worth that a node holds the pod's images."""

import pytest

from bayplan.rules.image_locality import ImageLocality
from rules.shorthand import container, node, pod, run

MIB = 1024 * 1024


def held(text):
    """`web:1=500` is an image of 500 MiB."""
    pairs = [word.split("=") for word in text.split()]
    return [{"names": [f"reg.example/{name}"], "sizeBytes": int(float(size) * MIB)} for name, size in pairs]


# score = 100 * (x - 23 MiB) // (1000 MiB * containers - 23 MiB), x the sum of size * share of the nodes that hold it


@pytest.mark.parametrize(
    "images, a, b, scores",
    [
        ("web:1", "web:1=1000", "web:1=1000", "100 100"),
        ("web:1", "web:1=2000", "web:1=2000", "100 100"),  # at most 1000 MiB for each container
        ("web:1", "web:1=1000", "", "48 0"),  # half of the nodes, half of the size
        ("web:1", "web:1=46", "", "0 0"),  # exactly the least
        ("web:1", "web:1=66", "", "1 0"),  # 10 of 977
        ("web:1", "web:1=20", "web:1=20", "0 0"),
        ("web:1", "web:1=511", "web:1=511", "49 49"),
        ("web:1", "web:1=511.5", "web:1=511.5", "50 50"),
        ("web:1 db:1", "web:1=1000", "web:1=1000", "49 49"),  # two containers: 977 of 1977
        ("web:1 db:1", "web:1=1000 db:1=1000", "web:1=1000", "74 49"),  # 1477 and 977 of 1977
        ("web:1 web:1", "web:1=1000", "web:1=1000", "100 100"),  # each container counts
        ("web", "web:latest=1000", "", "48 0"),  # untagged means latest
        ("web:latest", "web:latest=1000", "", "48 0"),
        ("web", "web:1=1000", "", None),
        ("web:1", "", "", None),
        ("web:1", "db:1=1000", "", None),
    ],
)
def test_scores(images, a, b, scores):
    on = [node("a", images=held(a)), node("b", images=held(b))]
    containers = [container(image=f"reg.example/{image}") for image in images.split()]
    found = run(ImageLocality(), pod("new", containers=containers), on)
    expected = None if scores is None else dict(zip("ab", map(int, scores.split()), strict=True))
    assert (found.raw, found.scores) == (expected, expected)
    assert found.rejected == {}


def test_init_containers_count():
    on = [node("a", images=held("web:1=1000 init:1=1000"))]
    one, other = container(image="reg.example/web:1"), container(image="reg.example/init:1")
    assert run(ImageLocality(), pod("new", containers=[one], initContainers=[other]), on).raw == {"a": 100}
    on = [node("a", images=held("web:1=1000"))]
    assert run(ImageLocality(), pod("new", containers=[one], initContainers=[other]), on).raw == {"a": 49}


def test_image_volumes_count_but_not_as_containers():
    volumes = [{"name": "v", "image": {"reference": "reg.example/data:1"}}]
    asked = pod("new", containers=[container(image="reg.example/web:1")], volumes=volumes)
    assert run(ImageLocality(), asked, [node("a", images=held("data:1=1000"))]).raw == {"a": 100}
