"""
What one container of a pod is given and how it behaves. Names, images and amounts are checked where pods are placed.

Mirrors `validateContainerCommon`, `validateInitContainers` and `validateContainerRestartPolicy` in
pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

import msgspec

from bayplan.validating import causes, go_text, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field
from bayplan.validating.pod_runtime import device_claims, environment, file_volumes, handlers, mounts, security

MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
PADDED = "must not have leading or trailing whitespace"
RESIZED = ("cpu", "memory")
RESIZE_POLICIES = ("NotRequired", "RestartContainer")
NEVER_RESTARTED = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
NOT_FOR_INIT = "must not be set to 'RestartContainer' for non-sidecar initContainers"
RULES_ALONE = "must specify restartPolicy when restart rules are used"
ACTIONS = ("Restart", "RestartAllContainers")
OPERATORS = ("In", "NotIn")
MAX_RULES, MAX_EXIT_CODES = 20, 255
DEFAULT_GRACE = 30  # seconds
# What the rules here have nothing to say about; most containers have no more than that.
PLAIN = frozenset({"name", "image", "command", "args", "workingDir", "resources", "stdin", "tty"})


class ContainerContext(msgspec.Struct, frozen=True):
    """The pod around a container: all its volumes by name, and those of them that are sound."""

    spec: Field
    is_pod: bool
    volumes: dict[str, Field]
    sound_volumes: dict[str, Field]

    @property
    def host_users(self) -> bool:
        """Whether the pod has the users of its node."""
        return self.spec["hostUsers"].value is not False

    @property
    def grace(self) -> int:
        """How many seconds containers have to stop; less than none is one second for a pod, but kept in a template."""
        seconds = self.spec["terminationGracePeriodSeconds"].number(DEFAULT_GRACE)
        return 1 if self.is_pod and seconds < 0 else seconds


def causes_of(around: ContainerContext) -> list[Cause]:
    """What is wrong with the containers and init containers of a pod."""
    found: list[Cause] = []
    grace = around.grace
    for container in around.spec["containers"].items():
        found += _any(container, around)
        if not PLAIN.issuperset(container.names()):
            found += handlers.causes_of(container, grace) + _no_policy(container) + _restart_rules(container)
    for container in around.spec["initContainers"].items():
        found += _any(container, around)
        # Without a policy, upstream looks at the rules of other containers, but not at those of these.
        found += _no_policy(container) or _restart_rules(container)
        if container["restartPolicy"].text() == "Always":
            found += handlers.causes_of(container, grace)
        else:
            found += handlers.none_of(container) + _restarted_by_resizing(container["resizePolicy"])
    return found


def _any(container: Field, around: ContainerContext) -> list[Cause]:
    found = _image(container["image"]) if around.is_pod else []
    found += device_claims.of_container(container, around.spec)
    if PLAIN.issuperset(container.names()):
        return found
    return [
        *found,
        *causes.defaulted(container["terminationMessagePolicy"], MESSAGE_POLICIES),
        *_port_names(container["ports"]),
        *environment.causes_of(container, around.volumes),
        *mounts.causes_of(container, around.sound_volumes),
        *causes.defaulted(container["imagePullPolicy"], file_volumes.PULL_POLICIES),
        *_resizing(container["resizePolicy"], around.spec["restartPolicy"]),
        *security.of_container(container["securityContext"], host_users=around.host_users),
    ]


def _image(image: Field) -> list[Cause]:
    """A template may have spaces around an image, for those who replace it by another one."""
    if image.text() == image.text().strip():
        return []
    return [causes.invalid(image.path, go_text.quoted(image.text()), PADDED)]


def _port_names(ports: Field) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for port in ports.items():
        name = port["name"]
        if not name.text():
            continue
        wrong = names.invalid(name.path, name.text(), names.port_name(name.text()))
        if not wrong and name.text() in seen:
            wrong = [causes.duplicate(name.path, go_text.quoted(name.text()))]
        seen.add(name.text())
        found += wrong
    return found


def _resizing(policies: Field, pod_policy: Field) -> list[Cause]:
    """What happens when amounts change under a running container; most of it is reported at the list."""
    found: list[Cause] = []
    seen: set[str] = set()
    for policy in policies.items():
        resource = policy.at("resourceName", policies.path)
        action = policy.at("restartPolicy", policies.path)
        if resource.text() in seen:
            found.append(causes.duplicate(policy.path, go_text.as_json(resource.text())))
        seen.add(resource.text())
        found += causes.needed(resource, action)
        found += causes.defaulted(resource, RESIZED) + causes.defaulted(action, RESIZE_POLICIES)
        if pod_policy.text() == "Never" and action.text() != "NotRequired":
            found.append(causes.invalid(policies.path, go_text.as_json(action.text()), NEVER_RESTARTED))
    return found


def _restarted_by_resizing(policies: Field) -> list[Cause]:
    return [
        causes.invalid(policy["restartPolicy"].path, '"RestartContainer"', NOT_FOR_INIT)
        for policy in policies.items()
        if policy["restartPolicy"].text() == "RestartContainer"
    ]


def _no_policy(container: Field) -> list[Cause]:
    """Rules on when the container is started again, without a policy to which they are the exceptions."""
    rules, policy = container["restartPolicyRules"], container["restartPolicy"]
    return [causes.required(policy.path, RULES_ALONE)] if rules.items() and not policy.present else []


def _restart_rules(container: Field) -> list[Cause]:
    rules = container["restartPolicyRules"]
    listed = rules.items()
    found = [causes.too_many(rules.path, len(listed), MAX_RULES)] if len(listed) > MAX_RULES else []
    for rule in listed:
        found += _word(rule["action"], ACTIONS)
        codes = rule["exitCodes"]
        if not codes.present:
            found.append(causes.required(codes.path, "must be specified"))
            continue
        found += _word(codes["operator"], OPERATORS)
        if len(codes["values"].items()) > MAX_EXIT_CODES:
            found.append(causes.too_many(codes["values"].path, len(codes["values"].items()), MAX_EXIT_CODES))
    return found


def _word(field: Field, supported: tuple[str, ...]) -> list[Cause]:
    if field.text() in supported:
        return []
    return [causes.unsupported(field.path, go_text.as_json(field.text()), supported)]
