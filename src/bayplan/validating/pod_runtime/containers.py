"""
How a container runs: ports, environment, mounts, restarts, probes and lifecycle hooks.

Mirrors `validateContainerCommon`, `validateInitContainers`, `validateContainerRestartPolicy`, `validateHandler`,
`validateProbe` and `validateLifecycle` in pkg/apis/core/validation/validation.go. Names, images and amounts are
validated in `validating.pods`. API servers with default feature gates drop the stop signal of a container, so it is not
validated.
"""

from __future__ import annotations

import msgspec

from bayplan.validating import go_text, names
from bayplan.validating.fields import Cause, Field, missing_texts
from bayplan.validating.pod_runtime import environment, mounts, security

MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
RESIZABLE = ("cpu", "memory")
RESIZE_POLICIES = ("NotRequired", "RestartContainer")
RULE_ACTIONS = ("Restart", "RestartAllContainers")
RULE_OPERATORS = ("In", "NotIn")
MAX_RESTART_RULES, MAX_EXIT_CODES = 20, 255
DEFAULT_GRACE_SECONDS = 30
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
PROBE_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
HOOKS = ("postStart", "preStop")
HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
SCHEMES = ("HTTP", "HTTPS")
# Fields without rules in this package. Most containers have few others.
FIELDS_WITHOUT_RULES = frozenset({"name", "image", "command", "args", "workingDir", "resources", "stdin", "tty"})

PADDED = "must not have leading or trailing whitespace"
NEVER_RESTARTED = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
RESTART_OF_INIT = "must not be set to 'RestartContainer' for non-sidecar initContainers"
RULES_ALONE = "must specify restartPolicy when restart rules are used"
SEVERAL_HANDLERS = "may not specify more than 1 handler type"
NO_HANDLER = "must specify a handler type"
HANDLER_OF_INIT = "may not be set for init containers without restartPolicy=Always"


class ContainerContext(msgspec.Struct, frozen=True):
    """The pod of a container: its spec, all its volumes by name, and the valid ones among them."""

    spec: Field
    is_pod: bool
    volumes: dict[str, Field]
    valid_volumes: dict[str, Field]

    @property
    def grace_seconds(self) -> int:
        """How long containers have to stop; a negative number becomes 1 in a pod and is kept in a template."""
        seconds = self.spec["terminationGracePeriodSeconds"].number(DEFAULT_GRACE_SECONDS)
        return 1 if self.is_pod and seconds < 0 else seconds


def validate_containers(context: ContainerContext) -> list[Cause]:
    """The causes for rejecting the containers and init containers of a pod."""
    found: list[Cause] = []
    grace = context.grace_seconds
    for container in context.spec["containers"].items():
        found += _validate_container(container, context)
        if not FIELDS_WITHOUT_RULES.issuperset(container.names()):
            found += validate_handlers(container, grace)
            found += _validate_rules_have_policy(container) + _validate_restart_rules(container["restartPolicyRules"])
    for container in context.spec["initContainers"].items():
        found += _validate_container(container, context)
        # Without a policy, upstream validates the rules of regular containers, but not those of init containers.
        found += _validate_rules_have_policy(container) or _validate_restart_rules(container["restartPolicyRules"])
        if container["restartPolicy"].text() == "Always":
            found += validate_handlers(container, grace)
        else:
            found += _forbidden_handlers(container)
            actions = [policy["restartPolicy"] for policy in container["resizePolicy"].items()]
            found += [one.invalid(RESTART_OF_INIT) for one in actions if one.text() == "RestartContainer"]
    return found


def _validate_container(container: Field, context: ContainerContext) -> list[Cause]:
    image = container["image"]
    # A template may have whitespace around an image, because the image may be replaced.
    found = [image.invalid(PADDED)] if context.is_pod and image.text() != image.text().strip() else []
    found += validate_container_claims(container, context.spec)
    if FIELDS_WITHOUT_RULES.issuperset(container.names()):
        return found
    host_users = context.spec["hostUsers"].value is not False
    return [
        *found,
        *container["terminationMessagePolicy"].check_enum(MESSAGE_POLICIES),
        *_validate_port_names(container["ports"]),
        *environment.validate_environment(container, context.volumes),
        *mounts.validate_mounts(container, context.valid_volumes),
        *container["imagePullPolicy"].check_enum(PULL_POLICIES),
        *_validate_resize_policies(container["resizePolicy"], context.spec["restartPolicy"].text()),
        *security.validate_container_security(container["securityContext"], host_users=host_users),
    ]


def validate_container_claims(container: Field, spec: Field) -> list[Cause]:
    """The causes for rejecting the resource claims that a container uses, in a pod with this spec."""
    uses = container["resources"]["claims"].items()
    if not uses:
        return []
    known = sorted({claim["name"].text() for claim in spec["resourceClaims"].items()} - {""})
    listed = f": {', '.join(known)}" if known else " which is empty"
    found: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for use in uses:
        name = use["name"].text()
        if not name:
            found.append(use.required())
            continue
        found += _duplicate_claims(use, seen)
        if name not in known:
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            found.append(Field(use.path, name).not_found(detail))
    return found


def _duplicate_claims(use: Field, seen: set[tuple[str, str]]) -> list[Cause]:
    """A claim, or one request of it, that was used before; a claim without a request stands for all its requests."""
    name, request = Field(use.path, use["name"].text()), use["request"]
    if (name.text(), "") in seen:
        return [name.duplicate()]
    found = request.check_text(names.dns_label, optional=True)
    if request.text() and (name.text(), request.text()) in seen:
        found.append(use.duplicate(go_text.quoted(f"{name.text()}/{request.text()}")))
    if not request.text() and any(name.text() == other for other, _ in seen):
        found.append(name.duplicate())
    seen.add((name.text(), request.text()))
    return found


def _validate_port_names(ports: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for port in ports.items():
        name = port["name"]
        if name.text():
            duplicate = [name.duplicate()] if name.text() in seen else []
            found += name.check_text(names.port_name) or duplicate
            seen.add(name.text())
    return found


def _validate_resize_policies(policies: Field, pod_restart_policy: str) -> list[Cause]:
    """What happens when the resources of a running container change; most causes are reported at the list."""
    found: list[Cause] = []
    seen: set[str] = set()
    for policy in policies.items():
        resource, action = policy.at("resourceName", policies.path), policy.at("restartPolicy", policies.path)
        if resource.text() in seen:
            found.append(policy.duplicate(go_text.as_json(resource.text())))
        seen.add(resource.text())
        found += missing_texts(resource, action)
        found += resource.check_enum(RESIZABLE) + action.check_enum(RESIZE_POLICIES)
        if pod_restart_policy == "Never" and action.text() != "NotRequired":
            found.append(action.invalid(NEVER_RESTARTED, go_text.as_json(action.text())))
    return found


def _validate_rules_have_policy(container: Field) -> list[Cause]:
    """Restart rules are exceptions to a restart policy, which must be set."""
    policy = container["restartPolicy"]
    return [policy.required(RULES_ALONE)] if container["restartPolicyRules"].items() and not policy.present else []


def _validate_restart_rules(rules: Field) -> list[Cause]:
    found = [rules.too_many(MAX_RESTART_RULES)] if len(rules.items()) > MAX_RESTART_RULES else []
    for rule in rules.items():
        action, codes, operator = rule["action"], rule["exitCodes"], rule["exitCodes"]["operator"]
        if action.text() not in RULE_ACTIONS:
            found.append(action.unsupported(RULE_ACTIONS))
        if not codes.present:
            found.append(codes.required("must be specified"))
            continue
        if operator.text() not in RULE_OPERATORS:
            found.append(operator.unsupported(RULE_OPERATORS))
        if len(codes["values"].items()) > MAX_EXIT_CODES:
            found.append(codes["values"].too_many(MAX_EXIT_CODES))
    return found


def validate_handlers(container: Field, grace_seconds: int) -> list[Cause]:
    """The causes for rejecting the probes and hooks of a long-running container with this grace period."""
    found: list[Cause] = []
    for name in HOOKS:
        hook = container["lifecycle"][name]
        if hook.present:
            found += _validate_handler(hook, HOOK_HANDLERS) + _validate_sleep(hook, grace_seconds)
    for name in PROBES:
        probe, grace = container[name], container[name]["terminationGracePeriodSeconds"]
        if probe.present:
            found += _validate_handler(probe, PROBE_HANDLERS)
            found += [cause for number in PROBE_NUMBERS for cause in probe[number].check_not_negative()]
            if grace.present and grace.number() <= 0:
                found.append(grace.invalid_number("must be greater than 0"))
    for name in ("livenessProbe", "startupProbe"):
        threshold = container[name]["successThreshold"]
        if threshold.number() not in (0, 1):  # 0 stands for the default, which is 1
            found.append(threshold.invalid_number("must be 1"))
    grace = container["readinessProbe"]["terminationGracePeriodSeconds"]
    return [*found, grace.invalid_number("must not be set for readinessProbes")] if grace.present else found


def _forbidden_handlers(container: Field) -> list[Cause]:
    """The probes and hooks of an init container, which ends before the regular containers start."""
    lifecycle = container["lifecycle"]
    only_signal = lifecycle["stopSignal"].present and not any(lifecycle[name].present for name in HOOKS)
    written = [container[name] for name in PROBES] + ([] if only_signal else [lifecycle])
    return [field.forbidden(HANDLER_OF_INIT) for field in written if field.present]


def _validate_handler(holder: Field, known: tuple[str, ...]) -> list[Cause]:
    written = [name for name in known if holder[name].present]
    if not written:
        return [holder.required(NO_HANDLER)]
    action = holder[written[0]]
    found: list[Cause] = []
    match written[0]:
        case "exec":
            found += [] if action["command"].items() else [action["command"].required()]
        case "httpGet":
            found += _validate_port(action["port"]) + action["scheme"].check_enum(SCHEMES)
            for header in action["httpHeaders"].items():
                found += Field(action["httpHeaders"].path, header["name"].text()).check_text(names.header_name)
        case "tcpSocket" | "grpc":
            found += _validate_port(action["port"])
    return found + [holder[name].forbidden(SEVERAL_HANDLERS) for name in written[1:]]


def _validate_port(port: Field) -> list[Cause]:
    """A port is given by its number or by its name."""
    return port.check_text(names.port_name) if isinstance(port.value, str) else port.check_range(1, 65535)


def _validate_sleep(hook: Field, grace_seconds: int) -> list[Cause]:
    sleep, seconds = hook["sleep"], hook["sleep"]["seconds"].number()
    alone = not any(hook[name].present for name in HOOK_HANDLERS if name != "sleep")
    if not sleep.present or not alone or 0 <= seconds <= grace_seconds:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
    return [sleep.invalid(detail, str(seconds))]
