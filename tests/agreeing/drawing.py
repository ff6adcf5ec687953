"""What all drawn objects share: the dice with a theme, few names and values, and labels and selectors of them."""

import random

from reference.strategies import HOSTNAME, NAMESPACES, NODE_LABELS, POD_LABELS, REGION, ZONE, ZONES, Dice

__all__ = [
    "CLASSES",
    "HOSTNAME",
    "NAMESPACES",
    "NODE_LABELS",
    "POD_LABELS",
    "REGION",
    "ZONE",
    "ZONES",
    "Theme",
    "thing",
]

# What a question may be about. A feature of the theme is drawn often, any other now and then.
THEMES = {
    "affinity": ("affinity", "selectors", "label-keys", "terminating"),
    "anti-affinity": ("anti-affinity", "selectors", "label-keys", "terminating"),
    "preferences": ("soft-affinity", "soft-anti-affinity", "selectors", "soft-node-affinity"),
    "spread": ("spread", "label-keys", "spread-policies", "terminating", "taints", "node-affinity"),
    "default-spread": ("controllers", "terminating"),
    "node-affinity": ("node-affinity", "soft-node-affinity", "node-selector", "added-affinity"),
    "taints": ("taints", "tolerations", "cordons"),
    "node-name": ("node-name", "node-affinity", "cordons", "taints"),
    "ports": ("ports", "sidecars"),
    "requests": ("requests", "scarce", "init", "sidecars", "overhead", "extended", "hugepages"),
    "pod-level": ("pod-level", "requests", "scarce", "init", "overhead", "hugepages"),
    "resize": ("resize", "requests", "scarce", "init", "sidecars", "pod-level", "overhead"),
    "strategies": ("strategies", "requests", "extended", "overhead", "init"),
    "configuration": ("plugins", "strategies", "added-affinity", "weights", "affinity", "spread", "soft-affinity"),
    "images": ("images", "image-volumes", "init"),
    "disks": ("disks", "disks", "attach-limits"),
    "claims": ("claims", "volumes", "provisioning", "topologies"),
    "attach-limits": ("claims", "disks", "attach-limits", "volumes", "bound-claims"),
    "capacity": ("claims", "provisioning", "capacity", "topologies"),
    "ephemeral": ("ephemeral", "provisioning", "capacity", "attach-limits"),
    "zones": ("claims", "volumes", "volume-zones", "bound-claims"),
    "nominated": ("nominated", "requests", "scarce", "anti-affinity", "spread", "ports"),
    "mixed": ("affinity", "anti-affinity", "spread", "taints", "requests", "node-affinity", "claims", "images"),
}
CLASSES = ("late", "now", "static", "moved", "absent", "")


class Theme(Dice):
    """Dice that draw the features of one theme often."""

    def __init__(self, name, seed):
        super().__init__(random.Random(seed).randrange)
        self.name, self.features = name, THEMES[name]

    def has(self, *features):
        """Whether to draw what these features stand for."""
        return any(self.below(20) < (14 if feature in self.features else 1) for feature in features)

    def lives_in(self):
        return self.pick(("default",) * 5 + NAMESPACES)


def thing(kind, name, api_version="v1", namespace=None, labels=None, **rest):
    metadata = {"name": name, "uid": f"uid-{kind.lower()}-{name}"}
    if namespace is not None:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
