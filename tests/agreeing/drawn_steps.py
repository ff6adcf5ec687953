"""A cluster that changes: what people, controllers and kubelets do, with pods to place in between."""

import copy

from agreeing import drawn_nodes, drawn_pods, drawn_storage
from agreeing.drawing import POD_LABELS
from reference.strategies import labels

GONE = "deletionTimestamp"


def steps(theme, drawn):
    """Some changes, each of an object as it then is, and decisions between them."""
    cluster = _Cluster(theme, drawn)
    found = []
    for number in range(theme.number(4, 12)):
        if number % 2 == 0 or theme.rarely(3):
            decided = drawn_pods.pending(theme, f"d{number}", drawn_storage.CLAIMS)
            found.append({"decide": decided})
        else:
            found += cluster.change()
    return [*found, {"decide": drawn["pod"]}]


class _Cluster:
    """The objects as the steps so far have left them; pods that a decision has placed are not changed."""

    def __init__(self, theme, drawn):
        self.theme = theme
        self.serial = 0
        self.nodes = {one["metadata"]["name"]: one for one in drawn["nodes"]}
        self.gone_nodes = []
        self.pods = {one["metadata"]["name"]: one for one in drawn["pods"]}
        self.namespaces = {one["metadata"]["name"]: one for one in drawn["namespaces"]}
        self.storage = {
            (one["kind"], one["metadata"]["name"]): one
            for one in drawn["objects"]
            if "storage" in one["apiVersion"] or one["kind"].startswith("Persistent")
        }

    def change(self):
        changes = (self.add_pod, self.delete_pod, self.end_pod, self.terminate_pod, self.relabel_pod, self.resize_pod)
        changes += (self.change_node, self.change_node, self.remove_node, self.return_node, self.relabel_namespace)
        changes += (self.change_storage, self.remove_storage) if self.storage else ()
        return self.theme.pick(changes)()

    def _pod(self):
        return copy.deepcopy(self.pods[self.theme.pick(sorted(self.pods))]) if self.pods else None

    def _put_pod(self, pod):
        self.pods[pod["metadata"]["name"]] = pod
        return [{"apply": pod}]

    def add_pod(self):
        self.serial += 1
        names = sorted(self.nodes) or ["gone"]
        return self._put_pod(drawn_pods.placed(self.theme, f"q{self.serial}", names, drawn_storage.CLAIMS))

    def delete_pod(self):
        pod = self._pod()
        if pod is None:
            return []
        del self.pods[pod["metadata"]["name"]]
        return [{"delete": pod}]

    def end_pod(self):
        pod = self._pod()
        if pod is None:
            return []
        pod["status"]["phase"] = self.theme.pick(("Succeeded", "Failed"))
        return self._put_pod(pod)

    def terminate_pod(self):
        pod = self._pod()
        if pod is None:
            return []
        pod["metadata"] |= {GONE: "2026-01-04T00:00:00Z", "deletionGracePeriodSeconds": 30}
        return self._put_pod(pod)

    def relabel_pod(self):
        pod = self._pod()
        if pod is None:
            return []
        pod["metadata"]["labels"] = labels(self.theme, POD_LABELS, 3)
        return self._put_pod(pod)

    def resize_pod(self):
        pod = self._pod()
        if pod is None or not pod["spec"].get("nodeName"):
            return []
        for container in pod["spec"]["containers"]:
            if "resources" in container:
                container["resources"]["requests"] |= {"cpu": "2"} if self.theme.often(2) else {"memory": "2Gi"}
        if self.theme.often(2):
            drawn_pods._resize(self.theme, pod)
        return self._put_pod(pod)

    def change_node(self):
        """Other labels, taints, room and images; or a new node."""
        name = self.theme.pick((*sorted(self.nodes), f"n{self.theme.below(8)}"))
        self.nodes[name] = drawn_nodes.node(self.theme, name)
        return [{"apply": self.nodes[name]}]

    def remove_node(self):
        """Its pods are deleted later, or never within the steps."""
        if len(self.nodes) < 2:
            return []
        node = self.nodes.pop(self.theme.pick(sorted(self.nodes)))
        self.gone_nodes.append(node)
        return [{"delete": node}]

    def return_node(self):
        if not self.gone_nodes:
            return []
        node = self.gone_nodes.pop()
        self.nodes[node["metadata"]["name"]] = node
        return [{"apply": node}]

    def relabel_namespace(self):
        name = self.theme.pick(sorted(self.namespaces))
        self.namespaces[name] = next(
            one for one in drawn_nodes.namespaces(self.theme) if one["metadata"]["name"] == name
        )
        return [{"apply": self.namespaces[name]}]

    def change_storage(self):
        """A claim is bound or made, a volume appears, drivers report other limits and capacities."""
        theme = self.theme
        fresh = drawn_storage.storage(theme, "default", [], sorted(self.nodes))
        if not fresh:
            return []
        one = theme.pick(fresh)
        self.storage[one["kind"], one["metadata"]["name"]] = one
        return [{"apply": one}]

    def remove_storage(self):
        key = self.theme.pick(sorted(self.storage))
        return [{"delete": self.storage.pop(key)}]
