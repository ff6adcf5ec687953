"""ImageLocality: nodes that already hold the pod's images score higher, the more so the larger the images."""

from __future__ import annotations

import numpy as np

from bayplan.indexing.journal import Change, ChangeType
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.indexing.slots import ALL, At
from bayplan.model.kubernetes_versions import V1_37
from bayplan.model.reasons import Scores
from bayplan.model.workloads import Images, Workload
from bayplan.rules.rule import MAX_SCORE, PartRule, Touched

MIB = 1024 * 1024
MIN_BYTES = 23 * MIB  # kube-scheduler: pkg/scheduler/framework/plugins/imagelocality/image_locality.go
MAX_BYTES_PER_CONTAINER = 1000 * MIB


class ImageLocality(PartRule[Images]):
    name = "ImageLocality"
    id = "image-locality"
    extends = ("score",)
    default_weight = 1
    follows_workloads = False
    reads_template_only = True

    def part(self, workload: Workload, index: PlacementIndex) -> Images | None:
        # An image that no node holds adds nothing anywhere.
        images = workload.needs.images
        return images if any(name in index.images.by_name for name in images.names) else None

    def score(self, state: Images, index: PlacementIndex, at: At) -> Scores:
        total = np.zeros(index.slots.capacity, np.int64)
        for name in state.names:
            image = index.images.by_name.get(name)
            if image is not None:
                total[list(image.slots)] += int(image.size * (len(image.slots) / len(index.slots)))
        # Since 1.37 the volumes of images, which are among the names, count like containers.
        n = len(state.names) if index.semantics.kubernetes_version >= V1_37 else state.n_containers
        most = MAX_BYTES_PER_CONTAINER * max(n, 1)
        return MAX_SCORE * (np.clip(total[at], MIN_BYTES, most) - MIN_BYTES) // (most - MIN_BYTES)

    def touched(self, state: Images, change: Change, index: PlacementIndex) -> Touched:
        # One node more or less changes what share of the nodes holds an image.
        if change.type in (ChangeType.TARGET_ADDED, ChangeType.TARGET_REMOVED, ChangeType.TARGET_CHANGED):
            return ALL
        return super().touched(state, change, index)
