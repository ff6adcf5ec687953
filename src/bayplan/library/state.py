"""What clusters and fleets have in common: where they are read from, and how one is derived from another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from bayplan.errors import ArgumentError
from bayplan.library import arguments
from bayplan.library.arguments import Given
from bayplan.library.inputs import InputSpec, Scope, Show, Supposed, shows_nothing
from bayplan.library.reading import NOTHING_SUPPOSED, Reading
from bayplan.library.settings import Settings

if TYPE_CHECKING:
    from typing import Self

    from bayplan.kube_api.connection import Connection
    from bayplan.library.questions import StateSnapshot

Objects: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | Iterable[str | os.PathLike[str] | Mapping[str, Any]]"

DEFAULT_NAMESPACE = "default"


class State:
    """
    What runs, what is about to be applied on it, and what is supposed to happen before.

    It never changes: `apply`, `only`, `lose` and the like return another one. Nothing is read before an answer needs
    it, and then once; later answers are about the same state, whatever becomes of the files. Threads may share it: they
    are answered one after another. To hand it to another process, pickle it; it is read again there.
    """

    __slots__ = ("_reading", "_scope", "_show", "_supposed")

    def __init__(
        self,
        reading: Reading,
        scope: Scope = Scope(),  # noqa: B008 - it never changes
        supposed: Supposed = NOTHING_SUPPOSED,
        show: Show = shows_nothing,
    ) -> None:
        self._reading, self._scope, self._supposed, self._show = reading, scope, supposed, show

    @classmethod
    def from_files(
        cls,
        *paths: str | os.PathLike[str],
        recursive: bool = False,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """
        What runs, from files and directories, such as the output of kubectl get: as --state on the command line.

        It is read, not validated; an object that cannot be read is set aside, and a note says so. Objects that name no
        namespace are in `namespace`.
        """
        return cls._of(state=arguments.given(paths, recursive=recursive), namespace=namespace, settings=settings)

    @classmethod
    def from_manifests(
        cls,
        *paths: str | os.PathLike[str],
        recursive: bool = False,
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> Self:
        """
        What runs and what is about to be applied, in the same files: as -f alone on the command line.

        All of it is validated.
        """
        return cls._of(change=arguments.given(paths, recursive=recursive), namespace=namespace, settings=settings)

    @classmethod
    def from_objects(
        cls, objects: Iterable[Mapping[str, Any]], *, namespace: str | None = None, settings: Settings | None = None
    ) -> Self:
        """What runs, from objects in memory, as dictionaries. They are copied, and may be changed afterwards."""
        return cls._of(state=arguments.given(objects), namespace=namespace, settings=settings)

    @classmethod
    def from_context(
        cls,
        context: str | None = None,
        *,
        kubeconfig: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        settings: Settings | None = None,
        server: str = "",
        token: str = "",
        as_user: str = "",
        as_groups: Iterable[str] = (),
        as_uid: str = "",
        insecure_skip_tls_verify: bool = False,
        request_timeout: float = 30.0,
    ) -> Self:
        """
        What runs in a live cluster: that of a context of the kubeconfig, by default the current one.

        It is listed once, when an answer first needs it. Nothing is written to it. A token is no part of a pickle.
        """
        arguments.check_seconds("request_timeout", request_timeout)
        from bayplan.kube_api.access import ConnectOptions
        from bayplan.library.live_cluster import LiveCluster

        options = ConnectOptions(
            server=server,
            token=token,
            as_user=as_user,
            as_uid=as_uid,
            as_groups=arguments.several("as_groups", as_groups),
            insecure=insecure_skip_tls_verify,
            request_timeout=request_timeout,
        )
        connect = LiveCluster(context, None if kubeconfig is None else os.fspath(kubeconfig), options)
        live_name = context or "the current context"
        return cls._of(connect=connect, live_name=live_name, namespace=namespace, settings=settings)

    @classmethod
    def _of(
        cls,
        *,
        state: Given = Given(),  # noqa: B008 - it never changes
        change: Given = Given(),  # noqa: B008
        connect: Callable[[], Connection] | None = None,
        live_name: str = "",
        namespace: str | None = None,
        settings: Settings | None = None,
    ) -> Self:
        if not state and not change and connect is None:
            raise ArgumentError("nothing to read: give at least one path or object")
        arguments.check_namespace(namespace)
        arguments.check_is("settings", settings or Settings(), Settings)
        spec = InputSpec(
            state=state,
            change=change,
            connect=connect,
            live_name=live_name,
            namespace=namespace or DEFAULT_NAMESPACE,
            settings=settings or Settings(),
        )
        return cls(Reading(spec))

    def apply(self, *changes: Objects, recursive: bool = False, namespace: str | None = None) -> Self:
        """
        The state with a change that is about to be applied on it, merged as kubectl apply does.

        A change is a file, a directory, an object as a dictionary, or several of them. It is validated in full.
        Several calls are one change: an object may be in one of them only.
        """
        spec = self._reading.spec
        further = arguments.given(changes, recursive=recursive)
        if not further:
            raise ArgumentError("nothing to apply: give at least one path or object")
        arguments.check_namespace(namespace)
        if spec.change and namespace not in (None, spec.namespace):
            message = f"the change that is applied already is in {spec.namespace}: name the namespaces in the objects"
            raise ArgumentError(message, argument="namespace")
        applied = msgspec.structs.replace(
            spec,
            change=spec.change + further,
            namespace=namespace or spec.namespace,
            state_namespace=spec.state_namespace or spec.namespace,
        )
        return self._with(reading=Reading(applied, self._reading.materials.about(applied)))

    def only(self, *, namespace: str | None = None, selector: str | None = None) -> Self:
        """
        The same state, of which only workloads of a namespace, or with these labels, are placed and shown.

        The selector is written as for kubectl. Several calls narrow it down.
        """
        arguments.check_namespace(namespace)
        if selector is not None:
            arguments.check_is("selector", selector, str)
        known = self._scope
        if known.namespace is not None and namespace not in (None, known.namespace):
            raise ArgumentError(f"it is only about {known.namespace} already", argument="namespace")
        selectors = [one for one in (known.selector, selector) if one is not None]
        scope = Scope(
            known.namespace if namespace is None else namespace, ",".join(filter(str.strip, selectors)) or None
        )
        scope.includes()  # reports a bad selector now
        return self._with(scope=scope)

    def reporting(self, progress: Callable[[str], None]) -> Self:
        """
        The same state, whose answers report their progress: `progress` receives a line of text now and then.

        It is called while the state is being asked, and must not ask it.
        """
        return self._with(show=lambda make: progress(make()))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was skipped, created or set aside when the state was read; reads it."""
        with self._reading.asked():
            return self._reading.notes_of(self._show, self._supposed)

    def snapshot(self, *, hash_key: bytes | None = None) -> StateSnapshot:
        """
        The state as one List that gives the same answers, with the fields that Bayplan reads and no others.

        Secrets and ConfigMaps are left out. With a key, names, namespaces, labels and images are replaced by hashes.
        """
        from bayplan.library import questions

        self._check_is_about_all("snapshot")
        if hash_key is not None and not (isinstance(hash_key, bytes) and hash_key):
            raise ArgumentError(f"expected some bytes, got {type(hash_key).__name__}", argument="hash_key")
        with self._reading.asked():
            return questions.snapshot(self._reading.materials, hash_key, self._show)

    def _check_nothing_is_supposed(self, what: str) -> None:
        if self._supposed != NOTHING_SUPPOSED:
            raise ArgumentError(f"{what} is about what runs: what-ifs are for place, explain and how_many_more")

    def _check_is_about_all(self, what: str) -> None:
        self._check_nothing_is_supposed(what)
        if self._scope != Scope():
            raise ArgumentError(f"{what} is about all of what runs: ask the state without `only`")

    def __copy__(self) -> Self:
        return self  # it never changes

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._reading, self._scope, self._supposed)

    def _with(
        self,
        *,
        reading: Reading | None = None,
        scope: Scope | None = None,
        supposed: Supposed | None = None,
        show: Show | None = None,
    ) -> Self:
        return type(self)(
            reading or self._reading, scope or self._scope, supposed or self._supposed, show or self._show
        )

    def _supposing(self, **further: tuple[Any, ...]) -> Self:
        fields = {}
        for name, what in further.items():
            if not what:  # the answer would be about another question
                raise ArgumentError("give at least one", argument=name)
            for one in what:
                if name != "add_node" or not isinstance(one, bytes):  # objects in memory
                    arguments.check_is(name, one, str)
            fields[name] = getattr(self._supposed, name) + what
        return self._with(supposed=msgspec.structs.replace(self._supposed, **fields))

    def __repr__(self) -> str:
        spec = self._reading.spec
        parts = [_named(spec.state), "a live cluster" if spec.connect is not None else ""]
        text = " and ".join(filter(None, parts))
        if spec.change:
            text = f"{text} with {_named(spec.change)} applied" if text else _named(spec.change)
        happens = [
            f"{name.replace('_', ' ')} {what if isinstance(what, str) else 'objects'}"
            for name, all_of in msgspec.structs.asdict(self._supposed).items()
            for what in all_of
        ]
        return f"<{type(self).__name__}: {'; '.join([text, *happens])}>"


def _named(given: Given) -> str:
    return ", ".join((*given.paths, *("objects" for _ in given.lists)))


def _restored(made: type[State], reading: Reading, scope: Scope, supposed: Supposed) -> State:
    """A state of a pickle; progress is not reported to another process."""
    return made(reading, scope, supposed)
