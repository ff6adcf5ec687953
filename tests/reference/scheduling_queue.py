"""
The scheduling queue as one list of pods: every question reads the whole list.

Which unschedulable pods a change requeues is told to it; the other transitions are its own.
"""

import msgspec


class PlainPod(msgspec.Struct, eq=False):
    """`order` is when the pod entered its stage, counted in transitions; `ends` is the end of its backoff."""

    workload: object
    since: float
    queued: float
    tried: float
    stage: str = ""
    order: int = 0
    ends: float = 0.0
    attempts: int = 0
    is_popped: bool = False


class PlainQueue:
    def __init__(self, initial_backoff, max_backoff):
        self.initial_backoff, self.max_backoff = initial_backoff, max_backoff
        self.now = 0.0
        self.pods = []
        self.nominated = []  # pairs of key and node
        self.n_transitions = 0

    def find(self, key):
        return next((pod for pod in self.pods if pod.workload.key == key), None)

    def in_stage(self, stage):
        return [pod for pod in self.pods if pod.stage == stage]

    def node_of(self, key):
        return next((node for nominated, node in self.nominated if nominated == key), "")

    def set_node(self, key, node):
        if self.node_of(key) == node:
            return
        self.nominated = [pair for pair in self.nominated if pair[0] != key]
        if node:
            self.nominated.append((key, node))

    def add(self, workload):
        pod = PlainPod(workload, self.now, self.now, self.now)
        self.pods.append(pod)
        if workload.terminating or workload.gates:
            self._enter(pod, "gated")
        else:
            self._enter(pod, "active")
        self.set_node(workload.key, "" if workload.terminating else workload.nominated_target)

    def update(self, key, workload):
        pod = self.find(key)
        before, pod.workload = pod.workload, workload
        if workload.terminating:
            self.set_node(key, "")
        elif before.nominated_target != workload.nominated_target:
            self.set_node(key, workload.nominated_target)
        if workload.terminating or workload.gates:
            if pod.stage != "gated":
                self._enter(pod, "gated")
            return
        if pod.stage == "gated":
            if pod.attempts == 0:
                pod.since = self.now
            self.retry_changed(pod)
        elif (before.labels, before.needs, before.priority) != (workload.labels, workload.needs, workload.priority):
            if pod.stage == "active" and not pod.is_popped:
                if before.priority != workload.priority:
                    self._enter(pod, "active")
            elif pod.stage != "backoff":
                self.retry_changed(pod)

    def retry_changed(self, pod):
        if pod.attempts and pod.tried + self.backoff_of(pod) > self.now:
            self.back_off(pod.workload.key)
        else:
            pod.queued = self.now
            self._enter(pod, "active")

    def delete(self, key):
        self.pods = [pod for pod in self.pods if pod.workload.key != key]
        self.set_node(key, "")

    def pop(self):
        while True:
            over = [pod for pod in self.in_stage("backoff") if pod.ends <= self.now]
            if not over:
                break
            first = min(over, key=lambda pod: (pod.ends, pod.order))
            first.queued = first.ends
            self._enter(first, "active")
        waiting = [pod for pod in self.in_stage("active") if not pod.is_popped]
        if not waiting:
            return None
        first = min(waiting, key=lambda pod: (-pod.workload.priority, pod.queued, pod.order))
        first.is_popped = True
        first.attempts += 1
        first.tried = self.now
        return first

    def bind(self, key):
        self._enter(self.find(key), "binding")

    def fail(self, key):
        self._enter(self.find(key), "unschedulable")

    def hold_back(self, key):
        self._enter(self.find(key), "gated")

    def back_off(self, key):
        pod = self.find(key)
        pod.ends = max(self.now, pod.tried + self.backoff_of(pod))
        self._enter(pod, "backoff")

    def backoff_of(self, pod):
        backoff = self.initial_backoff
        for _ in range(pod.attempts - 1):
            backoff = min(2 * backoff, self.max_backoff)
        return backoff

    def nominate(self, workload, node):
        """The keys of the pods that lose the node."""
        displaced = [key for key, where in self.nominated if where == node]
        displaced = [key for key in displaced if self.find(key).workload.priority < workload.priority]
        for key in displaced:
            self.set_node(key, "")
            if self.find(key).stage == "unschedulable":
                self.back_off(key)
        self.set_node(workload.key, node)
        return displaced

    def ready_at(self):
        return min((pod.ends for pod in self.in_stage("backoff")), default=None)

    def _enter(self, pod, stage):
        self.n_transitions += 1
        pod.stage, pod.order, pod.is_popped = stage, self.n_transitions, False
