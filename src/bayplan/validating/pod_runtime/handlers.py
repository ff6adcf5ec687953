"""
What the kubelet does to a container while it runs: probes, and hooks after its start and before its stop.

Mirrors `validateHandler`, `validateProbe` and `validateLifecycle` in pkg/apis/core/validation/validation.go. The signal
that stops a container is dropped by API servers whose feature gates are at default, and so not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.validating import causes, names
from bayplan.validating.causes import Cause
from bayplan.validating.fields import Field

SEVERAL = "may not specify more than 1 handler type"
NONE = "must specify a handler type"
SCHEMES = ("HTTP", "HTTPS")
NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
NOT_FOR_INIT = "may not be set for init containers without restartPolicy=Always"
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")


def causes_of(container: Field, grace: int) -> list[Cause]:
    """What is wrong with the probes and hooks of a container that lasts, and has `grace` seconds to stop."""
    found: list[Cause] = []
    for name in HOOKS:
        hook = container["lifecycle"][name]
        if hook.present:
            found += _handler(hook, _OF_HOOKS) + _sleep(hook, grace)
    for name in PROBES:
        probe = container[name]
        if probe.present:
            found += _probe(probe)
    found += _only_once(container["livenessProbe"]) + _only_once(container["startupProbe"])
    seconds = container["readinessProbe"]["terminationGracePeriodSeconds"]
    if seconds.present:
        found.append(causes.invalid(seconds.path, str(seconds.number()), "must not be set for readinessProbes"))
    return found


def none_of(container: Field) -> list[Cause]:
    """The probes and hooks of a container that ends before the pod's others start, and so can have none."""
    lifecycle = container["lifecycle"]
    only_signal = lifecycle["stopSignal"].present and not any(lifecycle[name].present for name in HOOKS)
    written = [container[name] for name in PROBES] + ([] if only_signal else [lifecycle])
    return [causes.forbidden(field.path, NOT_FOR_INIT) for field in written if field.present]


def _probe(probe: Field) -> list[Cause]:
    found = _handler(probe, _OF_PROBES)
    for name in NUMBERS:
        found += causes.not_negative(probe[name])
    grace = probe["terminationGracePeriodSeconds"]
    if grace.present and grace.number() <= 0:
        found.append(causes.invalid(grace.path, str(grace.number()), "must be greater than 0"))
    return found


def _only_once(probe: Field) -> list[Cause]:
    threshold = probe["successThreshold"]
    if threshold.number() in (0, 1):  # 0 is the default, which is 1
        return []
    return [causes.invalid(threshold.path, str(threshold.number()), "must be 1")]


def _handler(field: Field, known: tuple[str, ...]) -> list[Cause]:
    written = [name for name in known if field[name].present]
    if not written:
        return [causes.required(field.path, NONE)]
    others = [causes.forbidden(field[name].path, SEVERAL) for name in written[1:]]
    return _CHECKS[written[0]](field[written[0]]) + others


def _command(action: Field) -> list[Cause]:
    return [] if action["command"].items() else [causes.required(action["command"].path)]


def _request(action: Field) -> list[Cause]:
    found = port(action["port"]) + causes.defaulted(action["scheme"], SCHEMES)
    for header in action["httpHeaders"].items():
        name = header["name"].text()
        found += names.invalid(action["httpHeaders"].path, name, names.header_name(name))
    return found


def _connection(action: Field) -> list[Cause]:
    return port(action["port"])


def port(field: Field) -> list[Cause]:
    """What is wrong with a port that is given by its number or by its name."""
    if isinstance(field.value, str):
        return names.invalid(field.path, field.text(), names.port_name(field.text()))
    return causes.within(field, 1, 65535)


def _nothing(_: Field) -> list[Cause]:
    """How long to sleep can be judged only together with the pod's grace period."""
    return []


_CHECKS: dict[str, Callable[[Field], list[Cause]]] = {
    "exec": _command,
    "httpGet": _request,
    "tcpSocket": _connection,
    "grpc": _connection,
    "sleep": _nothing,
}
_OF_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_OF_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")


def _sleep(hook: Field, grace: int) -> list[Cause]:
    sleep = hook["sleep"]
    alone = not any(hook[name].present for name in _OF_HOOKS if name != "sleep")
    if not sleep.present or not alone or 0 <= sleep["seconds"].number() <= grace:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
    return [causes.invalid(sleep.path, str(sleep["seconds"].number()), detail)]
