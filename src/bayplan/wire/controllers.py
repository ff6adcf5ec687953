"""What makes pods, and what selects them: controllers, Services, priority classes."""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, LabelSelector, ObjectMeta, WireObject
from bayplan.wire.pods import PodSpec


class PodTemplateSpec(WireObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class ControllerSpec(WireObject):
    """The fields that Deployment, ReplicaSet, StatefulSet, DaemonSet and Job have between them."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)
    service_name: str = ""
    ordinals: dict[str, int] | None = None
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    suspend: bool = False
    paused: bool = False


class Controller(ApiObject):
    spec: ControllerSpec = msgspec.field(default_factory=ControllerSpec)


class SelectorMapSpec(WireObject):
    selector: dict[str, str] | None = None


class Service(ApiObject):
    spec: SelectorMapSpec = msgspec.field(default_factory=SelectorMapSpec)


class ReplicationControllerSpec(WireObject):
    selector: dict[str, str] | None = None
    replicas: int | None = None
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)


class ReplicationController(ApiObject):
    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)


class PriorityClass(ApiObject):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
