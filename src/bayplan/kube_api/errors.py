"""
Errors of the API client, each with a message of one line.

    ClusterError
     └── KubeError
          ├── ApiError             the server responded with an error status
          │    ├── UnauthorizedError, ForbiddenError, NotFoundError, ConflictError, GoneError
          │    └── TooManyRequestsError, ServerUnavailableError
          ├── UnreachableError     no connection to that address or to the proxy
          ├── CertificateError     the server's certificate is not trusted
          ├── WrongServerError     the server is not a Kubernetes API server
          ├── BrokenAnswerError    the answer is cut off or is not what was asked for
          ├── ConnectionLostError, NoAnswerError
          ├── FencedError          not sent, because this replica does not lead any more
          ├── CredentialError      a token, client certificate or exec plugin that does not work
          └── UnknownContextError, NoClusterError

No message contains a token, a password or a key. `retriable` says whether a retry makes sense.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.errors import ClusterError

_MAX_MESSAGE_CHARACTERS = 600


class KubeError(ClusterError):
    """`retriable`: the same request may succeed a little later."""

    retriable = False

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


class BrokenAnswerError(KubeError):
    retriable = True


class FencedError(KubeError):
    """The request was not sent: the caller was not allowed to write any more at the moment of sending."""


class ConnectionLostError(KubeError):
    retriable = True


class NoAnswerError(KubeError):
    retriable = True


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
    """`v1.Status`: how API servers report errors, in responses and in watches."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class ApiError(KubeError):
    """The server responded with an error. `tried` is the request; `retry_after` is in seconds, None if not given."""

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
        return f"{tried}: the server does not accept the credentials: {self.message}"


class ForbiddenError(ApiError):
    def _text(self, tried: str) -> str:
        return f"{tried}: no rights: {self.message}"


class NotFoundError(ApiError):
    pass


class ConflictError(ApiError):
    """The object has changed or already exists; `reason` says which (`Conflict`, `AlreadyExists`)."""


class GoneError(ApiError):
    """The requested resource version has expired: list again."""


class TooManyRequestsError(ApiError):
    """The server throttles the client, or a disruption budget does not allow an eviction now."""

    retriable = True


class ServerUnavailableError(ApiError):
    """Any status from 500 on."""

    retriable = True


_ERROR_BY_STATUS: dict[int, type[ApiError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    429: TooManyRequestsError,
}
_STATUS = msgspec.json.Decoder(Status)


def from_status(tried: str, status: Status, retry_after: float | None = None) -> ApiError:
    """The error that the status code stands for."""
    error_type = _ERROR_BY_STATUS.get(status.code, ServerUnavailableError if status.code >= 500 else ApiError)
    return error_type(tried, status, retry_after)


def from_answer(
    tried: str, code: int, phrase: str, headers: Mapping[str, str], body: bytes, *, hint: str = ""
) -> KubeError:
    """The error for an unsuccessful response; `hint` continues the server's message. API servers send no web pages."""
    if 300 <= code < 400:
        return WrongServerError(f"{tried}: answered with a redirect ({code}); is this a Kubernetes API server?")
    if code < 500 and "html" in headers.get("content-type", ""):
        return WrongServerError(f"{tried}: answered {code} with a web page; is this a Kubernetes API server?")
    wait = headers.get("retry-after", "")
    status = _read_status(code, phrase, body)
    status.message += hint
    return from_status(tried, status, float(wait) if wait.isdecimal() else None)


def _read_status(code: int, phrase: str, body: bytes) -> Status:
    try:
        status = _STATUS.decode(body)
    except (ValueError, RecursionError):
        status = Status()
    if status.kind != "Status":
        status = Status(message=body[:_MAX_MESSAGE_CHARACTERS].decode(errors="replace").strip())
    status.code = code
    status.reason = status.reason or phrase
    status.message = status.message or phrase
    return status


def one_line(text: str) -> str:
    """The text on one line of bounded length, without control characters."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    shown = " ".join(shown.split())
    return shown if len(shown) <= _MAX_MESSAGE_CHARACTERS else f"{shown[:_MAX_MESSAGE_CHARACTERS]}…"
