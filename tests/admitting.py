"""What the tests of admission share: objects in a few words, loaded as a user's files are."""

import json

import yaml

from bayplan.reading import cluster
from bayplan.reading.files import ReadOptions


def pod(name="web", namespace="shop", node="", **spec):
    spec = {"containers": [{"name": "c", "image": "i"}], **spec} | ({"nodeName": node} if node else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def container(text="{}", name="c"):
    """A container with these resources, in YAML."""
    return {"name": name, "image": "i", "resources": yaml.safe_load(text)}


def deployment(name="web", replicas=1, namespace="shop", labels=None, **spec):
    labels = {"app": name, **(labels or {})}
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def written(kind, name, text, version="v1", namespace="shop"):
    """An object of any kind; `text` is the rest of it in YAML."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata} | yaml.safe_load(text)


def stored(found, **status):
    """The object as a server has it."""
    metadata = found["metadata"] | {"uid": f"uid-{found['metadata']['name']}", "resourceVersion": "1"}
    return found | {"metadata": metadata, "status": found.get("status", {}) | status}


class Loader:
    """Loads objects as one file."""

    def __init__(self, folder):
        self._path = folder / "a.json"

    def inputs(self, *objects):
        self._path.write_text("\n".join(map(json.dumps, objects)))
        return cluster.read(ReadOptions([str(self._path)]))

    def on_state(self, state, *change):
        """The change, applied on what runs."""
        folder = self._path.parent
        for name, objects in (("state.json", state), ("change.json", change)):
            (folder / name).write_text("\n".join(map(json.dumps, objects)))
        options = ReadOptions([str(folder / "change.json")], state=[str(folder / "state.json")])
        return self.cluster(*cluster.read(options))

    def __call__(self, *objects, complete=False, unlisted=(), load="current"):
        inputs, sink = self.inputs(*objects)
        inputs.context_complete, inputs.unlisted = complete, set(unlisted)
        return self.cluster(inputs, sink, load)

    def cluster(self, inputs, sink, load="current"):
        return cluster.cluster_of(inputs, sink=sink, load=load)


def requests(found, name="shop/web"):
    """Of a pending pod, as the scheduler counts them."""
    (workload,) = (one for one in found.pending if one.key.startswith(name))
    return dict(workload.needs.requests.amounts)


def messages(found):
    return [one.message for one in found.refused]
