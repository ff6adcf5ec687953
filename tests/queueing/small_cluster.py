"""A cluster with one resource, on which feasibility is a sum: what the queue needs to know of a cluster."""

from bayplan.engine import filtering
from bayplan.engine.engine import Engine
from bayplan.indexing.placement_index import PlacementIndex
from bayplan.model.targets import Target
from bayplan.model.workloads import Needs, Requests, Workload
from bayplan.rules import profiles


def pod(name, cpu=1, **fields):
    """A pod; its uid is its name unless given."""
    needs = Needs(requests=Requests(amounts=(("cpu", cpu),)))
    return Workload(namespace="web", name=name, labels={}, needs=needs, **{"uid": name, **fields})


class SmallCluster:
    """The index and, as the queue asks it, the evaluator: a pod fits beside the nominated ones of its priority or more."""

    def __init__(self, **cpu_by_node):
        self.index = PlacementIndex()
        self.engine = Engine(self.index, profiles.pod_rules())
        for name, cpu in cpu_by_node.items():
            self.index.add_target(_node(name, cpu))

    def resize(self, name, cpu):
        self.index.update_target(_node(name, cpu))

    def feasible(self, workload, nominated=()):
        """The nodes on which a pod fits."""
        return [name for name in self.index.slots.by_name if self._fits_on(name, workload, nominated)]

    def _fits_on(self, name, workload, nominated):
        placed = [record.workload for record in self.index.records.values() if record.shares == ((name, 1),)]
        kept = [
            other
            for other, node in nominated
            if node == name and other.key != workload.key and other.priority >= workload.priority
        ]
        node = self.index.slots.at(self.index.slots.by_name[name])
        return sum(_cpu(other) for other in (*placed, *kept, workload)) <= dict(node.allocatable)["cpu"]

    # The evaluator

    def fits(self, workload, nominations):
        return bool(self.feasible(workload, nominations.all()))

    def is_outdated(self, _pending):
        return False

    def verdicts(self, workload):
        return filtering.run(workload, self.engine)

    def pod_helped_by_preemption(self, _equivalent, _nominations):
        return None


def _node(name, cpu):
    return Target(name=name, labels={}, allocatable=(("cpu", cpu), ("pods", 100)))


def _cpu(workload):
    return dict(workload.needs.requests.amounts)["cpu"]
