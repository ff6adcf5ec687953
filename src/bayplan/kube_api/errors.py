"""
What can go wrong between us and an API server, each told in one line.

    ClusterError
     └── KubeError
          ├── ApiError             the server answered, and the answer is no
          │    ├── UnauthorizedError, ForbiddenError, NotFoundError, ConflictError, GoneError
          │    └── TooManyRequestsError, ServerUnavailableError
          ├── UnreachableError     nobody answers at that address, or on the way to it
          ├── CertificateError     the server's certificate is not to be trusted
          ├── WrongServerError     something answers, but it is no Kubernetes API
          ├── ConnectionLostError, NoAnswerError
          ├── CredentialError      a token, a certificate or a plugin that should prove who we are does not work
          └── UnknownContextError, NoClusterError

None of the texts holds a token, a password or a key. Whoever retries asks `passing`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.errors import ClusterError

_LONGEST = 600


class KubeError(ClusterError):
    """`passing` says that the same request may well succeed a little later."""

    passing = False

    def __init__(self, text: str) -> None:
        super().__init__(one_line(text))


class UnreachableError(KubeError):
    pass


class CertificateError(KubeError):
    pass


class WrongServerError(KubeError):
    pass


class CredentialError(KubeError):
    pass


class UnknownContextError(KubeError):
    pass


class NoClusterError(KubeError):
    pass


class ConnectionLostError(KubeError):
    passing = True


class NoAnswerError(KubeError):
    passing = True


class StatusCause(msgspec.Struct, rename="camel"):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, rename="camel"):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, rename="camel"):
    """`v1.Status`: how API servers say no, in answers and in watches."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ApiError(KubeError):
    """The server said no. `tried` is what we asked for; `retry_after` are seconds, None if the server named none."""

    def __init__(self, tried: str, status: Status, retry_after: float | None = None) -> None:
        self.status = status.code
        self.reason = status.reason
        self.message = one_line(status.message)
        self.details = status.details or StatusDetails()
        self.retry_after = retry_after if retry_after is not None else self.details.retry_after_seconds or None
        super().__init__(self._text(tried))

    def _text(self, tried: str) -> str:
        return f"{tried}: the server answered {self.status} {self.reason}: {self.message}"


class UnauthorizedError(ApiError):
    def _text(self, tried: str) -> str:
        return f"{tried}: the server does not accept our credentials: {self.message}"


class ForbiddenError(ApiError):
    def _text(self, tried: str) -> str:
        return f"{tried}: no rights: {self.message}"


class NotFoundError(ApiError):
    pass


class ConflictError(ApiError):
    """The object changed or exists already: `reason` tells the two apart (`Conflict`, `AlreadyExists`)."""


class GoneError(ApiError):
    """The version asked for is too old: list again."""


class TooManyRequestsError(ApiError):
    """Asked to wait, or an eviction that a disruption budget does not allow now."""

    passing = True


class ServerUnavailableError(ApiError):
    """Any answer from 500 on."""

    passing = True


_KINDS: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: TooManyRequestsError,
}
_STATUS = msgspec.json.Decoder(Status)


def from_status(tried: str, status: Status, retry_after: float | None = None) -> ApiError:
    """The error of the kind that the status code tells."""
    kind = _KINDS.get(status.code, ServerUnavailableError if status.code >= 500 else ApiError)
    return kind(tried, status, retry_after)


def from_answer(
    tried: str, code: int, phrase: str, headers: Mapping[str, str], body: bytes, *, hint: str = ""
) -> KubeError:
    """What an answer that is no success means; `hint` continues the server's message. Web pages are no API server's."""
    if 300 <= code < 400:
        return WrongServerError(f"{tried}: answered with a redirect ({code}); is this a Kubernetes API server?")
    if code < 500 and "html" in headers.get("Content-Type", ""):
        return WrongServerError(f"{tried}: answered {code} with a web page; is this a Kubernetes API server?")
    wait = headers.get("Retry-After", "")
    status = _read_status(code, phrase, body)
    status.message += hint
    return from_status(tried, status, float(wait) if wait.isdecimal() else None)


def _read_status(code: int, phrase: str, body: bytes) -> Status:
    try:
        status = _STATUS.decode(body)
    except (ValueError, RecursionError):
        status = Status()
    if status.kind != "Status":
        status = Status(message=body[:_LONGEST].decode(errors="replace").strip())
    status.code = code
    status.reason = status.reason or phrase
    status.message = status.message or phrase
    return status


def one_line(text: str) -> str:
    """The text on one line of bounded length, without characters that could upset a terminal."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
