"""
Reads kubeconfig files and merges them by kubectl's rules.

The first file that has a cluster, user or context provides all of it; likewise the first `current-context`. Each entry
keeps its file and position, for messages and for relative paths. `kubeconfig` interprets the fields.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from bayplan.errors import Fault, InputError
from bayplan.validating import structure
from bayplan.validating.yaml_text import CheckedLoader


class _Fields(msgspec.Struct, rename="kebab", kw_only=True):
    """Unknown fields are ignored, as in kubectl."""


class Extension(_Fields):
    name: str = ""
    extension: Any = None


class KubeconfigCluster(_Fields):
    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[Extension] | None = None


class Variable(_Fields):
    name: str | None = None
    value: str | None = None


class Exec(msgspec.Struct, rename="camel", kw_only=True):
    command: str | None = None
    args: list[str] | None = None
    env: list[Variable] | None = None
    api_version: str | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class AuthProvider(_Fields):
    name: str | None = None


class KubeconfigUser(_Fields):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    as_: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    username: str | None = None
    password: str | None = None
    auth_provider: AuthProvider | None = None
    exec: Exec | None = None

    def __repr__(self) -> str:
        return "User(…)"


class KubeconfigContext(_Fields):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(_Fields):
    name: str
    cluster: KubeconfigCluster | None = None


class _NamedUser(_Fields):
    name: str
    user: KubeconfigUser | None = None


class _NamedContext(_Fields):
    name: str
    context: KubeconfigContext | None = None


class _File(_Fields):
    kind: str | None = None
    current_context: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


Content = TypeVar("Content")


class Entry(msgspec.Struct, Generic[Content], frozen=True):
    """A cluster, user or context with its position in the files."""

    name: str
    content: Content
    file: pathlib.Path
    path: str

    def fault(self, field: str, message: str) -> Fault:
        return Fault(message, file=str(self.file), path=f"{self.path}.{field}" if field else self.path)

    def place(self, field: str) -> str:
        """File and path of a field in one text, for messages."""
        return f"{self.file}: {self.path}.{field}"

    def beside(self, path: str) -> str:
        """A path from the file, resolved relative to the file."""
        return str(self.file.parent.absolute() / path)


class Kubeconfig(msgspec.Struct, kw_only=True):
    """All files merged."""

    files: tuple[pathlib.Path, ...]
    current_context: str = ""
    clusters: dict[str, Entry[KubeconfigCluster]] = {}
    users: dict[str, Entry[KubeconfigUser]] = {}
    contexts: dict[str, Entry[KubeconfigContext]] = {}


def load(paths: Sequence[pathlib.Path]) -> Kubeconfig:
    """Read and merge the files; earlier files take precedence."""
    merged = Kubeconfig(files=tuple(paths))
    for path in paths:
        file = _read(path)
        merged.current_context = merged.current_context or file.current_context or ""
        clusters = ((item.name, item.cluster or KubeconfigCluster()) for item in file.clusters or ())
        users = ((item.name, item.user or KubeconfigUser()) for item in file.users or ())
        contexts = ((item.name, item.context or KubeconfigContext()) for item in file.contexts or ())
        _add(merged.clusters, clusters, path, "clusters[{}].cluster")
        _add(merged.users, users, path, "users[{}].user")
        _add(merged.contexts, contexts, path, "contexts[{}].context")
    return merged


def _add(known: dict[str, Entry[Content]], found: Iterable[tuple[str, Content]], file: pathlib.Path, path: str) -> None:
    for place, (name, content) in enumerate(found):
        known.setdefault(name, Entry(name, content, file, path.format(place)))


class _KubeconfigLoader(CheckedLoader):
    """Keeps numbers and dates as strings: every value in a kubeconfig is a string, a boolean or null."""


_KubeconfigLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in {"null", "bool", "merge"}]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read(path: pathlib.Path) -> _File:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(Fault((error.strerror or str(error)).lower(), file=str(path))) from None
    try:
        root = yaml.load(text, _KubeconfigLoader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # Only the problem: the full text of the error may quote the file, and the file holds secrets.
        fault = Fault(f"invalid YAML: {error.problem}", file=str(path), line=mark.line + 1 if mark else 0)
        raise InputError(fault) from None
    except (yaml.YAMLError, RecursionError):
        raise InputError(Fault("invalid YAML", file=str(path))) from None
    root = {} if root is None else root
    try:
        file = msgspec.convert(root, _File)
    except msgspec.ValidationError as error:
        found = structure.walk(root, structure.shape_of(_File), nulls=structure.Nulls.NOWHERE)
        unknown = Fault(str(error).replace("`", ""), file=str(path))
        raise InputError([_fault(path, finding) for finding in found] or unknown) from None
    if file.kind not in {None, "Config"}:
        raise InputError(Fault(f"expected Config, got {file.kind}", file=str(path), path="kind"))
    return file


def _fault(file: pathlib.Path, finding: structure.Finding) -> Fault:
    """The types alone: the value may be a secret."""
    expected, got = structure.expected_text(finding, text="a text"), structure.type_text(finding.got, text="a text")
    return Fault(f"expected {expected}, got {got}", file=str(file), path=finding.path)
