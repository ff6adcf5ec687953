"""
Types of option values: durations, addresses, names, semantics switches, label selectors.

A bad value is a usage error under the name of its option. Durations and addresses stay as written, because
`config view` prints them; `seconds` and `host_and_port` parse them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bayplan.model.semantics import Semantics

_SECONDS_BY_UNIT = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0}
_MAX_PORT = 65535


def seconds(text: str) -> float:
    """The seconds of a duration in kubectl's notation: 30, 30s, 2m, 500ms; raises ValueError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|)", text.strip())
    if found is None:
        raise ValueError(f"expected a duration such as 30s, 500ms or 2m, got {text!r}")
    return float(found[1]) * _SECONDS_BY_UNIT[found[2]]


def host_and_port(text: str) -> tuple[str, int]:
    """The host and port of a listen address; the host may be empty. Raises ValueError for anything else."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > _MAX_PORT:
        raise ValueError(f"expected an address such as 127.0.0.1:10351, got {text!r}")
    return host.strip("[]"), int(port)


class Duration(click.ParamType[str]):
    """A duration; with `positive`, zero is an error."""

    name = "duration"

    def __init__(self, *, positive: bool = False) -> None:
        self._positive = positive

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            found = seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if self._positive and not found:
            self.fail(f"expected a duration above 0, got {value!r}", param, ctx)
        return str(value)


class KnownVersion(click.ParamType[str]):
    """A version of Kubernetes that Bayplan knows, as `1.37`; `v1.37.1` is the same."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The version as `1.37`, a `KubernetesVersion`."""
        from bayplan.model.kubernetes_versions import KubernetesVersion, known_version

        found = known_version(str(value))
        if found is None:
            self.fail(f"expected {' or '.join(KubernetesVersion)}, got {value!r}", param, ctx)
        return found


class ListenAddress(click.ParamType[str]):
    """HOST:PORT; if it is `optional`, 0 or an empty value disables the listener."""

    name = "address"

    def __init__(self, *, optional: bool = False) -> None:
        self._optional = optional

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if self._optional and is_disabled(text):
            return text
        try:
            host_and_port(text)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return text


def is_disabled(address: str) -> bool:
    """Whether an optional address disables its listener."""
    return address in ("", "0")


class Name(click.ParamType[str]):
    """A name: any printable text that is not empty."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("expected a name, got an empty value", param, ctx)
        if not str(value).isprintable():
            self.fail(f"expected a name, got {value!r}", param, ctx)
        return str(value)


def semantics_with(preset: str, texts: Iterable[str], version: str = "") -> Semantics:
    """The preset with the switches of `--switch NAME=VALUE` set; the version is that of `--kubernetes-version`."""
    from bayplan.library import settings
    from bayplan.library.settings import Settings

    asked = Settings(semantics=preset, switches=switches(texts), kubernetes_version=version)  # type: ignore[arg-type]
    return settings.semantics_of(asked)


def switches(texts: Iterable[str]) -> dict[str, str]:
    """Name → value of each `--switch NAME=VALUE`, as written."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint="--switch")
        found[name] = value
    return found


class OutputFormat(click.Choice[str]):
    """One of the formats; one that ends in `=` is followed by a template, which must be readable."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        begins = next((str(one) for one in self.choices if str(one).endswith("=") and text.startswith(str(one))), "")
        if not begins:
            if text.startswith(("jsonpath", "custom-columns")) and f"{text}=" in self.choices:
                self.fail(f"expected {text}= and a template, got {text!r}", param, ctx)
            return str(super().convert(value, param, ctx))
        from bayplan.writing import chosen_output, field_paths

        try:
            if begins == chosen_output.CUSTOM_COLUMNS:
                field_paths.columns(text.removeprefix(begins), [])
            else:
                field_paths.filled(text.removeprefix(begins), {})
        except field_paths.TemplateError as error:
            self.fail(str(error), param, ctx)
        return text


class FieldPath(click.ParamType[str]):
    """A column, or the path of a field."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value:
            return ""
        from bayplan.writing import field_paths

        try:
            field_paths.parse(str(value))
        except field_paths.TemplateError as error:
            self.fail(str(error), param, ctx)
        return str(value)
