"""
How controllers replace their pods: the strategies of Deployments, StatefulSets and DaemonSets, and their deadlines.

Mirrors pkg/apis/apps/validation/validation.go and the defaults in pkg/apis/apps/v1/defaults.go. `maxUnavailable` of a
StatefulSet is validated from 1.37 on: before, a server drops it, because the feature gate MaxUnavailableStatefulSet is
off by default.
"""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.model.kubernetes_versions import V1_37
from bayplan.validating import amounts, go_text
from bayplan.validating.fields import Cause, Field
from bayplan.wire.controllers import UpdateStrategy
from bayplan.wire.meta import Int32, WireObject

RECREATE, ROLLING_UPDATE, ON_DELETE = "Recreate", "RollingUpdate", "OnDelete"
DEFAULT_SHARE = "25%"
DEFAULT_PROGRESS_DEADLINE = 600
ORDERED_READY, PARALLEL = "OrderedReady", "Parallel"
RETENTION_POLICIES = ("Retain", "Delete")
NOT_FOR_RECREATE = "may not be specified when strategy `type` is 'Recreate'"
BOTH_ZERO = "may not be 0 when `maxSurge` is 0"
BOTH_SET = "may not be set when maxUnavailable is non-zero"
NO_LIMIT = "cannot be 0 when maxSurge is 0"
NOT_ZERO = "cannot be 0"
DEADLINE_TOO_SHORT = "must be greater than minReadySeconds"
EITHER = "must be '{}' or '{}'"
NOT_ROLLING = "only allowed for updateStrategy 'RollingUpdate'"


class RetentionPolicy(WireObject):
    """`persistentVolumeClaimRetentionPolicy` of a StatefulSet."""

    when_deleted: str = ""
    when_scaled: str = ""


class UpdateFields(WireObject):
    """The types of the fields that are validated here; most of them are not read for placing."""

    strategy: UpdateStrategy | None = None
    update_strategy: UpdateStrategy | None = None
    min_ready_seconds: Int32 | None = None
    progress_deadline_seconds: Int32 | None = None
    revision_history_limit: Int32 | None = None
    pod_management_policy: str = ""
    ordinals: dict[str, Int32] | None = None
    persistent_volume_claim_retention_policy: RetentionPolicy | None = None


DEPLOYMENT_FIELDS = ("strategy", "minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit")
DAEMON_SET_FIELDS = ("updateStrategy", "minReadySeconds", "revisionHistoryLimit")
STATEFUL_SET_FIELDS = (
    "updateStrategy", "minReadySeconds", "podManagementPolicy", "ordinals", "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip


def validate_deployment_updates(spec: Field) -> list[Cause]:
    """The causes for rejecting the strategy and the deadlines of a Deployment."""
    least, deadline = spec["minReadySeconds"], spec["progressDeadlineSeconds"]
    if not deadline.present:
        deadline = Field(deadline.path, DEFAULT_PROGRESS_DEADLINE)
    return [
        *_validate_deployment_strategy(spec["strategy"]),
        *least.check_not_negative(),
        *spec["revisionHistoryLimit"].check_not_negative(),
        *deadline.check_not_negative(),
        *([deadline.invalid_number(DEADLINE_TOO_SHORT)] if deadline.number() <= least.number() else []),
    ]


def validate_stateful_set_updates(spec: Field) -> list[Cause]:
    """The causes for rejecting how a StatefulSet manages and updates its pods."""
    policy, kept = spec["podManagementPolicy"], spec["persistentVolumeClaimRetentionPolicy"]
    found = []
    if policy.text() not in ("", ORDERED_READY, PARALLEL):
        found.append(policy.invalid(EITHER.format(ORDERED_READY, PARALLEL), go_text.as_json(policy.text())))
    start = spec["ordinals"].at("start", f"{spec.path}.ordinals.start")
    return [
        *found,
        *_validate_stateful_set_strategy(spec["updateStrategy"]),
        *kept["whenDeleted"].check_enum(RETENTION_POLICIES),
        *kept["whenScaled"].check_enum(RETENTION_POLICIES),
        *spec["minReadySeconds"].check_not_negative(),
        *start.check_not_negative(),
    ]


def validate_daemon_set_updates(spec: Field) -> list[Cause]:
    """The causes for rejecting the strategy of a DaemonSet."""
    return [
        *spec["minReadySeconds"].check_not_negative(),
        *_validate_daemon_set_strategy(spec["updateStrategy"]),
        *spec["revisionHistoryLimit"].check_not_negative(),
    ]


def _validate_deployment_strategy(strategy: Field) -> list[Cause]:
    rolling = strategy["rollingUpdate"]
    match strategy["type"].text():
        case "Recreate":
            return [rolling.forbidden(NOT_FOR_RECREATE)] if rolling.present else []
        case "" | "RollingUpdate":
            unavailable, surge = (_or_default(rolling[name], DEFAULT_SHARE) for name in ("maxUnavailable", "maxSurge"))
            found = [*amounts.validate_amount(unavailable), *amounts.validate_amount(surge)]
            if not amounts.value_of(unavailable) and not amounts.value_of(surge):
                found.append(unavailable.invalid(BOTH_ZERO, amounts.shown(unavailable)))
            return found + amounts.validate_share(unavailable)
    return [strategy.unsupported((RECREATE, ROLLING_UPDATE), _strategy_json(strategy, ("maxUnavailable", "maxSurge")))]


def _validate_stateful_set_strategy(strategy: Field) -> list[Cause]:
    rolling = strategy["rollingUpdate"]
    match strategy["type"].text():
        case "OnDelete":
            shown = _rolling_json(rolling, ("partition",))
            return [rolling.invalid(NOT_ROLLING, shown)] if rolling.present else []
        case "" | "RollingUpdate":
            found = rolling["partition"].check_not_negative()
            unavailable = rolling["maxUnavailable"]
            if strategy.version < V1_37 or not unavailable.present:
                return found
            found += amounts.validate_amount(unavailable)
            if not amounts.value_of(unavailable):
                found.append(unavailable.invalid(NOT_ZERO, amounts.shown(unavailable)))
            return found + amounts.validate_share(unavailable)
    detail = EITHER.format(ROLLING_UPDATE, ON_DELETE)
    return [strategy.invalid(detail, _strategy_json(strategy, ("partition",)))]


def _validate_daemon_set_strategy(strategy: Field) -> list[Cause]:
    rolling = strategy["rollingUpdate"]
    match strategy["type"].text():
        case "OnDelete":
            return []
        case "" | "RollingUpdate":
            unavailable, surge = _or_default(rolling["maxUnavailable"], 1), _or_default(rolling["maxSurge"], 0)
            found = [cause for one in (unavailable, surge) for cause in amounts.validate_amount(one)]
            found += [cause for one in (unavailable, surge) for cause in amounts.validate_share(one)]
            if amounts.value_of(unavailable) and amounts.value_of(surge):
                found.append(surge.invalid(BOTH_SET, amounts.shown(surge)))
            elif not amounts.value_of(unavailable) and not amounts.value_of(surge):
                found.append(unavailable.required(NO_LIMIT))
            return found
    return [strategy.unsupported((ROLLING_UPDATE, ON_DELETE), _strategy_json(strategy, ("maxUnavailable", "maxSurge")))]


def _or_default(field: Field, default: int | str) -> Field:
    return field if field.present else Field(field.path, default)


def _strategy_json(strategy: Field, limits: tuple[str, ...]) -> str:
    """A strategy as upstream prints its internal type, whose fields have other names than the API's."""
    kind = go_text.as_json(strategy["type"].text())
    return f'{{"Type":{kind},"RollingUpdate":{_rolling_json(strategy["rollingUpdate"], limits)}}}'


def _rolling_json(rolling: Field, limits: tuple[str, ...]) -> str:
    if not isinstance(rolling.value, Mapping):
        return "null"
    parts = [f'"{name[0].upper()}{name[1:]}":{amounts.shown(rolling[name])}' for name in limits]
    if limits == ("partition",):
        unavailable = rolling["maxUnavailable"]
        is_kept = unavailable.present and rolling.version >= V1_37
        parts.append(f'"MaxUnavailable":{amounts.shown(unavailable) if is_kept else "null"}')
    return "{" + ",".join(parts) + "}"
