"""What changes or refuses pods that are created: limit ranges, quotas, runtime classes and mutating webhooks."""

from __future__ import annotations

import msgspec

from bayplan.wire.meta import ApiObject, LabelSelector, Quantities, WireObject
from bayplan.wire.pods import WireToleration


class LimitRangeItem(WireObject):
    """Limits on a `Container`, a `Pod` or a `PersistentVolumeClaim`, as `type` says."""

    type: str = ""
    max: Quantities | None = None
    min: Quantities | None = None
    default: Quantities | None = None
    default_request: Quantities | None = None
    max_limit_request_ratio: Quantities | None = None


class LimitRangeSpec(WireObject):
    limits: list[LimitRangeItem] | None = None


class LimitRange(ApiObject):
    spec: LimitRangeSpec = msgspec.field(default_factory=LimitRangeSpec)


class ScopedSelectorRequirement(WireObject):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(WireObject):
    match_expressions: list[ScopedSelectorRequirement] | None = None


class ResourceQuotaSpec(WireObject):
    hard: Quantities | None = None
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(WireObject):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(ApiObject):
    spec: ResourceQuotaSpec = msgspec.field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = msgspec.field(default_factory=ResourceQuotaStatus)


class Overhead(WireObject):
    pod_fixed: Quantities | None = None


class RuntimeClassScheduling(WireObject):
    node_selector: dict[str, str] | None = None
    tolerations: list[WireToleration] | None = None


class RuntimeClass(ApiObject):
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None


class WebhookRule(WireObject):
    api_groups: list[str] | None = None
    api_versions: list[str] | None = None
    resources: list[str] | None = None
    operations: list[str] | None = None
    scope: str = ""


class Webhook(WireObject):
    name: str = ""
    rules: list[WebhookRule] | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None


class WebhookConfiguration(ApiObject):
    """A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration."""

    webhooks: list[Webhook] | None = None
