"""
When a Job is complete or has failed: completion mode, limits, and the policies for failed and succeeded pods.

Mirrors `validateJobSpec` in pkg/apis/batch/validation/validation.go and the defaults in pkg/apis/batch/v1/defaults.go.
The selector and the pod template are validated elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bayplan.validating import go_text, names
from bayplan.validating.fields import Cause, Field
from bayplan.wire.meta import Int32, Int64, WireObject

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"
COMPLETION_MODES = (NON_INDEXED, INDEXED)
REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
EXIT_CODE_OPERATORS = ("In", "NotIn")
CONDITION_STATUSES = ("False", "True", "Unknown")
MAX_PARALLELISM, MAX_FAILED_INDEXES = 100_000, 100_000
MANY_COMPLETIONS, MAX_FOR_MANY_COMPLETIONS = 100_000, 10_000
MAX_RULES, MAX_EXIT_CODES, MAX_PATTERNS = 20, 255, 20
MAX_MANAGED_BY_BYTES, MAX_INDEXES_BYTES = 63, 64 * 1024
NEEDS_INDEXES = "requires indexed completion mode"
NO_PATH = 'must be a domain-prefixed path (such as "acme.io/foo")'
ONLY_NEVER = 'only "Never" is supported when podFailurePolicy is specified'
NO_CONTAINER = "must be one of the container or initContainer names in the pod template"
BOTH_REQUIREMENTS = "specifying both OnExitCodes and OnPodConditions is not supported"
NO_REQUIREMENT = "specifying one of OnExitCodes and OnPodConditions is required"
NO_CRITERION = "at least one of succeededCount or succeededIndexes must be specified"
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_MAX_DIGITS = 19  # of a number in Go
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip


class ExitCodes(WireObject):
    container_name: str | None = None
    operator: str = ""
    values: list[Int32] | None = None


class ConditionPattern(WireObject):
    type: str = ""
    status: str = ""


class FailureRule(WireObject):
    action: str = ""
    on_exit_codes: ExitCodes | None = None
    on_pod_conditions: list[ConditionPattern] | None = None


class FailurePolicy(WireObject):
    rules: list[FailureRule] | None = None


class SuccessRule(WireObject):
    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(WireObject):
    rules: list[SuccessRule] | None = None


class JobFields(WireObject):
    """The types of the fields that are validated here; most of them are not read for placing."""

    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: str | None = None
    active_deadline_seconds: Int64 | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    ttl_seconds_after_finished: Int32 | None = None
    managed_by: str | None = None
    suspend: bool | None = None
    manual_selector: bool | None = None
    pod_failure_policy: FailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    pod_replacement_policy: str | None = None


def validate_policies(spec: Field) -> list[Cause]:
    """The causes for rejecting the limits and policies of a Job."""
    found = [cause for name in _COUNTS for cause in spec[name].check_not_negative()]
    if spec["maxFailedIndexes"].present and not spec["backoffLimitPerIndex"].present:
        found.append(spec["backoffLimitPerIndex"].required("when maxFailedIndexes is specified"))
    if spec["managedBy"].present:
        found += _validate_manager(spec["managedBy"])
    found += spec["completionMode"].check_enum(COMPLETION_MODES, empty_is_default=False)
    mode = spec["completionMode"].text() if spec["completionMode"].present else NON_INDEXED
    if mode == INDEXED:
        found += _validate_indexed(spec)
    elif mode == NON_INDEXED:
        limits = (spec["backoffLimitPerIndex"], spec["maxFailedIndexes"])
        found += [limit.invalid_number(NEEDS_INDEXES) for limit in limits if limit.present]
    if spec["podFailurePolicy"].present:
        found += _validate_failure_policy(spec)
    success = spec["successPolicy"]
    if success.present:
        found += _validate_success_policy(spec) if mode == INDEXED else [_needs_indexes(success)]
    replaced = spec["podReplacementPolicy"]
    allowed = REPLACEMENT_POLICIES[:1] if spec["podFailurePolicy"].present else REPLACEMENT_POLICIES
    return found + replaced.check_enum(allowed, empty_is_default=False)


def validate_host_names(name: Field, spec: Field) -> list[Cause]:
    """The causes for rejecting the name of an Indexed Job: its last pod must be able to have it as host name."""
    completions = _completions(spec)
    if spec["completionMode"].text() != INDEXED or completions is None or completions <= 0 or not name.text():
        return []
    last = f"{name.text()}-{completions - 1}"
    detail = f"will not able to create pod with invalid DNS label: {last}"
    return [name.invalid(detail)] if names.dns_label(last) else []


def _completions(spec: Field) -> int | None:
    """A Job that says neither how many pods it needs nor how many at a time needs one."""
    completions = spec["completions"]
    if not completions.present:
        return None if spec["parallelism"].present else 1
    return completions.number()


def _validate_manager(manager: Field) -> list[Cause]:
    """Mirrors `IsDomainPrefixedPath` in apimachinery's util/validation."""
    host, _, path = manager.text().partition("/")
    found: list[Cause] = []
    if not manager.text():
        found.append(manager.required())
    elif not host or not path:
        found.append(manager.invalid(NO_PATH))
    else:
        found += [manager.invalid(detail, go_text.quoted(host)) for detail in names.dns_subdomain(host)]
        if not re.fullmatch(_PATH, path):
            detail = f"Invalid path (regex used for validation is '{_PATH}')"
            found.append(manager.invalid(detail, go_text.quoted(path)))
    too_long = go_text.n_bytes(manager.text()) > MAX_MANAGED_BY_BYTES
    return [*found, manager.too_long(MAX_MANAGED_BY_BYTES)] if too_long else found


def _validate_indexed(spec: Field) -> Iterator[Cause]:
    completions, parallelism, failed = _completions(spec), spec["parallelism"], spec["maxFailedIndexes"]
    if completions is None:
        yield spec["completions"].required(f"when completion mode is {INDEXED}")
    if parallelism.number() > MAX_PARALLELISM:
        detail = f"must be less than or equal to {MAX_PARALLELISM} when completion mode is {INDEXED}"
        yield parallelism.invalid_number(detail)
    if completions is not None and failed.present and failed.number() > completions:
        yield failed.invalid_number("must be less than or equal to completions")
    if failed.number() > MAX_FAILED_INDEXES:
        yield failed.invalid_number(f"must be less than or equal to {MAX_FAILED_INDEXES}")
    if completions is None or completions <= MANY_COMPLETIONS or not spec["backoffLimitPerIndex"].present:
        return
    if not failed.present:
        yield failed.required(f"must be specified when completions is above {MANY_COMPLETIONS}")
    for limited in (parallelism, failed):
        if limited.number() > MAX_FOR_MANY_COMPLETIONS:
            limit = f"must be less than or equal to {MAX_FOR_MANY_COMPLETIONS}"
            when = f"when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
            yield limited.invalid_number(f"{limit} {when}")


def _validate_failure_policy(spec: Field) -> Iterator[Cause]:
    rules, pods = spec["podFailurePolicy"]["rules"], spec["template"]["spec"]
    if len(rules.items()) > MAX_RULES:
        yield rules.too_many(MAX_RULES)
    containers = {one["name"].text() for kind in ("containers", "initContainers") for one in pods[kind].items()}
    for rule in rules.items():
        yield from _validate_failure_rule(rule, containers, per_index=spec["backoffLimitPerIndex"].present)
    if pods["restartPolicy"].text() == "OnFailure":
        yield pods["restartPolicy"].invalid(ONLY_NEVER, go_text.as_json("OnFailure"))


def _validate_failure_rule(rule: Field, containers: set[str], *, per_index: bool) -> Iterator[Cause]:
    action, codes, conditions = rule["action"], rule["onExitCodes"], rule["onPodConditions"]
    if action.text() == "FailIndex" and not per_index:
        yield action.invalid("requires the backoffLimitPerIndex to be set", go_text.as_json(action.text()))
    yield from _validate_choice(action, ACTIONS)
    if codes.present:
        yield from _validate_exit_codes(codes, containers)
    if len(conditions.items()) > MAX_PATTERNS:
        yield conditions.too_many(MAX_PATTERNS)
    for pattern in conditions.items():
        yield from pattern["type"].check_text(names.label_key)
        yield from pattern["status"].check_enum(CONDITION_STATUSES)  # an absent one is true
    if codes.present and conditions.items():
        yield rule.malformed(BOTH_REQUIREMENTS)
    if not codes.present and not conditions.items():
        yield rule.malformed(NO_REQUIREMENT)


def _validate_exit_codes(codes: Field, containers: set[str]) -> Iterator[Cause]:
    container, values = codes["containerName"], codes["values"]
    yield from _validate_choice(codes["operator"], EXIT_CODE_OPERATORS)
    if container.present and container.text() not in containers:
        yield container.invalid(NO_CONTAINER)
    written = [one.number() for one in values.items()]
    if not written:
        yield values.invalid("at least one value is required", go_text.as_json(values.value))
    elif len(written) > MAX_EXIT_CODES:
        yield values.too_many(MAX_EXIT_CODES)
    for position, one in enumerate(values.items()):
        if codes["operator"].text() == "In" and not one.number():
            yield one.invalid_number("must not be 0 for the In operator")
        if one.number() in written[:position]:
            yield one.duplicate(str(one.number()))
    if written != sorted(written):
        yield values.invalid("must be ordered", go_text.as_json(written))


def _validate_choice(field: Field, supported: tuple[str, ...]) -> list[Cause]:
    """A text that must be one of these; upstream's list in the message of a missing one has no commas."""
    if not field.text():
        return [field.required(f"valid values: [{' '.join(map(go_text.quoted, supported))}]")]
    return [] if field.text() in supported else [field.unsupported(supported)]


def _validate_success_policy(spec: Field) -> Iterator[Cause]:
    rules, completions = spec["successPolicy"]["rules"], _completions(spec)
    if not rules.items():
        yield rules.required("at least one rules must be specified when the successPolicy is specified")
    if len(rules.items()) > MAX_RULES:
        yield rules.too_many(MAX_RULES)
    # An Indexed Job without completions is rejected for that; upstream cannot get to the rules then.
    for rule in rules.items() if completions is not None else ():
        yield from _validate_success_rule(rule, completions or 0)


def _validate_success_rule(rule: Field, completions: int) -> Iterator[Cause]:
    count, indexes, total = rule["succeededCount"], rule["succeededIndexes"], 0
    if not count.present and not indexes.present:
        yield rule.required(NO_CRITERION)
    if indexes.present:
        if go_text.n_bytes(indexes.text()) > MAX_INDEXES_BYTES:
            yield indexes.too_long(MAX_INDEXES_BYTES)
        try:
            total = _n_indexes(indexes.text(), completions)
        except _IndexesError as error:
            yield indexes.invalid(f"error parsing succeededIndexes: {error}")
    if count.present:
        yield from count.check_not_negative()
        limit = "must be less than or equal to {} (the number of {})"
        if count.number() > completions:
            yield count.invalid_number(limit.format(completions, "specified completions"))
        if indexes.present and count.number() > total:
            yield count.invalid_number(limit.format(total, "indexes in the specified succeededIndexes field"))


class _IndexesError(Exception):
    """The text is no list of intervals of indexes."""


def _n_indexes(text: str, completions: int) -> int:
    """How many indexes `1,3-5` denotes (validateIndexesFormat)."""
    total, previous = 0, -1
    for interval in text.split(",") if text else ():
        ends = interval.split("-")
        if len(ends) > 2:
            parts = "an index interval can have at most two parts separated by '-'"
            raise _IndexesError(f"the fragment {go_text.quoted(interval)} violates the requirement that {parts}")
        numbers = [_index(end, completions) for end in ends]
        if len(numbers) > 1 and numbers[0] >= numbers[1]:
            raise _IndexesError(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
        if previous >= numbers[0]:
            raise _IndexesError(f"non-increasing order, previous: {previous}, current: {numbers[0]}")
        total += numbers[-1] - numbers[0] + 1
        previous = numbers[-1]
    return total


def _index(text: str, completions: int) -> int:
    found = re.fullmatch("[+]?0*([0-9]+)", text)
    if found is None or len(found[1]) > _MAX_DIGITS or int(found[1]) >= 2**63:
        raise _IndexesError(f"cannot convert string to integer for index: {go_text.quoted(text)}")
    if int(found[1]) >= completions:
        raise _IndexesError(f"too large index: {go_text.quoted(text)}")
    return int(found[1])


def _needs_indexes(success: Field) -> Cause:
    """Upstream prints its internal type, whose fields have other names than the API's."""
    rules = [
        {"SucceededIndexes": one["succeededIndexes"].value, "SucceededCount": one["succeededCount"].value}
        for one in success["rules"].items()
    ]
    listed = ",".join(
        "{" + ",".join(f'"{name}":{go_text.as_json(value)}' for name, value in rule.items()) + "}" for rule in rules
    )
    shown = f'{{"Rules":[{listed}]}}' if isinstance(success["rules"].value, list) else '{"Rules":null}'
    return success.invalid(NEEDS_INDEXES, shown)
