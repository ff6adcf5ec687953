"""Prefers nodes that hold the pod's images already, more so if many nodes do."""

MIB = 1024 * 1024
LEAST, MOST_PER_CONTAINER = 23 * MIB, 1000 * MIB


def images_of(pod):
    images = [container.get("image") or "" for container in [*pod.init_containers, *pod.containers]]
    images += [volume["image"].get("reference") or "" for volume in pod.volumes if volume.get("image")]
    return [image if image.rfind(":") > image.rfind("/") else f"{image}:latest" for image in images]


def sizes(node):
    return {name: image.get("sizeBytes") or 0 for image in node.images for name in image.get("names") or []}


def score(cycle, node):
    nodes = cycle.cluster.nodes
    here, total = sizes(node), 0
    for image in images_of(cycle.pod):
        if image in here:
            held = [sizes(other)[image] for other in nodes if image in sizes(other)]
            total += int(held[0] * (len(held) / len(nodes)))  # one size for all: that of the first node
    most = MOST_PER_CONTAINER * (len(cycle.pod.init_containers) + len(cycle.pod.containers))
    total = min(max(total, LEAST), max(most, LEAST))
    return 100 * (total - LEAST) // (most - LEAST)
