"""What creates and selects pods: controllers, Services, PodDisruptionBudgets; and priority classes."""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, Int32, LabelSelector, ObjectMeta, WireObject
from bayplan.wire.pods import PodSpec
from bayplan.wire.storage import PersistentVolumeClaim


class PodTemplateSpec(WireObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class RollingUpdate(WireObject):
    """How fast pods are replaced; `partition` is a StatefulSet's."""

    max_surge: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    partition: Int32 | None = None


class UpdateStrategy(WireObject):
    """`strategy` of a Deployment, `updateStrategy` of a StatefulSet or DaemonSet."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class ControllerSpec(WireObject):
    """The union of the fields of Deployment, ReplicaSet, StatefulSet, DaemonSet and Job."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)
    service_name: str = ""
    ordinals: dict[str, Int32] | None = None
    volume_claim_templates: list[PersistentVolumeClaim] | None = None
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: str = ""
    managed_by: str = ""
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    suspend: bool = False
    paused: bool = False
    strategy: UpdateStrategy | None = None
    update_strategy: UpdateStrategy | None = None
    pod_management_policy: str = ""
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class ControllerCondition(WireObject):
    type: str = ""
    status: str = ""


class ControllerStatus(WireObject):
    """The progress of a Job, the revisions of a StatefulSet; everything else that is needed is in the pods."""

    succeeded: Int32 = 0
    failed: Int32 = 0
    completed_indexes: str = ""
    failed_indexes: str = ""
    current_revision: str = ""
    update_revision: str = ""
    conditions: list[ControllerCondition] | None = None


class Controller(ApiObject):
    spec: ControllerSpec = msgspec.field(default_factory=ControllerSpec)
    status: ControllerStatus = msgspec.field(default_factory=ControllerStatus)


class JobTemplateSpec(WireObject):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ControllerSpec = msgspec.field(default_factory=ControllerSpec)


class CronJobSpec(WireObject):
    suspend: bool = False
    job_template: JobTemplateSpec = msgspec.field(default_factory=JobTemplateSpec)


class CronJob(ApiObject):
    spec: CronJobSpec = msgspec.field(default_factory=CronJobSpec)


class ScaleTargetReference(WireObject):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class AutoscalerPolicy(WireObject):
    type: str = ""
    value: Int32 = 0
    period_seconds: Int32 = 0


class AutoscalerRules(WireObject):
    stabilization_window_seconds: Int32 | None = None
    select_policy: str | None = None
    policies: list[AutoscalerPolicy] | None = None


class AutoscalerBehavior(WireObject):
    scale_up: AutoscalerRules | None = None
    scale_down: AutoscalerRules | None = None


class HorizontalPodAutoscalerSpec(WireObject):
    scale_target_ref: ScaleTargetReference | None = None
    min_replicas: Int32 | None = None
    max_replicas: Int32 | None = None
    behavior: AutoscalerBehavior | None = None


class HorizontalPodAutoscalerStatus(WireObject):
    current_replicas: Int32 | None = None
    desired_replicas: Int32 | None = None


class HorizontalPodAutoscaler(ApiObject):
    spec: HorizontalPodAutoscalerSpec = msgspec.field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = msgspec.field(default_factory=HorizontalPodAutoscalerStatus)


class ServiceSpec(WireObject):
    selector: dict[str, str] | None = None


class Service(ApiObject):
    spec: ServiceSpec = msgspec.field(default_factory=ServiceSpec)


class ReplicationControllerSpec(WireObject):
    selector: dict[str, str] | None = None
    replicas: Int32 | None = None
    template: PodTemplateSpec = msgspec.field(default_factory=PodTemplateSpec)


class ReplicationController(ApiObject):
    spec: ReplicationControllerSpec = msgspec.field(default_factory=ReplicationControllerSpec)


class SelectorSpec(WireObject):
    selector: LabelSelector | None = None


class SelectorController(ApiObject):
    """A controller of which only the selector is read, so that watching takes little memory."""

    spec: SelectorSpec = msgspec.field(default_factory=SelectorSpec)


class SelectorMapSpec(WireObject):
    selector: dict[str, str] | None = None


class SelectorMapController(ApiObject):
    """A ReplicationController of which only the selector is read: a map of labels."""

    spec: SelectorMapSpec = msgspec.field(default_factory=SelectorMapSpec)


AnyController = Controller | ReplicationController


class PriorityClass(ApiObject):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(WireObject):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(WireObject):
    """`disrupted_pods`: pod name → when the API server processed its eviction."""

    disruptions_allowed: Int32 = 0
    expected_pods: Int32 = 0
    disrupted_pods: dict[str, str | None] | None = None


class PodDisruptionBudget(ApiObject):
    spec: PodDisruptionBudgetSpec = msgspec.field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = msgspec.field(default_factory=PodDisruptionBudgetStatus)
